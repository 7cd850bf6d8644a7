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
// The most parts that are sorted again in one call: about a millisecond's work. Looking for them in so many
// sets of due times, once for all, counts as one more.
constexpr std::size_t sorted_max = 512;
constexpr std::size_t sets_per_sorted = 16;
constexpr std::uint64_t no_offset = ~std::uint64_t{0};
}  // namespace

OffsetRange WaitingMessages::kept_of(OffsetRange range) const {
  return {std::min(std::max(range.begin, given_up_before_), range.end), range.end};
}

void WaitingMessages::set_single(OffsetRange range) {
  const CountedRange counted{range, 0};
  for (const OffsetRange& part : kept_of(std::span(&counted, 1)).ranges) single_.add(part);
}

std::uint64_t WaitingMessages::add(OffsetRange range, std::uint32_t deliveries) {
  if (range.begin >= range.end) return 0;
  if (is_cut(range)) {
    const CountedRange counted{range, deliveries};
    return add(std::span(&counted, 1));
  }
  const OffsetRange kept = kept_of(range);
  TurnWork::add(TurnWork::set_changed);
  (deliveries < alone_from_ ? ready_ : alone_).add(kept);
  counts_.set(kept, deliveries);
  return distance(range.begin, kept.begin);
}

std::uint64_t WaitingMessages::add_delayed(OffsetRange range, std::uint32_t deliveries, SteadyTime due) {
  if (range.begin >= range.end) return 0;
  if (is_cut(range)) {
    const CountedRange counted{range, deliveries};
    return add_delayed(std::span(&counted, 1), due);
  }
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
  const auto keep = [&](OffsetRange range, std::uint32_t deliveries) {
    kept.counted.push_back({range, deliveries});
    if (!kept.ranges.empty() && kept.ranges.back().end == range.begin) {
      kept.ranges.back().end = range.end;
    } else {
      kept.ranges.push_back(range);
    }
  };
  for (const CountedRange& each : ranges) {
    split(
        each.range, [&](OffsetRange part) { keep(part, each.deliveries); },
        [&](OffsetRange gone) { kept.given_up += distance(gone.begin, gone.end); });
  }
  return kept;
}

std::uint64_t WaitingMessages::add(std::span<const CountedRange> ranges) {
  const Kept kept = kept_of(ranges);
  if (alone_from_ == no_deliveries) {
    add_ranges(ready_, kept.ranges);
  } else {
    std::vector<OffsetRange> ready;
    std::vector<OffsetRange> alone;
    for (const CountedRange& each : kept.counted)
      (each.deliveries < alone_from_ ? ready : alone).push_back(each.range);
    add_ranges(ready_, ready);
    add_ranges(alone_, alone);
  }
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
  log::OffsetSet messages = saved.messages;
  saved.dead.parked.for_each([&](OffsetRange run) { messages.remove(run); });
  saved.dead.outbox.for_each([&](OffsetRange run) { messages.remove(run); });
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
  if (due_.messages() == messages.size()) {
    delayed_ = messages;
  } else {
    delayed_ = merged(std::move(parts));
    ready_ = without(messages, delayed_);
  }
  counts_ = DeliveryCounts(saved.delivery_bits);
  saved.dead.parked.for_each([&](OffsetRange run) { counts_.remove(run); });
  saved.dead.outbox.for_each([&](OffsetRange run) { counts_.remove(run); });
}

/// Messages below given_up_before_ may still be in due_. They are not in delayed_, and never will be again.
SteadyTime WaitingMessages::release(SteadyTime now) {
  due_.release(now, released_max, [&](OffsetRange run) {
    delayed_.remove(run, [&](OffsetRange part) {
      TurnWork::add(release_work);
      make_deliverable(part);
    });
  });
  if (delayed_.empty()) due_.clear();
  return std::max(due_.next(), now);
}

/// Adds messages that have a number of deliveries.
void WaitingMessages::make_deliverable(OffsetRange range) {
  if (alone_from_ == no_deliveries) return ready_.add(range);
  for (OffsetRange part = range; part.begin < range.end; part = {part.end, range.end}) {
    part.end = counts_.end_of_equal(part);
    (counts_.of(part.begin) < alone_from_ ? ready_ : alone_).add(part);
  }
}

std::optional<Offset> WaitingMessages::sort_again(Offset from, std::uint32_t dead_from,
                                                  std::vector<CountedRange>& dead) {
  std::vector<OffsetRange> dead_delayed;
  const std::size_t for_due = std::min(due_.sets().size() / sets_per_sorted, sorted_max / 2);
  for (std::size_t work = for_due; work < sorted_max; ++work) {
    std::optional<OffsetRange> run = deliverable_behind(from);
    const auto delayed = delayed_.first_behind(from);
    const bool is_delayed = delayed && (!run || delayed->begin < run->begin);
    if (is_delayed) run = delayed;
    if (!run) {
      due_.remove(dead_delayed);
      return std::nullopt;
    }
    OffsetRange part{std::max(run->begin, from), run->end};
    part.end = counts_.end_of_equal(part);
    from = part.end;
    const std::uint32_t deliveries = counts_.of(part.begin);
    TurnWork::add(4 * TurnWork::range_passed);
    if (deliveries >= dead_from) {
      dead.push_back({part, deliveries});
      if (is_delayed) {
        delayed_.remove(part);
        dead_delayed.push_back(part);
      }
      remove_ready(part);
    } else if (!is_delayed) {
      const bool becomes_alone = deliveries >= alone_from_;
      TurnWork::add(TurnWork::set_changed);
      (becomes_alone ? ready_ : alone_).remove(part);
      (becomes_alone ? alone_ : ready_).add(part);
    }
  }
  due_.remove(dead_delayed);
  return from;
}

