/// Counts the bytes of large messages that libzmq still holds for one socket. Layer: client.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>

#include <zmq.hpp>

#include <lightq/base/types.hpp>

namespace lightq::inline v1 {

/// The bytes that one connection of a producer has waiting in libzmq. Shared between the producer and every
/// block that libzmq holds: the last of them takes it away, so that socket, producer and context may end in
/// any order. add() and the waiting belong to the producer's thread; remove() comes on any.
class UnsentBytes {
 public:
  [[nodiscard]] std::size_t count() const { return count_.load(); }

  void add(std::size_t bytes) { count_.fetch_add(bytes); }

  /// Wakes the one who waits, if anybody does. Both sides change one atomic and then read the other, in one
  /// order for all (seq_cst): either the waiter sees the new count, or this sees the waiter.
  void remove(std::size_t bytes) {
    count_.fetch_sub(bytes);
    if (!waited_for_.load()) return;
    const std::scoped_lock lock(mutex_);
    changed_.notify_all();
  }

  /// Waits until fewer than `bytes` are counted; false at the deadline.
  bool wait_below(std::size_t bytes, std::chrono::steady_clock::time_point deadline) {
    std::unique_lock lock(mutex_);
    waited_for_.store(true);
    const bool below = changed_.wait_until(lock, deadline, [&] { return count() < bytes; });
    waited_for_.store(false);
    return below;
  }

 private:
  std::atomic<std::size_t> count_{0};
  std::atomic<bool> waited_for_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
};

/// A ZeroMQ message with a copy of `payload` that is counted in `unsent` until libzmq lets go of it: when it
/// has reached the operating system, or is dropped. Throws zmq::error_t and std::bad_alloc.
inline zmq::message_t counted_message(ByteView payload, const std::shared_ptr<UnsentBytes>& unsent) {
  struct Block {
    Block(ByteView bytes, std::shared_ptr<UnsentBytes> counter)
        : copy(new std::byte[bytes.size()]), unsent(std::move(counter)) {
      std::memcpy(copy.get(), bytes.data(), bytes.size());
      unsent->add(bytes.size());
    }
    static void free(void* /*data*/, void* hint) {
      auto* block = static_cast<Block*>(hint);
      const std::size_t bytes = block->size.load(std::memory_order_acquire);
      const std::shared_ptr<UnsentBytes> counter = std::move(block->unsent);
      delete block;
      counter->remove(bytes);
    }
    std::atomic<std::size_t> size{0};
    std::unique_ptr<std::byte[]> copy;
    std::shared_ptr<UnsentBytes> unsent;
  };
  auto block = std::make_unique<Block>(payload, unsent);
  std::byte* const data = block->copy.get();
  // Hands the block to the thread that will free it. libzmq does so as well, where the thread sanitizer does
  // not look.
  block->size.store(payload.size(), std::memory_order_release);
  Block* const handed = block.release();
  zmq_msg_t raw;
  if (zmq_msg_init_data(&raw, data, payload.size(), &Block::free, handed) != 0) {
    Block::free(data, handed);
    throw zmq::error_t();
  }
  zmq::message_t message;
  zmq_msg_move(message.handle(), &raw);
  zmq_msg_close(&raw);
  return message;
}

}  // namespace lightq::inline v1
