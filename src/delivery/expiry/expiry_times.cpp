/// The times when messages expire by their own time to live. Layer: delivery.
#include "delivery/expiry/expiry_times.hpp"

#include <algorithm>
#include <iterator>

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
  if (step - step_of(wall) <= steps_of_hour) return add_near(range, step);
  const auto [at, is_new] = far_.try_emplace(step / steps_of_hour);
  if (is_new) bytes_ += far_entry_bytes;
  bytes_ -= at->second.bytes();
  at->second.add({range, static_cast<std::uint32_t>(step % steps_of_hour)});
  bytes_ += at->second.bytes();
  TurnWork::add(TurnWork::range_passed);
}

void ExpiryTimes::add_near(OffsetRange range, std::int64_t step) {
  const auto [at, is_new] = near_.try_emplace(step);
  if (is_new) bytes_ += entry_bytes;
  bytes_ -= at->second.bytes();
  at->second.add(range);
  bytes_ += at->second.bytes();
  TurnWork::add(TurnWork::range_passed);
}

/// Moves messages of the hours that begin soon to the sets, a few blocks of them.
void ExpiryTimes::bring_near(Timestamp wall) {
  for (std::size_t blocks = 0; blocks < blocks_max && !far_.empty(); ++blocks) {
    const auto hour = far_.begin();
    if (hour->first * steps_of_hour > step_of(wall) + steps_ahead) return;
    taken_.clear();
    bytes_ -= hour->second.bytes();
    if (!hour->second.empty()) hour->second.take_block(taken_);
    bytes_ += hour->second.bytes();
    for (const FarTimes::Run& run : taken_) add_near(run.range, hour->first * steps_of_hour + run.step);
    if (!hour->second.empty()) continue;
    bytes_ -= far_entry_bytes;
    far_.erase(hour);
  }
}

void ExpiryTimes::remove_from(Near::iterator at, OffsetRange range) {
  TurnWork::add(TurnWork::range_passed);
  bytes_ -= at->second.bytes();
  at->second.remove(range);
  bytes_ += at->second.bytes();
  if (!at->second.empty()) return;
  bytes_ -= entry_bytes;
  near_.erase(at);
}

bool ExpiryTimes::may_have_expired(OffsetRange range, Timestamp wall) const {
  const std::int64_t last = step_of(wall);  // messages of this step expire until its end
  if (!far_.empty() && far_.begin()->first * steps_of_hour <= last) return true;
  std::size_t sets = 0;
  for (auto at = near_.begin(); at != near_.end() && at->first <= last; ++at) {
    if (++sets > looked_at_max || at->second.count_in(range) != 0) return true;
  }
  return false;
}

void ExpiryTimes::sweep(Offset first) {
  auto near = near_.upper_bound(near_swept_);
  for (std::size_t sets = 0; sets < swept_sets_max && near != near_.end(); ++sets) {
    near_swept_ = near->first;
    const auto here = near++;
    TurnWork::add(TurnWork::batch_passed);
    if (here->second.first() < first) remove_from(here, {Offset{0}, first});
  }
  if (near == near_.end()) near_swept_ = std::numeric_limits<std::int64_t>::min();
  auto far = far_.upper_bound(far_swept_);
  for (std::size_t hours = 0; hours < swept_sets_max && far != far_.end(); ++hours) {
    far_swept_ = far->first;
    TurnWork::add(TurnWork::batch_passed);
    bytes_ -= far->second.bytes();
    far->second.forget_before(first);
    bytes_ += far->second.bytes();
    const auto here = far++;
    if (!here->second.empty()) continue;
    bytes_ -= far_entry_bytes;
    far_.erase(here);
  }
  if (far == far_.end()) far_swept_ = std::numeric_limits<std::int64_t>::min();
}

Timestamp ExpiryTimes::next() const {
  Timestamp next = nothing_due;
  if (!near_.empty()) next = time_of(near_.begin()->first);
  if (!far_.empty()) next = std::min(next, time_of(far_.begin()->first * steps_of_hour - steps_ahead));
  return next;
}

}  // namespace lightq::broker
