/// The times when messages expire by their own time to live. Layer: delivery.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>

#include <lightq/base/limits.hpp>
#include <lightq/base/types.hpp>

#include "admission/turn_work.hpp"
#include "delivery/expiry/far_times.hpp"
#include "log/offsets/offset_set.hpp"

namespace lightq::broker {

/// Keeps messages by the time when they expire, rounded up to half a second: so none is due too early. Those
/// of the next hour or two are in one set of offsets for each half second, later ones in FarTimes for each
/// hour. So a million messages with scattered times take a few megabytes. Once FarTimes has as much memory as
/// it may, a further message only widens one range of offsets for the hour in which it expires. The owner
/// reads the range from the log again before that hour. All times are of the wall clock.
/// Each call does a bounded amount of work, and counts it (TurnWork). A plain value for one thread.
class ExpiryTimes {
 public:
  static constexpr std::int64_t step_us = 500'000;
  static constexpr Timestamp nothing_due{std::numeric_limits<std::int64_t>::max()};
  /// The memory of FarTimes, in bytes, from which on hours have ranges.
  static constexpr std::size_t far_bytes_most = 8 * limits::MiB;

  explicit ExpiryTimes(std::size_t far_bytes_max = far_bytes_most) : far_bytes_max_(far_bytes_max) {}

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
  /// Messages to read again: from the first to the last of those that expire in one hour.
  struct Unlisted {
    OffsetRange range;  ///< other messages are in it too, and some that the log has dropped
    Timestamp last;     ///< those that expire up to this time are in no set yet; of the others, add none
  };
  /// Removes the next such messages, if their hour is near. `release` would miss them.
  [[nodiscard]] std::optional<Unlisted> take_unlisted(Timestamp wall);
  /// Returns true if a message of `range` may have expired by its exact time, although it is not due by the
  /// rounded one. Looks at few sets: if more are about to be due, returns true.
  [[nodiscard]] bool may_have_expired(OffsetRange range, Timestamp wall) const;
  /// Forgets messages below `first` that are not in `carried` (null: in none), in some sets. Repeated calls
  /// reach all that are there for many messages; the others stay until they are due.
  void sweep(Offset first, const log::OffsetSet* carried = nullptr);

  [[nodiscard]] bool empty() const { return near_.empty() && far_.empty() && ranges_.empty(); }
  /// Returns a time before which `release` has nothing to do, or nothing_due.
  [[nodiscard]] Timestamp next() const;
  /// Returns the heap memory in bytes.
  [[nodiscard]] std::size_t bytes() const {
    return near_bytes_ + far_bytes_ + ranges_.size() * range_entry_bytes;
  }

 private:
  using Near = std::map<std::int64_t, log::OffsetSet>;  // by the number of steps since 1970
  using Far = std::map<std::int64_t, FarTimes>;         // by the number of hours since 1970
  using Ranges = std::map<std::int64_t, OffsetRange>;   // by the number of hours since 1970
  static constexpr std::int64_t steps_of_hour = 3'600'000'000 / step_us;
  static constexpr std::int64_t steps_ahead = 600'000'000 / step_us;  // an hour comes near ten minutes before
  static constexpr std::size_t entry_bytes = 48 + sizeof(Near::value_type);
  static constexpr std::size_t far_entry_bytes = 48 + sizeof(Far::value_type);
  static constexpr std::size_t range_entry_bytes = 48 + sizeof(Ranges::value_type);
  static constexpr std::size_t released_max = 1024;

  /// Returns the first step that begins at `time` or later.
  static std::int64_t step_of(Timestamp time) {
    return time.us / step_us + (time.us > 0 && time.us % step_us != 0 ? 1 : 0);
  }
  /// Returns the time of a step; the greatest time if it is beyond that.
  static Timestamp time_of(std::int64_t step) {
    return {step > nothing_due.us / step_us ? nothing_due.us : step * step_us};
  }
  /// Returns true if messages of the hour are in near_, or come there at the next call of `release`.
  static bool is_near(std::int64_t hour, Timestamp wall) {
    return hour * steps_of_hour <= step_of(wall) + steps_ahead;
  }
  void add_near(OffsetRange range, std::int64_t step);
  void add_to_range(OffsetRange range, std::int64_t hour);
  void bring_near(Timestamp wall);
  void remove_from(Near::iterator at, OffsetRange range);
  void sweep_near(Near::iterator at, Offset first, const log::OffsetSet& carried);

  Near near_;
  Far far_;
  Ranges ranges_;
  const std::size_t far_bytes_max_;
  std::size_t near_bytes_ = 0;
  std::size_t far_bytes_ = 0;
  // `sweep` goes on behind this step and these hours.
  std::int64_t near_swept_ = std::numeric_limits<std::int64_t>::min();
  std::int64_t far_swept_ = std::numeric_limits<std::int64_t>::min();
  std::int64_t ranges_swept_ = std::numeric_limits<std::int64_t>::min();
  Offset swept_for_;     // the log's first offset, for which all were swept the last time
  Offset sweeping_for_;  // the same, for the sweep that has begun
};

}  // namespace lightq::broker
