/// The times when messages expire by their own time to live. Layer: delivery.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <vector>

#include <lightq/base/types.hpp>

#include "admission/turn_work.hpp"
#include "delivery/expiry/far_times.hpp"
#include "log/offsets/offset_set.hpp"

namespace lightq::broker {

/// Keeps messages by the time when they expire, rounded up to half a second: so none is due too early. Those
/// of the next hour or two are in one set of offsets for each half second, later ones in FarTimes for each
/// hour. So a million messages with scattered times take a few megabytes. All times are of the wall clock.
/// Each call does a bounded amount of work, and counts it (TurnWork). A plain value for one thread.
class ExpiryTimes {
 public:
  static constexpr std::int64_t step_us = 500'000;
  static constexpr Timestamp nothing_due{std::numeric_limits<std::int64_t>::max()};

  /// Adds messages that expire at `expiry`. `wall`: the present time.
  void add(OffsetRange range, Timestamp expiry, Timestamp wall);
  /// Removes messages that have expired, and calls `expired(range)` for each range. Returns true if there may
  /// be more that have expired.
  template <typename Expired>
  bool release(Timestamp wall, Expired&& expired) {
    bring_near(wall);
    for (std::size_t runs = 0; !near_.empty() && time_of(near_.begin()->first) <= wall;) {
      const auto due = near_.begin();
      OffsetRange done{due->second.first(), due->second.first()};
      {
        log::OffsetSet::Runs ahead(due->second);
        for (auto run = ahead.next(); run; run = ++runs < released_max ? ahead.next() : std::nullopt) {
          TurnWork::add(TurnWork::range_passed);
          done.end = run->end;
          expired(*run);
        }
      }
      remove_from(due, done);
      if (runs >= released_max) return true;
    }
    return !far_.empty() && time_of(far_.begin()->first * steps_of_hour) <= wall;
  }
  /// Returns true if a message of `range` may have expired by its exact time, although it is not due by the
  /// rounded one. Looks at few sets: if more are about to be due, returns true.
  [[nodiscard]] bool may_have_expired(OffsetRange range, Timestamp wall) const;
  /// Forgets messages below `first` in some sets. Repeated calls reach all.
  void sweep(Offset first);

  [[nodiscard]] bool empty() const { return near_.empty() && far_.empty(); }
  /// Returns a time before which `release` has nothing to do, or nothing_due.
  [[nodiscard]] Timestamp next() const;
  /// Returns the heap memory in bytes.
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  using Near = std::map<std::int64_t, log::OffsetSet>;  // by the number of steps since 1970
  using Far = std::map<std::int64_t, FarTimes>;         // by the number of hours since 1970
  static constexpr std::int64_t steps_of_hour = 3'600'000'000 / step_us;
  static constexpr std::int64_t steps_ahead = 600'000'000 / step_us;  // an hour comes near ten minutes before
  static constexpr std::size_t entry_bytes = 48 + sizeof(Near::value_type);
  static constexpr std::size_t far_entry_bytes = 48 + sizeof(Far::value_type);
  static constexpr std::size_t released_max = 1024;

  /// Returns the first step that begins at `time` or later.
  static std::int64_t step_of(Timestamp time) {
    return time.us / step_us + (time.us > 0 && time.us % step_us != 0 ? 1 : 0);
  }
  /// Returns the time of a step; the greatest time if it is beyond that.
  static Timestamp time_of(std::int64_t step) {
    return {step > nothing_due.us / step_us ? nothing_due.us : step * step_us};
  }
  void add_near(OffsetRange range, std::int64_t step);
  void bring_near(Timestamp wall);
  void remove_from(Near::iterator at, OffsetRange range);

  Near near_;
  Far far_;
  std::size_t bytes_ = 0;
  std::int64_t near_swept_ = 0;  // `sweep` goes on behind this step and hour
  std::int64_t far_swept_ = 0;
  std::vector<FarTimes::Run> taken_;  // of a block; kept for its memory
};

}  // namespace lightq::broker
