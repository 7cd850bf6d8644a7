/// Messages of several writers that become one batch and reach the disk with one sync. Layer: queue.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <lightq/base/batch_builder.hpp>
#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>

#include "queue/waiters.hpp"

namespace lightq::queue {

/// The first writer leads: it appends and syncs for all who have joined, and settles what came of it. Joining
/// and `builder` are for whoever has the queue's lock; waiting needs none.
class AppendGroup {
 public:
  BatchBuilder builder;

  AppendGroup() { builder.clear(); }
  /// One more message stays within a batch of `bytes_max` and `records_max`.
  [[nodiscard]] bool takes(std::size_t payload_bytes, std::size_t bytes_max,
                           std::uint64_t records_max) const {
    return builder.size_bytes() + record_bytes(payload_bytes) <= bytes_max &&
           builder.record_count() < std::min<std::uint64_t>(records_max, limits::batch_records_max);
  }
  /// Its place among the messages.
  std::uint32_t join(ByteView payload) {
    builder.add(payload);
    return builder.record_count() - 1;
  }

  /// All are durable from `base` on, or none.
  void settle(Result<Offset> base) {
    base_ = std::move(base);
    settled_.increase();
  }
  /// Each has its own result.
  void settle_each(std::vector<Result<Offset>> each) {
    each_ = std::move(each);
    settled_.increase();
  }
  /// How long those who wait for a group stay awake, `last` being how long the last one took from its append
  /// until it was on the disk. To be woken takes as long as a quick disk's sync: who has joined a group waits
  /// for the rest of the one before it and for all of its own. A slow disk is worth nobody's processor.
  static constexpr std::chrono::nanoseconds awake_for(std::chrono::nanoseconds last) {
    constexpr std::chrono::microseconds quick{500};
    return last <= quick ? 2 * last : std::chrono::nanoseconds{};
  }
  /// Waits until it is settled, for so long awake: the message's offset.
  Result<Offset> wait(std::uint32_t place, std::chrono::nanoseconds awake) {
    const auto until = std::chrono::steady_clock::now() + awake;
    while (settled_.value() == 0 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    settled_.wait_while(0);
    if (!each_.empty()) return each_[place];
    if (!*base_) return *base_;
    return **base_ + place;
  }

 private:
  std::optional<Result<Offset>> base_;
  std::vector<Result<Offset>> each_;
  WaitedCount settled_;
};

}  // namespace lightq::queue
