/// The times when messages expire by their own time to live. Layer: delivery.
#include "delivery/expiry/expiry_times.hpp"

#include <algorithm>
#include <iterator>
#include <vector>

#include "delivery/state/set_merge.hpp"

namespace lightq::broker {

namespace {
// The most blocks that come near in a call, and the most sets that a sweep visits: less than a millisecond.
constexpr std::size_t blocks_max = 2;
constexpr std::size_t swept_sets_max = 64;
// The most sets that are looked at for messages that are not due by the rounded time.
constexpr std::size_t looked_at_max = 4;
}  // namespace

void ExpiryTimes::add(OffsetRange range, Timestamp expiry, Timestamp wall) {
  if (range.begin >= range.end) return;
  const std::int64_t step = step_of(expiry);
  const std::int64_t hour = step / steps_of_hour;
  if (step - step_of(wall) <= steps_of_hour || is_near(hour, wall)) return add_near(range, step);
  if (far_bytes_max_ <= far_bytes_) return add_to_range(range, hour);
  const auto [at, is_new] = far_.try_emplace(hour);
  if (is_new) far_bytes_ += far_entry_bytes;
  far_bytes_ -= at->second.bytes();
  at->second.add({range, static_cast<std::uint32_t>(step % steps_of_hour)});
  far_bytes_ += at->second.bytes();
  TurnWork::add(TurnWork::range_passed);
}

void ExpiryTimes::add_near(OffsetRange range, std::int64_t step) {
  const auto [at, is_new] = near_.try_emplace(step);
  if (is_new) near_bytes_ += entry_bytes;
  near_bytes_ -= at->second.bytes();
  at->second.add(range);
  near_bytes_ += at->second.bytes();
  TurnWork::add(TurnWork::range_passed);
}

void ExpiryTimes::add_to_range(OffsetRange range, std::int64_t hour) {
  TurnWork::add(TurnWork::range_passed);
  const auto [at, is_new] = ranges_.try_emplace(hour, range);
  at->second = {std::min(at->second.begin, range.begin), std::max(at->second.end, range.end)};
}

std::optional<ExpiryTimes::Unlisted> ExpiryTimes::take_unlisted(Timestamp wall) {
  if (ranges_.empty() || !is_near(ranges_.begin()->first, wall)) return std::nullopt;
  TurnWork::add(TurnWork::range_passed);
  const auto [hour, range] = *ranges_.begin();
  ranges_.erase(ranges_.begin());
  return Unlisted{range, time_of((hour + 1) * steps_of_hour - 1)};
}

/// Moves messages of the hours that begin soon to the sets, a few blocks of them.
void ExpiryTimes::bring_near(Timestamp wall) {
  for (std::size_t blocks = 0; blocks < blocks_max && !far_.empty(); ++blocks) {
    const auto hour = far_.begin();
    if (!is_near(hour->first, wall)) return;
    std::vector<FarTimes::Run> taken;
    far_bytes_ -= hour->second.bytes();
    if (!hour->second.empty()) hour->second.take_block(taken);
    far_bytes_ += hour->second.bytes();
    for (const FarTimes::Run& run : taken) add_near(run.range, hour->first * steps_of_hour + run.step);
    if (!hour->second.empty()) continue;
    far_bytes_ -= far_entry_bytes;
    far_.erase(hour);
  }
}

void ExpiryTimes::remove_from(Near::iterator at, OffsetRange range) {
  TurnWork::add(TurnWork::range_passed);
  near_bytes_ -= at->second.bytes();
  at->second.remove(range);
  near_bytes_ += at->second.bytes();
  if (!at->second.empty()) return;
  near_bytes_ -= entry_bytes;
  near_.erase(at);
}

bool ExpiryTimes::may_have_expired(OffsetRange range, Timestamp wall) const {
  const std::int64_t last = step_of(wall);  // messages of this step expire until its end
  if (!far_.empty() && far_.begin()->first * steps_of_hour <= last) return true;
  if (!ranges_.empty() && ranges_.begin()->first * steps_of_hour <= last) return true;
  std::size_t sets = 0;
  for (auto at = near_.begin(); at != near_.end() && at->first <= last; ++at) {
    if (++sets > looked_at_max || at->second.count_in(range) != 0) return true;
  }
  return false;
}

/// Removes messages below `first` that are not in `carried`: some of the lowest.
void ExpiryTimes::sweep_near(Near::iterator at, Offset first, const log::OffsetSet& carried) {
  std::vector<OffsetRange> gone;
  log::OffsetSet::Runs runs(at->second);
  auto run = runs.next();
  for (std::size_t visited = 0; run && run->begin < first && visited < released_max; ++visited) {
    TurnWork::add(2 * TurnWork::range_passed);
    for_gaps(carried, {run->begin, std::min(run->end, first)}, [&](OffsetRange gap) { gone.push_back(gap); });
    run = runs.next();
  }
  near_bytes_ -= at->second.bytes();
  for (const OffsetRange& each : gone) at->second.remove(each);
  near_bytes_ += at->second.bytes();
  if (!at->second.empty()) return;
  near_bytes_ -= entry_bytes;
  near_.erase(at);
}

void ExpiryTimes::sweep(Offset first, const log::OffsetSet* carried) {
  constexpr auto before_all = std::numeric_limits<std::int64_t>::min();
  if (near_swept_ == before_all && far_swept_ == before_all && ranges_swept_ == before_all) {
    if (first <= swept_for_) return;  // nothing was dropped since
    sweeping_for_ = first;
  }
  auto near = near_.upper_bound(near_swept_);
  for (std::size_t sets = 0; sets < swept_sets_max && near != near_.end(); ++sets) {
    near_swept_ = near->first;
    const auto here = near++;
    TurnWork::add(TurnWork::batch_passed);
    if (first <= here->second.first()) continue;
    if (carried == nullptr) {
      remove_from(here, {Offset{0}, first});
    } else {
      sweep_near(here, first, *carried);
    }
  }
  auto far = far_.upper_bound(far_swept_);
  for (std::size_t hours = 0; hours < swept_sets_max && far != far_.end(); ++hours) {
    far_swept_ = far->first;
    TurnWork::add(TurnWork::batch_passed);
    far_bytes_ -= far->second.bytes();
    far->second.forget_before(first, carried);
    far_bytes_ += far->second.bytes();
    const auto here = far++;
    if (!here->second.empty()) continue;
    far_bytes_ -= far_entry_bytes;
    far_.erase(here);
  }
  auto range = ranges_.upper_bound(ranges_swept_);
  for (std::size_t hours = 0; hours < swept_sets_max && range != ranges_.end(); ++hours) {
    ranges_swept_ = range->first;
    TurnWork::add(TurnWork::range_passed);
    const auto here = range++;
    const bool is_gone =
        here->second.end <= first && (carried == nullptr || carried->count_in(here->second) == 0);
    if (is_gone) ranges_.erase(here);
  }
  if (near != near_.end() || far != far_.end() || range != ranges_.end()) return;
  near_swept_ = far_swept_ = ranges_swept_ = before_all;
  swept_for_ = sweeping_for_;
}

Timestamp ExpiryTimes::next() const {
  Timestamp next = nothing_due;
  if (!near_.empty()) next = time_of(near_.begin()->first);
  if (!far_.empty()) next = std::min(next, time_of(far_.begin()->first * steps_of_hour - steps_ahead));
  if (!ranges_.empty()) next = std::min(next, time_of(ranges_.begin()->first * steps_of_hour - steps_ahead));
  return next;
}

}  // namespace lightq::broker
