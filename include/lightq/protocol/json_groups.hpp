/// Settings of groups and filters of dead messages as JSON members, in requests, replies and the catalogue.
/// docs/protocol.md, "set_group" and "list_dead". Layer: protocol.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <lightq/protocol/control.hpp>
#include <lightq/protocol/json_fields.hpp>

namespace lightq::inline v1::protocol::detail {

/// Visits the members of a group's settings: visit("name", member).
template <typename S, typename Visit>
  requires std::is_same_v<std::remove_const_t<S>, GroupSettings>
void visit_fields(S& settings, Visit&& visit) {
  visit("max_attempts", settings.max_attempts);
  visit("backoff_ms", settings.backoff_ms);
  visit("dead_letter_topic", settings.dead_letter_topic);
  visit("dead_waiting_max", settings.dead_waiting_max);
  visit("processing_timeout_ms", settings.processing_timeout_ms);
  visit("pause_when_failing", settings.pause_when_failing);
  visit("dead_letter_expired", settings.dead_letter_expired);
}

/// Reads the settings that are given.
inline GroupChange read_group_change(FieldReader& fields) {
  GroupChange change;
  const auto number = [&](const char* name, std::uint32_t min, std::uint32_t max) {
    return static_cast<std::uint32_t>(fields.number(name, min, max, min));
  };
  if (fields.has("max_attempts"))
    change.max_attempts = number("max_attempts", 0, GroupSettings::attempts_limit);
  if (fields.has("backoff_ms")) {
    auto& steps = change.backoff_ms.emplace();
    for (const auto ms : fields.numbers("backoff_ms", GroupSettings::backoff_steps_max, 0, UINT32_MAX))
      steps.push_back(static_cast<std::uint32_t>(ms));
  }
  if (fields.has("dead_letter_topic")) {
    change.dead_letter_topic = fields.text("dead_letter_topic", 0, limits::topic_name_bytes_max);
    if (!change.dead_letter_topic->empty() && !TopicName::parse(*change.dead_letter_topic))
      fields.fail("dead_letter_topic", "must be the name of a topic, or empty");
  }
  if (fields.has("dead_waiting_max"))
    change.dead_waiting_max = number("dead_waiting_max", 1, GroupSettings::dead_waiting_limit);
  change.default_processing_timeout = fields.is_null("processing_timeout_ms");
  if (fields.has("processing_timeout_ms") && !change.default_processing_timeout)
    change.processing_timeout_ms = number("processing_timeout_ms", 0, UINT32_MAX);
  if (fields.has("pause_when_failing"))
    change.pause_when_failing = fields.boolean("pause_when_failing", false);
  if (fields.has("dead_letter_expired"))
    change.dead_letter_expired = fields.boolean("dead_letter_expired", false);
  return change;
}

inline void write_group_change(OrderedJson& to, const GroupChange& change) {
  if (change.max_attempts) to["max_attempts"] = *change.max_attempts;
  if (change.backoff_ms) to["backoff_ms"] = *change.backoff_ms;
  if (change.dead_letter_topic) to["dead_letter_topic"] = *change.dead_letter_topic;
  if (change.dead_waiting_max) to["dead_waiting_max"] = *change.dead_waiting_max;
  if (change.default_processing_timeout) to["processing_timeout_ms"] = nullptr;
  if (change.processing_timeout_ms) to["processing_timeout_ms"] = *change.processing_timeout_ms;
  if (change.pause_when_failing) to["pause_when_failing"] = *change.pause_when_failing;
  if (change.dead_letter_expired) to["dead_letter_expired"] = *change.dead_letter_expired;
}

/// Returns the change that makes the default settings these ones.
inline GroupChange change_to(const GroupSettings& settings) {
  const GroupSettings defaults;
  GroupChange change;
  if (settings.max_attempts != defaults.max_attempts) change.max_attempts = settings.max_attempts;
  if (settings.backoff_ms != defaults.backoff_ms) change.backoff_ms = settings.backoff_ms;
  if (settings.dead_letter_topic != defaults.dead_letter_topic)
    change.dead_letter_topic = settings.dead_letter_topic;
  if (settings.dead_waiting_max != defaults.dead_waiting_max)
    change.dead_waiting_max = settings.dead_waiting_max;
  change.processing_timeout_ms = settings.processing_timeout_ms;
  if (settings.pause_when_failing) change.pause_when_failing = true;
  if (settings.dead_letter_expired) change.dead_letter_expired = true;
  return change;
}

/// Returns sorted ranges that neither overlap nor touch.
inline std::vector<OffsetRange> joined(std::vector<OffsetRange> ranges) {
  std::ranges::sort(ranges, {}, &OffsetRange::begin);
  std::vector<OffsetRange> joined;
  for (const OffsetRange& range : ranges) {
    if (!joined.empty() && range.begin <= joined.back().end) {
      joined.back().end = std::max(joined.back().end, range.end);
    } else {
      joined.push_back(range);
    }
  }
  return joined;
}

/// Reads single numbers from the list `singles`, unless `takes_singles` is false, and ranges from the list
/// `ranges`.
inline std::vector<OffsetRange> read_ranges(FieldReader& fields, const char* singles, std::size_t count_max,
                                            bool takes_singles = true) {
  std::vector<OffsetRange> ranges;
  const auto numbers = fields.numbers(singles, count_max, 0, number_max);
  for (const auto number : numbers) {
    if (takes_singles) ranges.push_back({{number}, {number + 1}});
  }
  for (const auto& [begin, end] : fields.pairs("ranges", count_max)) {
    if (begin >= end) fields.fail("ranges", "must be pairs [begin, end) with begin < end");
    ranges.push_back({{begin}, {end}});
  }
  if (ranges.empty() && numbers.empty() && (fields.has(singles) || fields.has("ranges")))
    fields.fail(fields.has(singles) ? singles : "ranges", "must not be empty");
  return joined(std::move(ranges));
}

inline void write_ranges(OrderedJson& to, const std::vector<OffsetRange>& ranges) {
  if (ranges.empty()) return;
  OrderedJson list = OrderedJson::array();
  for (const auto& [begin, end] : ranges) list.push_back({begin.value, end.value});
  to["ranges"] = std::move(list);
}

inline DeadFilter read_dead_filter(FieldReader& fields) {
  DeadFilter filter;
  if (fields.has("state"))
    filter.state = fields.word<DeadState>("state", "parked, dead_waiting", std::nullopt);
  if (fields.has("cause"))
    filter.cause = fields.word<DeadCause>("cause", "attempts, rejected, expired", std::nullopt);
  const auto time = [&](const char* name, std::optional<std::uint64_t>& ms) {
    if (fields.has(name)) ms = fields.number(name, 0, DeadFilter::time_ms_max, 0);
  };
  time("failed_since_ms", filter.failed_since_ms);
  time("failed_until_ms", filter.failed_until_ms);
  if (fields.has("key")) filter.key = fields.text("key", 0, limits::key_bytes_max);
  filter.ranges = read_ranges(fields, "offsets", DeadFilter::ranges_max);
  return filter;
}

inline void write_dead_filter(OrderedJson& to, const DeadFilter& filter) {
  if (filter.state) to["state"] = to_word(*filter.state);
  if (filter.cause) to["cause"] = to_word(*filter.cause);
  if (filter.failed_since_ms) to["failed_since_ms"] = *filter.failed_since_ms;
  if (filter.failed_until_ms) to["failed_until_ms"] = *filter.failed_until_ms;
  if (filter.key) to["key"] = *filter.key;
  write_ranges(to, filter.ranges);
}

/// Reads the place to which a group is moved: exactly one of `position`, `offset` and `time_ms`.
inline GroupPlace read_group_place(FieldReader& fields) {
  using From = GroupPlace::From;
  if (!fields.has_one({"position", "offset", "time_ms"}))
    fields.fail("position", "give one of position, offset and time_ms");
  GroupPlace place;
  if (fields.has("offset")) place = {From::offset, fields.number("offset", 0, number_max, 0)};
  if (fields.has("time_ms")) place = {From::time, fields.number("time_ms", 0, DeadFilter::time_ms_max, 0)};
  if (fields.has("position")) place = {fields.word<From>("position", "first, next", std::nullopt), 0};
  return place;
}

inline void write_group_place(OrderedJson& to, const GroupPlace& place) {
  switch (place.from) {
    case GroupPlace::From::first: to["position"] = "first"; return;
    case GroupPlace::From::next: to["position"] = "next"; return;
    case GroupPlace::From::offset: to["offset"] = place.value; return;
    case GroupPlace::From::time: to["time_ms"] = place.value; return;
  }
}

}  // namespace lightq::inline v1::protocol::detail
