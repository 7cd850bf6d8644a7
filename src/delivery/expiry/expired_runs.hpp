/// The messages that a group has passed because they had expired, to explain where a message went. Layer:
/// delivery.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>

#include <lightq/base/types.hpp>

namespace lightq::broker {

/// Remembers the last runs of messages that expired, since the broker's start. Takes constant time for a run,
/// and at most 1 KiB, and no memory before the first one. Without memory it forgets instead of failing.
/// A plain value for one thread.
class ExpiredRuns {
 public:
  /// How many runs are remembered.
  static constexpr std::size_t runs_max = 64;

  /// Adds messages that have expired. Extends the last run if they follow it; otherwise forgets the oldest
  /// run if there are too many.
  void add(OffsetRange range) {
    if (range.end <= range.begin) return;
    if (runs_ == nullptr) runs_.reset(new (std::nothrow) OffsetRange[runs_max]{});
    if (runs_ == nullptr) return;
    OffsetRange& last = runs_[last_];
    if (last.end == range.begin && last.begin < last.end) {
      last.end = range.end;
      return;
    }
    last_ = (last_ + 1) % runs_max;
    runs_[last_] = range;
  }
  /// Forgets all messages from `first` on.
  void forget_from(Offset first) {
    if (runs_ == nullptr) return;
    for (std::size_t at = 0; at < runs_max; ++at) runs_[at].end = std::min(runs_[at].end, first);
  }
  /// Returns true if the message is in one of the runs.
  [[nodiscard]] bool has(Offset message) const {
    return runs_ != nullptr && std::any_of(runs_.get(), runs_.get() + runs_max, [&](const OffsetRange& run) {
             return run.begin <= message && message < run.end;
           });
  }

 private:
  std::unique_ptr<OffsetRange[]> runs_;  // a ring; runs that were never set are empty
  std::size_t last_ = 0;
};

}  // namespace lightq::broker
