/// The number of deliveries of each message in a group's queue, as sets of offsets. Layer: delivery.
#include "delivery/state/delivery_counts.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "admission/turn_work.hpp"
#include "delivery/state/set_merge.hpp"

namespace lightq::broker {

namespace {
/// Returns the number that has a bit for each set with a message; or the number of deliveries for such a
/// number.
constexpr std::uint32_t inverted(std::uint32_t deliveries) {
  return deliveries ^ DeliveryCounts::by_default;
}
}  // namespace

DeliveryCounts::DeliveryCounts(std::vector<log::OffsetSet> sets) : sets_(std::move(sets)) {
  if (sets_.size() > log::Unfinished::delivery_bits_max) sets_.resize(log::Unfinished::delivery_bits_max);
  for (const log::OffsetSet& set : sets_) bytes_ += set.bytes();
  bytes_ += sets_.capacity() * sizeof(log::OffsetSet);
  drop_empty();
}

template <typename Change>
void DeliveryCounts::change(log::OffsetSet& set, Change&& change) {
  const std::uint64_t size = set.size();
  bytes_ -= set.bytes();
  change(set);
  bytes_ += set.bytes();
  TurnWork::add(set.size() == size ? TurnWork::range_passed : TurnWork::set_changed);
}

void DeliveryCounts::resize(std::size_t sets) {
  bytes_ -= sets_.capacity() * sizeof(log::OffsetSet);
  sets_.resize(sets);
  if (sets == 0) sets_.shrink_to_fit();
  bytes_ += sets_.capacity() * sizeof(log::OffsetSet);
}

void DeliveryCounts::drop_empty() {
  std::size_t used = sets_.size();
  while (used != 0 && sets_[used - 1].empty()) --used;
  if (used != sets_.size()) resize(used);
}

void DeliveryCounts::set(OffsetRange range, std::uint32_t deliveries) {
  if (range.begin >= range.end) return;
  const std::uint32_t bits = inverted(deliveries);
  const auto needed = static_cast<std::size_t>(std::bit_width(bits));
  if (sets_.size() < needed) resize(needed);
  for (std::size_t bit = 0; bit < sets_.size(); ++bit) {
    if ((bits >> bit & 1) != 0) {
      change(sets_[bit], [&](log::OffsetSet& set) { set.add(range); });
    } else if (!sets_[bit].empty()) {
      change(sets_[bit], [&](log::OffsetSet& set) { set.remove(range); });
    }
  }
  drop_empty();
}

void DeliveryCounts::add(std::span<const CountedRange> ranges) {
  std::uint32_t used = 0;
  for (const CountedRange& each : ranges) used |= inverted(each.deliveries);
  const auto needed = static_cast<std::size_t>(std::bit_width(used));
  if (sets_.size() < needed) resize(needed);
  std::vector<OffsetRange> of_bit;
  for (std::size_t bit = 0; bit < needed; ++bit) {
    if ((used >> bit & 1) == 0) continue;
    of_bit.clear();
    for (const CountedRange& each : ranges) {
      if ((inverted(each.deliveries) >> bit & 1) == 0) continue;
      if (!of_bit.empty() && of_bit.back().end == each.range.begin) {
        of_bit.back().end = each.range.end;
      } else {
        of_bit.push_back(each.range);
      }
    }
    TurnWork::add(TurnWork::record_passed * ranges.size());
    bytes_ -= sets_[bit].bytes();
    add_ranges(sets_[bit], of_bit);
    bytes_ += sets_[bit].bytes();
  }
}

void DeliveryCounts::remove(OffsetRange range) {
  if (empty() || range.begin >= range.end) return;
  for (log::OffsetSet& each : sets_) {
    if (!each.empty()) change(each, [&](log::OffsetSet& set) { set.remove(range); });
  }
  drop_empty();
}

void DeliveryCounts::clear() {
  sets_.clear();
  bytes_ = 0;
  sets_.shrink_to_fit();
}

std::uint32_t DeliveryCounts::of(Offset offset) const {
  std::uint32_t bits = 0;
  for (std::size_t bit = 0; bit < sets_.size(); ++bit) {
    if (sets_[bit].empty()) continue;
    TurnWork::add(TurnWork::range_passed);
    if (sets_[bit].contains(offset)) bits |= std::uint32_t{1} << bit;
  }
  return inverted(bits);
}

Offset DeliveryCounts::end_of_equal(OffsetRange range) const {
  Offset end = range.end;
  for (const log::OffsetSet& set : sets_) {
    if (set.empty()) continue;
    TurnWork::add(TurnWork::range_passed);
    const auto run = set.first_behind(range.begin);
    if (run) end = std::min(end, run->begin <= range.begin ? run->end : run->begin);
  }
  return end;
}

}  // namespace lightq::broker