std::vector<OffsetRange> WaitingMessages::finish(OffsetRange range, std::size_t& parts_left) {
  std::vector<OffsetRange> finished;
  std::vector<OffsetRange> of_delayed;
  for (; parts_left != 0; --parts_left) {
    std::optional<OffsetRange> run = deliverable_behind(range.begin);
    const auto delayed = delayed_.first_behind(range.begin);
    const bool is_delayed = delayed && (!run || delayed->begin < run->begin);
    if (is_delayed) run = delayed;
    if (!run || range.end <= run->begin) break;
    const OffsetRange part{std::max(range.begin, run->begin), std::min(range.end, run->end)};
    if (is_delayed) {
      delayed_.remove(part);
      of_delayed.push_back(part);
    }
    remove_ready(part);
    finished.push_back(part);
    range.begin = part.end;
  }
  if (!of_delayed.empty()) due_.remove(of_delayed);
  return finished;
}

std::optional<Offset> WaitingMessages::take(const log::OffsetSet& wanted, Offset from, std::size_t parts_max,
                                            CountedRanges& taken) {
  std::vector<OffsetRange> of_delayed;
  std::optional<Offset> next = from;
  for (; parts_max != 0 && next; --parts_max) {
    TurnWork::add(2 * TurnWork::range_passed);
    const auto waiting = first_behind(*next);
    const auto run = waiting ? wanted.first_behind(std::max(*next, waiting->begin)) : std::nullopt;
    if (!run) {
      next.reset();
      break;
    }
    OffsetRange part{std::max({*next, waiting->begin, run->begin}), std::min(waiting->end, run->end)};
    next = part.begin;
    if (part.end <= part.begin) continue;
    part.end = counts_.end_of_equal(part);
    taken.push_back({part, counts_.of(part.begin)});
    next = part.end;
    TurnWork::add(3 * TurnWork::set_changed);
    if (delayed_.contains(part.begin)) {
      delayed_.remove(part);
      of_delayed.push_back(part);
    }
    remove_ready(part);
  }
  if (!of_delayed.empty()) due_.remove(of_delayed);
  return next;
}

Offset WaitingMessages::first() const {
  Offset first{no_offset};
  for (const log::OffsetSet* const set : {&ready_, &alone_, &delayed_}) {
    if (!set->empty()) first = std::min(first, set->first());
  }
  return first;
}

WaitingMessages::Front WaitingMessages::front(bool from_alone) const {
  if (from_alone) {
    const Offset first = alone_.first();
    return {{first, first + 1}, counts_.of(first)};
  }
  OffsetRange range = *ready_.first_behind(ready_.first());
  if (!single_.empty()) {
    if (const auto single = single_.first_behind(range.begin); single && single->begin < range.end)
      range.end = range.begin < single->begin ? single->begin : range.begin + 1;
  }
  range.end = counts_.end_of_equal(range);
  return {range, counts_.of(range.begin)};
}

std::uint64_t WaitingMessages::give_up_before(Offset first, const log::OffsetSet& carried, Offset from) {
  if (carried.empty()) carried_.clear();
  if (carried.empty() && (empty() || first <= this->first())) return 0;
  TurnWork::add(2 * TurnWork::range_passed);
  given_up_before_ = std::max(given_up_before_, first);
  carried_ = carried;
  const auto messages = [&] { return ready_.size() + alone_.size() + delayed_.size(); };
  const std::uint64_t before = messages();
  const std::size_t bytes_before = bytes();
  std::vector<OffsetRange> no_longer_due;
  for_gaps(carried, {from, first}, [&](OffsetRange gone) {
    ready_.remove(gone);
    alone_.remove(gone);
    single_.remove(gone);
    if (carried.empty()) {
      delayed_.remove(gone);
    } else {
      delayed_.remove(gone, [&](OffsetRange part) { no_longer_due.push_back(part); });
    }
    counts_.remove(gone);
  });
  // Without carried messages, due_ may keep them for a while; see sweep_due.
  carried.empty() ? sweep_due() : due_.remove(no_longer_due);
  count_freed(bytes_before - std::min(bytes_before, bytes()));
  return before - messages();
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
  alone_.clear();
  single_.clear();
  delayed_.clear();
  counts_.clear();
  due_.clear();
}

}  // namespace lightq::broker
