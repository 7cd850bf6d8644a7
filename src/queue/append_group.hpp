/// Messages of several writers that become one batch and are synced together. Layer: queue.
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

/// A group of messages. The writer of the first message leads: it appends and syncs for all members, then
/// calls `settle` or `settle_each`. Thread: `takes`, `join` and `builder` need the queue's lock; `wait` needs
/// none.
class AppendGroup {
 public:
  BatchBuilder builder;

  AppendGroup() { builder.clear(); }
  /// Returns true if the group, with one more message, stays within a batch of `bytes_max` and `records_max`.
  [[nodiscard]] bool takes(std::size_t payload_bytes, std::size_t bytes_max,
                           std::uint64_t records_max) const {
    return builder.size_bytes() + record_bytes(payload_bytes) <= bytes_max &&
           builder.record_count() < std::min<std::uint64_t>(records_max, limits::batch_records_max);
  }
  /// Adds a message and returns its index in the group.
  std::uint32_t join(ByteView payload) {
    builder.add(payload);
    return builder.record_count() - 1;
  }

  /// Ends the wait of all members: all messages are durable, from offset `base` on, or none is.
  void settle(Result<Offset> base) {
    base_ = std::move(base);
    settled_.increase();
  }
  /// Ends the wait of all members, each with its own result.
  void settle_each(std::vector<Result<Offset>> each) {
    each_ = std::move(each);
    settled_.increase();
  }
  /// Returns how long waiting writers stay awake. `last`: the time from the append of the last group until it
  /// was on disk. Waking a thread takes as long as a sync of a fast disk. A member waits for the rest of the
  /// sync before its own, and for its own: twice `last`. For a slow disk, staying awake would waste the
  /// processor.
  static constexpr std::chrono::nanoseconds awake_for(std::chrono::nanoseconds last) {
    constexpr std::chrono::microseconds quick{500};
    return last <= quick ? 2 * last : std::chrono::nanoseconds{};
  }
  /// Waits until the group is settled, staying awake for the time `awake`. Returns the offset of the message
  /// with this index.
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
