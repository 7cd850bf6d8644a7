/// The times at which a recurring schedule fires. Layer: recurring.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>

#include "recurring/cron.hpp"
#include "recurring/time_zone.hpp"

namespace lightq::broker {

/// The moments at which a cron rule selects a minute of a zone's local time. Each selected local time is one
/// firing. If clocks are set forward over it, the firing is at the moment of that; several such firings are
/// one. If the local time comes twice, the firing is at the first of the two. A firing is at a whole second.
/// Immutable. Thread: any.
class FiringTimes {
 public:
  /// Errors: those of Cron::parse and TimeZone::find; invalid_argument if no date matches.
  static Result<FiringTimes> of(std::string_view cron, std::string_view zone);

  /// Returns the first firing behind `time`. Nothing: there is none within Cron::search_years.
  [[nodiscard]] std::optional<Timestamp> next_after(Timestamp time) const;
  /// Returns the last firing behind `begin` and not behind `end`; nothing if there is none.
  [[nodiscard]] std::optional<Timestamp> last_within(Timestamp begin, Timestamp end) const;

 private:
  FiringTimes(const Cron& cron, const TimeZone& zone) : cron_(cron), zone_(zone) {}
  [[nodiscard]] std::int64_t moment_of(LocalMinute minute) const;

  Cron cron_;
  TimeZone zone_;
};

/// Returns a firing's time as text: `2026-11-27T08:00:00Z`.
std::string firing_text(Timestamp firing);
/// Returns the message id of a firing: `schedule/NAME/TIME`.
std::string firing_id(std::string_view schedule, Timestamp firing);

}  // namespace lightq::broker
