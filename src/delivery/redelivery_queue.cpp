/// Releases delayed messages, and reads messages that are delivered again. Layer: delivery.
#include "delivery/redelivery_queue.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>

#include <lightq/base/fetch_ahead.hpp>

#include "delivery/state/set_merge.hpp"

namespace lightq::broker {

namespace {
// The most parts of expired messages that a call removes: well below a millisecond's work.
constexpr std::size_t passed_parts_max = 256;

/// Returns true if the next message for a consumer is to be delivered alone. Requires: there is one.
bool is_alone_next(const WaitingMessages& waiting, Alone alone) {
  if (alone == Alone::refuses || waiting.alone().empty()) return false;
  if (alone == Alone::takes_first || waiting.ready().empty()) return true;
  return waiting.alone().first() < waiting.ready().first();
}
/// Returns true if the message at `offset` is protected from expiry. Lowers `end` to the end of the messages
/// of which the same is true.
bool cut_at_protected(const DeadMessages* dead, Offset offset, Offset& end) {
  if (dead == nullptr || dead->protected_messages().empty()) [[likely]]
    return false;
  const auto run = dead->protected_messages().first_behind(offset);
  if (!run) return false;
  const bool is_inside = run->begin <= offset;
  end = std::min(end, is_inside ? run->end : run->begin);
  return is_inside;
}

}  // namespace

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"  // supported for classes without virtual bases
struct RedeliveryQueue::HotFields {
  static_assert(hot_fields_precede(offsetof(RedeliveryQueue, waiting_),
                                   {offsetof(RedeliveryQueue, bytes_), offsetof(RedeliveryQueue, first_),
                                    offsetof(RedeliveryQueue, empty_), offsetof(RedeliveryQueue, lost_),
                                    offsetof(RedeliveryQueue, changes_), offsetof(RedeliveryQueue, charge_),
                                    offsetof(RedeliveryQueue, dropped_before_),
                                    offsetof(RedeliveryQueue, carried_)}));
};
#pragma GCC diagnostic pop

void RedeliveryQueue::release(SteadyTime now) {
  if (now < next_due()) return;
  waiting_.release(now);
  count();
}

/// Walks only over messages that the log has dropped since the last call, unless many others have changed.
void RedeliveryQueue::give_up_uncarried(Offset first, const log::OffsetSet& carried, bool all) {
  if (empty_ || first <= first_) return;
  const bool again = all ? walked_at_ != changes_ : walk_again_at_ <= changes_;
  const OffsetRange range{again ? Offset{0} : walked_to_, first};
  if (range.begin >= range.end) return;
  walked_to_ = first;
  std::uint64_t removed = 0;
  std::uint64_t parts = 1;
  for_gaps(carried, range, [&](OffsetRange) { ++parts; });
  TurnWork::add(parts * TurnWork::range_passed);
  removed = waiting_.give_up_before(first, carried, range.begin);
  if (dead_ != nullptr) removed += dead_->give_up_before(first, carried, range.begin);
  given_up_ += removed;
  removed == 0 ? sum_up() : count();
  if (!again) return;
  walked_at_ = changes_;
  walk_again_at_ = changes_ + std::max<std::uint64_t>(64, parts);
}

std::vector<OffsetRange> RedeliveryQueue::finish(OffsetRange range, std::size_t& parts_left) {
  std::vector<OffsetRange> finished = waiting_.finish(range, parts_left);
  if (has_dead() && parts_left != 0) {
    std::vector<OffsetRange> dead;
    DeadFilter within;
    within.ranges.push_back(range);
    static_cast<void>(dead_->find(within, range.begin, parts_left, true, dead));
    dead_->remove(dead);
    parts_left -= std::min(parts_left, dead.size());
    finished.insert(finished.end(), dead.begin(), dead.end());
    std::ranges::sort(finished, {}, &OffsetRange::begin);
  }
  if (dead_ != nullptr) {
    for (const OffsetRange& part : finished) dead_->first_failures().remove(part);
  }
  count();
  return finished;
}

SliceOutcome RedeliveryQueue::next(log::BatchLog& log, const DeliveryContext& context,
                                   const SliceLimits& limits, NextSlice& next) {
  SliceOutcome outcome = SliceOutcome::limit;
  if (limits.records == 0 || limits.redelivered == 0 || limits.message_bytes == 0) return outcome;
  DeliveryContext shown = context;  // expired messages must leave the queue: the reader does not skip them
  shown.shows_expired = true;
  const std::size_t expired_before = expired_.size();
  while (ready(limits.alone)) {
    if (expired_.size() - expired_before >= passed_parts_max) return SliceOutcome::skipped;
    const auto front = waiting_.front(is_alone_next(waiting_, limits.alone));
    if (limits.end <= front.range.begin) return SliceOutcome::limit;
    reader_.move_to(front.range.begin);
    SliceLimits within = limits;
    within.end = std::min(limits.end, front.range.end);
    within.records = std::min(limits.records, limits.redelivered);
    const bool is_protected = cut_at_protected(dead_.get(), front.range.begin, within.end);
    outcome = reader_.next(log, shown, within, next);
    // Messages that the reader skipped no longer exist: they are removed from the queue. Those that it has
    // not reached stay.
    const bool is_there = outcome == SliceOutcome::slice || outcome == SliceOutcome::pending ||
                          outcome == SliceOutcome::unavailable || outcome == SliceOutcome::skipped;
    const Offset skipped_to = is_there ? reader_.offset() : within.end;
    if (front.range.begin < skipped_to) {
      waiting_.remove_ready({front.range.begin, skipped_to});
      count();
    }
    if (is_protected) next.delivered.expired = false;
    if (outcome == SliceOutcome::slice && next.delivered.expired) {
      expired_.push_back({next.delivered.slice.range(), front.deliveries});
      waiting_.remove_ready(expired_.back().range);
      count();
      outcome = SliceOutcome::limit;
      continue;
    }
    constexpr std::uint32_t most = std::numeric_limits<std::uint32_t>::max();
    next.delivered.delivery = front.deliveries == most ? most : front.deliveries + 1;
    if (is_there) break;
  }
  return outcome;
}

}  // namespace lightq::broker
