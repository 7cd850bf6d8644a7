/// Filters of delayed messages as JSON members of requests. docs/protocol.md, "list_delayed". Layer:
/// protocol.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <lightq/base/limits.hpp>
#include <lightq/protocol/control.hpp>
#include <lightq/protocol/json_fields.hpp>
#include <lightq/protocol/json_groups.hpp>

namespace lightq::inline v1::protocol::detail {

/// Reads a time in microseconds since 1970. Requires: the member is given.
inline Timestamp read_time_us(FieldReader& fields, const char* name) {
  return {static_cast<std::int64_t>(fields.number(name, 0, number_max, 0))};
}

/// Reads numbers from the list `numbers`, and ranges from the list `ranges`. Each number stays a range of its
/// own, unless one of the ranges has it.
inline std::vector<OffsetRange> read_numbers(FieldReader& fields) {
  auto singles = fields.numbers("numbers", DelayedFilter::ranges_max, 0, number_max);
  std::ranges::sort(singles);
  singles.erase(std::unique(singles.begin(), singles.end()), singles.end());
  auto numbers = read_ranges(fields, "numbers", DelayedFilter::ranges_max, false);
  const auto ranges = numbers;
  for (const std::uint64_t single : singles) {
    const auto is_before = [&](const OffsetRange& range) { return range.end.value <= single; };
    const auto range = std::ranges::partition_point(ranges, is_before);
    if (range == ranges.end() || single < range->begin.value) numbers.push_back({{single}, {single + 1}});
  }
  std::ranges::sort(numbers, {}, &OffsetRange::begin);
  return numbers;
}

inline void write_numbers(OrderedJson& to, const std::vector<OffsetRange>& numbers) {
  OrderedJson singles = OrderedJson::array();
  std::vector<OffsetRange> ranges;
  for (const OffsetRange& range : numbers) {
    if (distance(range.begin, range.end) == 1) {
      singles.push_back(range.begin.value);
    } else {
      ranges.push_back(range);
    }
  }
  if (!singles.empty()) to["numbers"] = std::move(singles);
  write_ranges(to, ranges);
}

inline DelayedFilter read_delayed_filter(FieldReader& fields) {
  DelayedFilter filter;
  if (fields.has("due_from_us")) filter.due_from = read_time_us(fields, "due_from_us");
  if (fields.has("due_until_us")) filter.due_until = read_time_us(fields, "due_until_us");
  if (fields.has("id")) filter.id = fields.text("id", 1, limits::message_id_bytes_max);
  filter.numbers = read_numbers(fields);
  return filter;
}

inline void write_delayed_filter(OrderedJson& to, const DelayedFilter& filter) {
  if (filter.due_from) to["due_from_us"] = filter.due_from->us;
  if (filter.due_until) to["due_until_us"] = filter.due_until->us;
  if (filter.id) to["id"] = *filter.id;
  write_numbers(to, filter.numbers);
}

/// Reads a place, of which both members are given or none.
inline std::optional<DelayedPlace> read_delayed_place(FieldReader& fields, const char* due_name,
                                                      const char* number_name) {
  if (!fields.has(due_name) && !fields.has(number_name)) return std::nullopt;
  if (!fields.has(due_name)) fields.fail(due_name, "missing; a place has a due time and a number");
  if (!fields.has(number_name)) fields.fail(number_name, "missing; a place has a due time and a number");
  const Timestamp due = read_time_us(fields, due_name);
  return DelayedPlace{due, fields.number(number_name, 0, number_max, 0)};
}

inline void write_delayed_place(OrderedJson& to, const DelayedPlace& place, const char* due_name,
                                const char* number_name) {
  to[due_name] = place.due.us;
  to[number_name] = place.number;
}

/// Reads the new due time of a message: exactly one of `deliver_at_us` and `delay_us`.
inline std::int64_t read_new_due(FieldReader& fields) {
  if (!fields.has_one({"deliver_at_us", "delay_us"})) {
    fields.fail("deliver_at_us", "give either deliver_at_us or delay_us");
    return 0;
  }
  std::int64_t due = 0;
  if (fields.has("deliver_at_us")) due = read_time_us(fields, "deliver_at_us").us;
  if (fields.has("delay_us"))
    due = -static_cast<std::int64_t>(fields.number("delay_us", 0, limits::delay_us_max, 0));
  return due;
}

inline void write_new_due(OrderedJson& to, std::int64_t due) {
  if (due < 0) {
    to["delay_us"] = -due;
  } else {
    to["deliver_at_us"] = due;
  }
}

}  // namespace lightq::inline v1::protocol::detail
