/// Keeps the times of first failures, in few sets. Layer: delivery.
#include "delivery/attempts/first_failures.hpp"

#include <algorithm>
#include <utility>

#include "admission/turn_work.hpp"
#include "delivery/state/set_merge.hpp"

namespace lightq::broker {

namespace {

/// Rounds down to a multiple of `step_us`. Times before 1970 become 1970.
Timestamp rounded_down(Timestamp time, std::int64_t step_us) {
  return {std::max<std::int64_t>(time.us, 0) / step_us * step_us};
}

}  // namespace

void FirstFailures::add(OffsetRange range, Timestamp time) {
  const Timestamp at = rounded_down(time, step_us_);
  auto place = std::ranges::lower_bound(sets_, at, {}, &log::TimedSets::value_type::first);
  for (Offset from = range.begin; from < range.end;) {
    const auto known = all_.first_behind(from);
    const Offset end = known ? std::clamp(known->begin, from, range.end) : range.end;
    if (from < end) {
      if (place == sets_.end() || place->first != at) place = sets_.emplace(place, at, log::OffsetSet());
      TurnWork::add(2 * TurnWork::set_changed);
      place->second.add({from, end});
      all_.add({from, end});
    }
    from = known ? std::max(end, known->end) : range.end;
  }
  while (sets_.size() > times_max) merge_times();
}

/// Doubles the step of the times.
void FirstFailures::merge_times() {
  step_us_ *= 2;
  log::TimedSets merged;
  for (auto& [time, messages] : sets_) {
    const Timestamp at = rounded_down(time, step_us_);
    if (merged.empty() || merged.back().first != at) {
      merged.emplace_back(at, std::move(messages));
    } else {
      add_all(merged.back().second, messages);
    }
  }
  sets_ = std::move(merged);
}

std::optional<Timestamp> FirstFailures::of(Offset offset) const {
  if (!all_.contains(offset)) return std::nullopt;
  for (const auto& [time, messages] : sets_) {
    if (messages.contains(offset)) return time;
  }
  return std::nullopt;
}

void FirstFailures::remove(OffsetRange range) {
  if (range.begin >= range.end || all_.empty()) return;
  const auto first = all_.first_behind(range.begin);
  if (!first || range.end <= first->begin) return;
  TurnWork::add(TurnWork::set_changed * sets_.size());
  all_.remove(range);
  for (auto& [time, messages] : sets_) messages.remove(range);
  std::erase_if(sets_, [](const auto& each) { return each.second.empty(); });
  if (sets_.size() <= times_max / 4) step_us_ = step_us_min;  // there is space for exact times again
}

void FirstFailures::clear() {
  sets_.clear();
  all_.clear();
  step_us_ = step_us_min;
}

std::size_t FirstFailures::bytes() const {
  std::size_t bytes = all_.bytes() + sets_.capacity() * sizeof(log::TimedSets::value_type);
  for (const auto& [time, messages] : sets_) bytes += messages.bytes();
  return bytes;
}

void FirstFailures::restore(log::TimedSets sets) {
  clear();
  sets_ = std::move(sets);
  for (const auto& [time, messages] : sets_) add_all(all_, messages);
  while (sets_.size() > times_max) merge_times();
}

}  // namespace lightq::broker
