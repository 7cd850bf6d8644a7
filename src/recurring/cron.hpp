/// A cron rule: five fields that select minutes of the local time. Layer: recurring.
#pragma once

#include <bitset>
#include <compare>
#include <cstdint>
#include <optional>
#include <string_view>

#include <lightq/base/result.hpp>

namespace lightq::broker {

/// A minute of a local time, as minutes since 1970-01-01T00:00 of that time. It has no zone: it may exist not
/// at all, once or twice.
struct LocalMinute {
  std::int64_t value = 0;
  friend constexpr auto operator<=>(LocalMinute, LocalMinute) = default;
};

/// The minutes that a text such as `0 9 * * MON-FRI` selects. docs/recurring.md, "Cron rules", describes the
/// fields. If both the day of the month and the day of the week are restricted, a day that matches one of
/// them is selected. A field that begins with `*` is not restricted in this sense. Immutable.
///
///     Cron::parse("0 9 * * MON-FRI")->next_after(saturday_noon);  // Monday, 9:00
class Cron {
 public:
  /// The longest text of a rule, in bytes.
  static constexpr std::size_t text_bytes_max = 256;

  /// Parses five fields. Errors: invalid_argument, with the field and the fault; also if no date matches,
  /// such as February 30.
  static Result<Cron> parse(std::string_view text);

  /// Returns the first selected minute behind `minute`. Nothing: there is none within `search_years`.
  [[nodiscard]] std::optional<LocalMinute> next_after(LocalMinute minute) const;
  /// Returns the last selected minute that is `minute` or before it. Nothing: there is none within
  /// `search_years`.
  [[nodiscard]] std::optional<LocalMinute> last_until(LocalMinute minute) const;
  [[nodiscard]] bool matches(LocalMinute minute) const;

  /// The years that a search covers. The rarest date is a February 29 on one day of the week: around the year
  /// 2100, 40 years pass between two of them.
  static constexpr int search_years = 41;

 private:
  friend class CronReader;
  Cron() = default;
  [[nodiscard]] bool matches_day(std::int64_t day) const;

  std::bitset<60> minutes_;
  std::bitset<24> hours_;
  std::bitset<32> days_;      // of the month, 1 to 31
  std::bitset<13> months_;    // 1 to 12
  std::bitset<7> week_days_;  // 0: Sunday
  bool either_day_ = false;   // one of days_ and week_days_ suffices
};

}  // namespace lightq::broker
