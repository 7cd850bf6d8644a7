/// The messages that libzmq still holds for one connection of a producer. Layer: client.
#pragma once

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include <zmq.hpp>

#include <lightq/base/limits.hpp>
#include <lightq/base/types.hpp>
#include <lightq/fifo_memory.hpp>

namespace lightq::inline v1 {

/// Gives libzmq copies of messages, and keeps each until it is told that libzmq has passed it on. libzmq lets
/// go of them in the order in which it was given them, when it has handed them to the operating system or
/// when it drops them, and does not say which: forget_passed() is for who knows that it has dropped nothing.
///
/// What libzmq still holds when this ends is kept until it lets go of that, so that socket, producer and
/// context may end in any order. Move-only. One thread at a time; libzmq's own comes besides.
class UnsentMessages {
 public:
  UnsentMessages() : state_(new State) {}

  /// Offers libzmq a copy, without waiting. False: it was not taken, and zmq_errno() says why (ENOMEM too).
  bool send(zmq::socket_t& socket, ByteView payload) {
    State& state = *state_;
    std::byte* copy = nullptr;
    try {
      copy = state.memory.take(payload.size());
      state.entries.push_back({copy, payload.size()});
    } catch (const std::bad_alloc&) {
      if (copy != nullptr) state.memory.undo(payload.size());
      errno = ENOMEM;
      return false;
    }
    if (!payload.empty()) std::memcpy(copy, payload.data(), payload.size());
    if (!hand_over(socket, copy, payload.size())) {
      state.entries.pop_back();
      state.memory.undo(payload.size());
      return false;
    }
    state.bytes += counted(payload.size());
    return true;
  }

  /// Forgets those that libzmq has let go of.
  void forget_passed() {
    State& state = *state_;
    for (const std::uint64_t gone = state.gone.load(); state.forgotten < gone; ++state.forgotten) {
      state.bytes -= counted(state.entries.front().size);
      state.entries.pop_front();
      state.memory.give_back();
    }
  }

  /// Bytes of those of at least limits::counted_message_bytes_min that libzmq holds. 0 once moved from.
  [[nodiscard]] std::size_t bytes() const {
    if (state_ == nullptr || state_->bytes == 0) return 0;
    const std::uint64_t gone = state_->gone.load() - state_->forgotten;
    std::size_t bytes = state_->bytes;
    for (std::uint64_t i = 0; i < gone; ++i) bytes -= counted(state_->entries[i].size);
    return bytes;
  }
  /// Whether they are fewer than `bytes`.
  [[nodiscard]] bool is_below(std::size_t bytes) const {
    return state_->bytes < bytes || this->bytes() < bytes;
  }

  /// Appends copies of all that were not forgotten, the oldest first. Throws std::bad_alloc.
  void copy_to(std::deque<std::vector<std::byte>>& messages) const {
    for (const Entry& entry : state_->entries) messages.emplace_back(entry.bytes, entry.bytes + entry.size);
  }

  /// Waits until bytes() is below `bytes`; false at the deadline.
  bool wait_below(std::size_t bytes, std::chrono::steady_clock::time_point deadline) {
    return wait(deadline, [&] { return this->bytes() < bytes; });
  }
  /// Waits until libzmq has let go of all; false at the deadline.
  bool wait_gone(std::chrono::steady_clock::time_point deadline) {
    return wait(deadline, [&] { return state_->gone.load() == state_->given(); });
  }

 private:
  struct Entry {
    const std::byte* bytes;
    std::size_t size;
  };

  /// Ends with the last of those that use it: the owner, and each message that libzmq holds.
  struct State {
    FifoMemory memory;  // the owner's, as are the next three
    std::deque<Entry> entries;
    std::uint64_t forgotten = 0;  // that stood before `entries`
    std::size_t bytes = 0;        // of `entries`
    // libzmq's thread writes these with every message: not where the owner writes with every message.
    alignas(64) std::atomic<std::uint64_t> gone{0};
    std::atomic<std::uint64_t> ended{0};  // likewise, counted last
    std::atomic<bool> waited_for{false};
    std::mutex mutex;
    std::condition_variable changed;

    static constexpr std::uint64_t all = std::uint64_t{1} << 63;  // `ended`, once the owner is gone as well

    [[nodiscard]] std::uint64_t given() const { return forgotten + entries.size(); }

    /// Wakes the one who waits, if anybody does. Both sides change one atomic and then read the other, in one
    /// order for all (seq_cst): either the waiter sees the new count, or this sees the waiter.
    static void let_go(void* /*data*/, void* hint) {
      auto* state = static_cast<State*>(hint);
      state->gone.fetch_add(1);
      if (state->waited_for.load()) {
        const std::scoped_lock lock(state->mutex);
        state->changed.notify_all();
      }
      state->end(1);
    }
    void end(std::uint64_t count) {
      if (ended.fetch_add(count) + count == all) delete this;
    }
  };
  struct Abandon {
    void operator()(State* state) const { state->end(State::all - state->given()); }
  };

  static std::size_t counted(std::size_t size) { return size < limits::counted_message_bytes_min ? 0 : size; }

  bool hand_over(zmq::socket_t& socket, std::byte* copy, std::size_t size) {
    zmq_msg_t message;
    if (zmq_msg_init_data(&message, copy, size, &State::let_go, state_.get()) != 0) return false;
    if (zmq_msg_send(&message, socket.handle(), ZMQ_DONTWAIT) >= 0) return true;
    const int why = zmq_errno();
    zmq_msg_close(&message);  // which lets go of it
    state_->gone.fetch_sub(1);
    state_->ended.fetch_sub(1);
    errno = why;
    return false;
  }

  template <typename Condition>
  bool wait(std::chrono::steady_clock::time_point deadline, Condition&& condition) {
    State& state = *state_;
    std::unique_lock lock(state.mutex);
    state.waited_for.store(true);
    const bool met = state.changed.wait_until(lock, deadline, condition);
    state.waited_for.store(false);
    return met;
  }

  std::unique_ptr<State, Abandon> state_;
};

}  // namespace lightq::inline v1
