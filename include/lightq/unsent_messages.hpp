/// The messages of a producer that libzmq has not sent yet, for one connection. Layer: client.
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

/// Gives libzmq copies of messages, and keeps each one until the owner knows that libzmq has sent it. libzmq
/// frees messages in order, both when it passes them to the operating system and when it drops them; it does
/// not report which. So call forget_passed() only if it has dropped nothing.
///
/// Copies that libzmq still uses at destruction are kept until it frees them. Socket, producer and context
/// may therefore end in any order. Move-only. Thread: one at a time; libzmq's own thread runs beside it.
class UnsentMessages {
 public:
  UnsentMessages() : state_(new State) {}

  /// Offers libzmq a copy without waiting. Returns false if it was not accepted; zmq_errno() has the reason
  /// (also ENOMEM).
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

  /// Forgets the messages that libzmq has freed.
  void forget_passed() {
    State& state = *state_;
    for (const std::uint64_t gone = state.gone.load(); state.forgotten < gone; ++state.forgotten) {
      state.bytes -= counted(state.entries.front().size);
      state.entries.pop_front();
      state.memory.give_back();
    }
  }

  /// Returns the bytes of unsent messages of at least limits::counted_message_bytes_min each. 0 after a move.
  [[nodiscard]] std::size_t bytes() const {
    if (state_ == nullptr || state_->bytes == 0) return 0;
    const std::uint64_t gone = state_->gone.load() - state_->forgotten;
    std::size_t bytes = state_->bytes;
    for (std::uint64_t i = 0; i < gone; ++i) bytes -= counted(state_->entries[i].size);
    return bytes;
  }
  /// Returns true if bytes() is below `bytes`.
  [[nodiscard]] bool is_below(std::size_t bytes) const {
    return state_->bytes < bytes || this->bytes() < bytes;
  }

  /// Appends copies of all messages that are not forgotten, the oldest first. Throws std::bad_alloc.
  void copy_to(std::deque<std::vector<std::byte>>& messages) const {
    for (const Entry& entry : state_->entries) messages.emplace_back(entry.bytes, entry.bytes + entry.size);
  }

  /// Waits until bytes() is below `bytes`. Returns false at the deadline.
  bool wait_below(std::size_t bytes, std::chrono::steady_clock::time_point deadline) {
    return wait(deadline, [&] { return this->bytes() < bytes; });
  }
  /// Waits until libzmq has freed all messages. Returns false at the deadline.
  bool wait_gone(std::chrono::steady_clock::time_point deadline) {
    return wait(deadline, [&] { return state_->gone.load() == state_->given(); });
  }

 private:
  struct Entry {
    const std::byte* bytes;
    std::size_t size;
  };

  /// Shared by the owner and by each message that libzmq still uses; the last of them deletes it.
  struct State {
    FifoMemory memory;  // this and the next three: used by the owner only
    std::deque<Entry> entries;
    std::uint64_t forgotten = 0;  // messages before `entries`
    std::size_t bytes = 0;        // of `entries`
    // libzmq's thread writes these with every message, so they are not in the cache line that the owner
    // writes.
    alignas(64) std::atomic<std::uint64_t> gone{0};
    std::atomic<std::uint64_t> ended{0};  // counted after `gone`, as the last access
    std::atomic<bool> waited_for{false};
    std::mutex mutex;
    std::condition_variable changed;

    static constexpr std::uint64_t all = std::uint64_t{1} << 63;  // `ended`, when the owner is gone too

    [[nodiscard]] std::uint64_t given() const { return forgotten + entries.size(); }

    /// Called by libzmq when it frees a message; wakes the owner if it waits. Both sides change one atomic
    /// and then read the other, in one total order (seq_cst). So either the owner sees the new count, or this
    /// function sees that the owner waits.
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
    zmq_msg_close(&message);  // calls let_go
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
