/// The due time of a delayed message, as a record has it. docs/log_format.md, "Record". Layer: base.
#pragma once

#include <cstdint>
#include <limits>

#include <lightq/base/limits.hpp>
#include <lightq/base/types.hpp>

namespace lightq::inline v1 {

/// Returns the time at which a message is due. `due`: the attribute of its record. 0 or more: microseconds
/// since 1970. Less than 0: minus the delay in microseconds, counted from `appended`, the append time of the
/// batch in the topic's schedule. Times beyond the range of a Timestamp become its greatest value.
constexpr Timestamp due_time(std::int64_t due, Timestamp appended) {
  constexpr std::int64_t greatest = std::numeric_limits<std::int64_t>::max();
  if (due >= 0) return {due};
  if (due < -greatest || (appended.us > 0 && -due > greatest - appended.us)) return {greatest};
  return {appended.us - due};
}

/// Returns true if the attribute `due` states a time more than limits::delay_us_max after `now`, or a longer
/// delay than that.
constexpr bool is_due_too_far(std::int64_t due, Timestamp now) {
  if (due < 0) return due < -limits::delay_us_max;
  return due > limits::delay_us_max && now.us < due - limits::delay_us_max;
}

}  // namespace lightq::inline v1
