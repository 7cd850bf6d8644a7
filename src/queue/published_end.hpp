/// The end of a queue's messages, as readers on all threads see it. Layer: queue.
#pragma once

#include <atomic>
#include <cstdint>

#include <lightq/base/types.hpp>

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

}  // namespace lightq::queue
