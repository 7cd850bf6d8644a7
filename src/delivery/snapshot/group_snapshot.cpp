/// Turns the state of a group into the form in which it is saved. Layer: delivery.
#include "delivery/snapshot/group_snapshot.hpp"

#include <algorithm>
#include <queue>
#include <utility>

#include "delivery/state/set_merge.hpp"

namespace lightq::broker {

namespace {

using Delayed = std::vector<std::pair<Timestamp, log::OffsetSet>>;

/// Returns the delayed messages in `bounds` by the wall time when they are due. If there are more times than
/// are allowed, the last ones become one: the latest of them, so that no message is early.
Delayed delayed_of(const WaitingMessages& waiting, OffsetRange bounds, const ClockReading& clocks) {
  Delayed delayed;
  const Offset first = std::clamp(waiting.due_from(), bounds.begin, bounds.end);
  for (const auto& [due, messages] : waiting.due().sets()) {
    log::OffsetSet kept = clipped(messages, {first, bounds.end});
    if (kept.empty()) continue;
    const Timestamp time = clocks.wall_time_of(due);
    const bool is_full = delayed.size() == log::Unfinished::delayed_max;
    if (!delayed.empty() && (is_full || delayed.back().first == time)) {
      delayed.back().first = time;
      add_all(delayed.back().second, kept);
    } else {
      delayed.emplace_back(time, std::move(kept));
    }
  }
  return delayed;
}

void append_counted(CountedRanges& to, const CountedRange& added) {
  if (!to.empty() && to.back().range.end == added.range.begin && to.back().deliveries == added.deliveries) {
    to.back().range.end = added.range.end;
  } else {
    to.push_back(added);
  }
}

/// An entry of a list, and its number in the order in which they were added.
struct NumberedEntry {
  CountedRange entry;
  std::size_t number;
  bool operator<(const NumberedEntry& other) const { return number < other.number; }
};

std::vector<NumberedEntry> numbered(const InFlightList& list, OffsetRange bounds) {
  std::vector<NumberedEntry> entries;
  list.for_each([&](const CountedRange& entry) {
    const OffsetRange range{std::max(entry.range.begin, bounds.begin), std::min(entry.range.end, bounds.end)};
    if (range.begin < range.end) entries.push_back({{range, entry.deliveries}, entries.size()});
  });
  std::ranges::sort(entries, {}, [](const NumberedEntry& each) { return each.entry.range.begin; });
  return entries;
}

/// Returns the entries of the list in `bounds` as ascending ranges that do not overlap. If a message has
/// several entries, the one that was added last counts.
CountedRanges ascending(const InFlightList& list, OffsetRange bounds) {
  const std::vector<NumberedEntry> entries = numbered(list, bounds);
  CountedRanges ranges;
  std::priority_queue<NumberedEntry> here;  // entries that begin at `at` or before, the last added on top
  auto next = entries.begin();
  for (Offset at;;) {
    while (!here.empty() && here.top().entry.range.end <= at) here.pop();
    if (here.empty()) {
      if (next == entries.end()) return ranges;
      at = next->entry.range.begin;
    }
    for (; next != entries.end() && next->entry.range.begin <= at; ++next) here.push(*next);
    const CountedRange& top = here.top().entry;
    const Offset end =
        next == entries.end() ? top.range.end : std::min(top.range.end, next->entry.range.begin);
    append_counted(ranges, {{at, end}, top.deliveries});
    at = end;
  }
}

/// Returns the parts of the ranges that are not in `set`.
CountedRanges outside(const log::OffsetSet& set, const CountedRanges& ranges) {
  CountedRanges parts;
  RunFinder finder(set, ranges.size());
  for (const CountedRange& each : ranges) {
    for (Offset at = each.range.begin; at < each.range.end;) {
      const auto& run = finder.behind(at);
      const Offset end = run ? std::min(each.range.end, run->begin) : each.range.end;
      if (at < end) parts.push_back({{at, end}, each.deliveries});
      at = run ? run->end : each.range.end;
    }
  }
  return parts;
}

std::vector<OffsetRange> offsets_of(const CountedRanges& ranges) {
  std::vector<OffsetRange> offsets;
  offsets.reserve(ranges.size());
  for (const CountedRange& each : ranges) offsets.push_back(each.range);
  return offsets;
}

}  // namespace

// Takes time by the messages in flight, rather than by those in the queue, if the former are few.
log::Unfinished GroupSnapshot::unfinished() const {
  const OffsetRange bounds{committed, std::max(committed, next)};
  log::OffsetSet messages = clipped(waiting.ready(), bounds);
  add_all(messages, clipped(waiting.alone(), bounds));
  add_all(messages, clipped(waiting.delayed(), bounds));
  log::OffsetSet dead_messages;
  if (dead != nullptr) {
    dead_messages = clipped(dead->parked(), bounds);
    add_all(dead_messages, clipped(dead->waiting(), bounds));
    add_all(messages, dead_messages);
  }
  const CountedRanges others = outside(messages, ascending(in_flight, bounds));
  add_ranges(messages, offsets_of(others));
  std::vector<log::OffsetSet> bits;
  for (const log::OffsetSet& bit : waiting.counts().sets()) bits.push_back(clipped(bit, bounds));
  DeliveryCounts counts(std::move(bits));
  counts.add(others);
  log::SavedDead saved_dead;
  if (dead != nullptr) {
    dead_messages.for_each([&](OffsetRange run) {
      for (OffsetRange part = run; part.begin < run.end; part = {part.end, run.end}) {
        part.end = dead->attempts().end_of_equal(part);
        counts.set(part, dead->attempts().of(part.begin));
      }
    });
    saved_dead = dead->saved(bounds, without(messages, dead_messages));
  }
  return {next, std::move(messages), delayed_of(waiting, bounds, clocks), counts.sets(),
          std::move(saved_dead)};
}

}  // namespace lightq::broker
