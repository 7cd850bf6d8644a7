/// Shows new messages to the readers of a queue. Layer: queue.
#pragma once

#include <lightq/base/types.hpp>

#include "queue/published_end.hpp"
#include "queue/waiters.hpp"

namespace lightq::queue {

/// Publishes the end of the messages, and wakes readers that wait for it.
///
/// Owns the waiting readers. Called by whoever adds messages; Engine lets readers wait. Thread: one shows,
/// any waits.
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
