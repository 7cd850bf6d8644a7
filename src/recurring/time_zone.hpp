/// Local times of a named time zone. Layer: recurring.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <lightq/base/result.hpp>

namespace date {
class time_zone;
}

namespace lightq::broker {

/// Converts between UTC and the local time of a zone, by the system's time zone data. Local times and moments
/// are seconds since 1970, of the local time and of UTC. A copy costs nothing. The data are read once in the
/// life of the process: after an update of the system's data, the broker needs a restart. They cover daylight
/// saving times until the year 2037. Thread: any.
class TimeZone {
 public:
  /// Returns the zone `UTC`, which needs no data.
  TimeZone() = default;
  /// Finds a zone by its name, such as `Europe/Berlin`. Errors: invalid_argument (no such zone);
  /// not_supported (the system has no time zone data that can be used).
  static Result<TimeZone> find(std::string_view name);

  /// Returns the local time at a moment.
  [[nodiscard]] std::int64_t local_of(std::int64_t moment) const;
  /// Returns the latest local time that clocks of the zone have shown until a moment. After clocks were set
  /// back that is later than local_of, for a while.
  [[nodiscard]] std::int64_t latest_local_until(std::int64_t moment) const;
  /// Returns the moment at which clocks show this local time: the first one, if there are two. If there is
  /// none, because clocks were set forward: the moment of that. It never decreases with `local`.
  [[nodiscard]] std::int64_t moment_of(std::int64_t local) const;

 private:
  explicit TimeZone(const date::time_zone* zone) : zone_(zone) {}

  const date::time_zone* zone_ = nullptr;  // null: UTC
};

}  // namespace lightq::broker
