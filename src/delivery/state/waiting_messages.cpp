/// The messages of a group that wait for another delivery. Layer: delivery.
#include "delivery/state/waiting_messages.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "delivery/state/set_merge.hpp"

namespace lightq::broker {

namespace {
// The most ranges that become ready in one call: less than a millisecond's work.
constexpr std::size_t released_max = 1024;
// The work for each range: both sets change where they changed last, which takes less time than elsewhere.
constexpr std::uint64_t release_work = 6 * TurnWork::range_passed;
}  // namespace

OffsetRange WaitingMessages::kept_of(OffsetRange range) const {
  return {std::min(std::max(range.begin, given_up_before_), range.end), range.end};
}

std::uint64_t WaitingMessages::add(OffsetRange range, std::uint32_t deliveries) {
  if (range.begin >= range.end) return 0;
  const OffsetRange kept = kept_of(range);
  TurnWork::add(TurnWork::set_changed);
  ready_.add(kept);
  counts_.set(kept, deliveries);
  return distance(range.begin, kept.begin);
}

std::uint64_t WaitingMessages::add_delayed(OffsetRange range, std::uint32_t deliveries, SteadyTime due) {
  if (range.begin >= range.end) return 0;
  const OffsetRange kept = kept_of(range);
  TurnWork::add(TurnWork::set_changed);
  delayed_.add(kept);
  counts_.set(kept, deliveries);
  due_.add(kept, due);
  return distance(range.begin, kept.begin);
}

WaitingMessages::Kept WaitingMessages::kept_of(std::span<const CountedRange> ranges) const {
  Kept kept;
  kept.counted.reserve(ranges.size());
  for (const CountedRange& each : ranges) {
    const OffsetRange range = kept_of(each.range);
    kept.given_up += distance(each.range.begin, range.begin);
    if (range.begin >= range.end) continue;
    kept.counted.push_back({range, each.deliveries});
    if (!kept.ranges.empty() && kept.ranges.back().end == range.begin) {
      kept.ranges.back().end = range.end;
    } else {
      kept.ranges.push_back(range);
    }
  }
  return kept;
}

std::uint64_t WaitingMessages::add(std::span<const CountedRange> ranges) {
  const Kept kept = kept_of(ranges);
  add_ranges(ready_, kept.ranges);
  counts_.add(kept.counted);
  return kept.given_up;
}

std::uint64_t WaitingMessages::add_delayed(std::span<const CountedRange> ranges, SteadyTime due) {
  const Kept kept = kept_of(ranges);
  add_ranges(delayed_, kept.ranges);
  counts_.add(kept.counted);
  due_.add(kept.ranges, due);
  return kept.given_up;
}

void WaitingMessages::restore(const log::Unfinished& saved, const ClockReading& clocks) {
  clear();
  // After several restarts there could be more and more times, each different by a few milliseconds.
  const bool roughly = saved.delayed.size() > DueTimes::rounded_max;
  const auto due_of = [&](const auto& part) {
    return DueTimes::restored(clocks.steady, clocks.steady_time_of(part.first), roughly);
  };
  std::vector<const log::OffsetSet*> parts;
  for (auto part = saved.delayed.begin(); part != saved.delayed.end();) {
    const SteadyTime due = due_of(*part);
    const std::size_t first = parts.size();
    for (; part != saved.delayed.end() && due_of(*part) == due; ++part) parts.push_back(&part->second);
    due_.add(merged({parts.begin() + static_cast<std::ptrdiff_t>(first), parts.end()}), due);
  }
  if (due_.messages() == saved.messages.size()) {
    delayed_ = saved.messages;
  } else {
    delayed_ = merged(std::move(parts));
    ready_ = without(saved.messages, delayed_);
  }
  counts_ = DeliveryCounts(saved.delivery_bits);
}

/// Messages below given_up_before_ may still be in due_. They are not in delayed_, and never will be again.
SteadyTime WaitingMessages::release(SteadyTime now) {
  due_.release(now, released_max, [&](OffsetRange run) {
    delayed_.remove(run, [&](OffsetRange part) {
      TurnWork::add(release_work);
      ready_.add(part);
    });
  });
  if (delayed_.empty()) due_.clear();
  return std::max(due_.next(), now);
}

Offset WaitingMessages::first() const {
  if (delayed_.empty()) return ready_.first();
  if (ready_.empty()) return delayed_.first();
  return std::min(ready_.first(), delayed_.first());
}

WaitingMessages::Front WaitingMessages::front() const {
  OffsetRange range = *ready_.first_behind(ready_.first());
  range.end = counts_.end_of_equal(range);
  return {range, counts_.of(range.begin)};
}

std::uint64_t WaitingMessages::give_up_before(Offset first) {
  if (empty() || first <= this->first()) return 0;
  TurnWork::add(2 * TurnWork::range_passed);
  given_up_before_ = std::max(given_up_before_, first);
  const std::uint64_t before = ready_.size() + delayed_.size();
  const std::size_t bytes_before = bytes();
  const OffsetRange gone{Offset{0}, first};
  ready_.remove(gone);
  delayed_.remove(gone);
  counts_.remove(gone);
  sweep_due();
  count_freed(bytes_before - std::min(bytes_before, bytes()));
  return before - ready_.size() - delayed_.size();
}

/// Removes given-up messages from due_ when they are the larger part of it. So there are never many, and each
/// costs constant time on average.
void WaitingMessages::sweep_due() {
  if (due_.messages() <= 2 * delayed_.size()) return;
  if (delayed_.empty()) return due_.clear();
  due_.remove_before(given_up_before_);
}

/// Counts the freeing of memory as work.
void WaitingMessages::count_freed(std::size_t bytes) {
  TurnWork::add(bytes / log::offset_leaf_bytes_max * TurnWork::range_passed);
}

void WaitingMessages::clear() {
  count_freed(bytes());
  ready_.clear();
  delayed_.clear();
  counts_.clear();
  due_.clear();
}

}  // namespace lightq::broker
