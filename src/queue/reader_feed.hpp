/// Shows new messages to the readers of a queue. Layer: queue.
#pragma once

#include <atomic>
#include <cstdint>

#include <lightq/base/types.hpp>

#include "queue/waiters.hpp"

namespace lightq::queue {

/// One past the newest message that readers may read. Owned by SegmentSource. Thread: one publishes, any
/// reads. Invariant: everything before it is completely stored.
class PublishedEnd {
 public:
  void publish(Offset next) { next_.store(next.value, std::memory_order_release); }
  [[nodiscard]] Offset value() const { return {next_.load(std::memory_order_acquire)}; }

 private:
  std::atomic<std::uint64_t> next_{0};
};

/// Publishes the end of the messages, and wakes readers that wait for it.
///
/// Owns the waiting readers. Called by Engine and QueueAppender for new messages; Engine lets readers wait.
/// Thread: one shows, any waits.
class ReaderFeed {
 public:
  /// Lifetime: `end` must outlive this object.
  explicit ReaderFeed(PublishedEnd& end) : end_(end) {}

  /// Publishes everything before `next` to readers, and wakes them if necessary.
  void show(Offset next) {
    end_.publish(next);
    readers_.wake_if_waiting();
  }
  [[nodiscard]] Waiters& readers() { return readers_; }

 private:
  PublishedEnd& end_;
  Waiters readers_;
};

}  // namespace lightq::queue
