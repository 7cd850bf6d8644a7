/// The definitions of <lightq/detail/unsent_messages.hpp>. Layer: client.
#pragma once

#include <lightq/detail/unsent_messages.hpp>

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
#include <lightq/impl/fifo_memory.hpp>

namespace lightq::inline v1 {

struct UnsentMessages::Entry {
  const std::byte* bytes;
  std::size_t size;
};

/// Shared by the owner and by each message that libzmq still uses; the last of them deletes it.
struct UnsentMessages::State {
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

  [[nodiscard]] std::uint64_t given() const;

  /// Called by libzmq when it frees a message; wakes the owner if it waits. Both sides change one atomic
  /// and then read the other, in one total order (seq_cst). So either the owner sees the new count, or this
  /// function sees that the owner waits.
  static void let_go(void* /*data*/, void* hint);
  void end(std::uint64_t count);
};

LIGHTQ_INLINE UnsentMessages::UnsentMessages() : state_(new State) {}

LIGHTQ_INLINE bool UnsentMessages::send(zmq::socket_t& socket, ByteView payload) {
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

LIGHTQ_INLINE void UnsentMessages::forget_passed() {
  State& state = *state_;
  for (const std::uint64_t gone = state.gone.load(); state.forgotten < gone; ++state.forgotten) {
    state.bytes -= counted(state.entries.front().size);
    state.entries.pop_front();
    state.memory.give_back();
  }
}

LIGHTQ_INLINE std::size_t UnsentMessages::bytes() const {
  if (state_ == nullptr || state_->bytes == 0) return 0;
  const std::uint64_t gone = state_->gone.load() - state_->forgotten;
  std::size_t bytes = state_->bytes;
  for (std::uint64_t i = 0; i < gone; ++i) bytes -= counted(state_->entries[i].size);
  return bytes;
}

LIGHTQ_INLINE bool UnsentMessages::is_below(std::size_t bytes) const {
  return state_->bytes < bytes || this->bytes() < bytes;
}

LIGHTQ_INLINE void UnsentMessages::copy_to(std::deque<std::vector<std::byte>>& messages) const {
  for (const Entry& entry : state_->entries) messages.emplace_back(entry.bytes, entry.bytes + entry.size);
}

template <typename Condition>
bool UnsentMessages::wait(std::chrono::steady_clock::time_point deadline, Condition&& condition) {
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  state.waited_for.store(true);
  const bool met = state.changed.wait_until(lock, deadline, condition);
  state.waited_for.store(false);
  return met;
}

LIGHTQ_INLINE bool UnsentMessages::wait_below(std::size_t bytes,
                                              std::chrono::steady_clock::time_point deadline) {
  return wait(deadline, [&] { return this->bytes() < bytes; });
}

LIGHTQ_INLINE bool UnsentMessages::wait_gone(std::chrono::steady_clock::time_point deadline) {
  return wait(deadline, [&] { return state_->gone.load() == state_->given(); });
}

LIGHTQ_INLINE std::uint64_t UnsentMessages::State::given() const {
  return forgotten + entries.size();
}

LIGHTQ_INLINE void UnsentMessages::State::let_go(void* /*data*/, void* hint) {
  auto* state = static_cast<State*>(hint);
  state->gone.fetch_add(1);
  if (state->waited_for.load()) {
    const std::scoped_lock lock(state->mutex);
    state->changed.notify_all();
  }
  state->end(1);
}

LIGHTQ_INLINE void UnsentMessages::State::end(std::uint64_t count) {
  if (ended.fetch_add(count) + count == all) delete this;
}

LIGHTQ_INLINE void UnsentMessages::Abandon::operator()(State* state) const {
  state->end(State::all - state->given());
}

LIGHTQ_INLINE std::size_t UnsentMessages::counted(std::size_t size) {
  return size < limits::counted_message_bytes_min ? 0 : size;
}

LIGHTQ_INLINE bool UnsentMessages::hand_over(zmq::socket_t& socket, std::byte* copy, std::size_t size) {
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

}  // namespace lightq::inline v1
