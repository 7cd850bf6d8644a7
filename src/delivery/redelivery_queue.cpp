/// Releases delayed messages, and reads messages that are delivered again. Layer: delivery.
#include "delivery/redelivery_queue.hpp"

#include <cstddef>

#include <lightq/base/fetch_ahead.hpp>

namespace lightq::broker {

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"  // supported for classes without virtual bases
struct RedeliveryQueue::HotFields {
  static_assert(hot_fields_precede(offsetof(RedeliveryQueue, ready_),
                                   {offsetof(RedeliveryQueue, ranges_), offsetof(RedeliveryQueue, lost_),
                                    offsetof(RedeliveryQueue, charge_)}));
};
#pragma GCC diagnostic pop

SteadyTime RedeliveryQueue::release(SteadyTime now) {
  const SteadyTime when = std::max(next_due_, not_before_);
  if (next_due_ == never || now < when) return next_due_ == never ? never : when;
  ranges_walked_ += delayed_.ranges();
  not_before_ = walk_again_after(now, delayed_.ranges());
  delayed_.cut_if([&](const Delayed& delayed) { return delayed.due <= now; },
                  [&](OffsetRange range, const Delayed& delayed) { add(range, delayed.deliveries); });
  next_due_ = never;
  delayed_.for_each(
      [&](OffsetRange, const Delayed& delayed) { next_due_ = std::min(next_due_, delayed.due); });
  count();
  return next_due_ == never ? never : std::max(next_due_, not_before_);
}

void RedeliveryQueue::give_up_before(Offset first) {
  if (ranges_ == 0) return;
  const auto given_up = [&](OffsetRange range, const auto&) {
    given_up_ += distance(range.begin, range.end);
  };
  ready_.cut({Offset{0}, first}, given_up);
  delayed_.cut({Offset{0}, first}, given_up);
  count();
}

SliceOutcome RedeliveryQueue::next(log::BatchLog& log, const DeliveryContext& context,
                                   const SliceLimits& limits, NextSlice& next) {
  SliceOutcome outcome = SliceOutcome::limit;
  if (limits.records == 0 || limits.redelivered == 0 || limits.message_bytes == 0) return outcome;
  while (ready()) {
    const auto front = ready_.front();
    if (limits.end <= front.range.begin) return SliceOutcome::limit;
    reader_.move_to(front.range.begin);
    SliceLimits within = limits;
    within.end = std::min(limits.end, front.range.end);
    within.records = std::min(limits.records, limits.redelivered);
    outcome = reader_.next(log, context, within, next);
    // Messages that the reader skipped no longer exist: they are removed from the queue.
    const bool is_there = outcome == SliceOutcome::slice || outcome == SliceOutcome::pending ||
                          outcome == SliceOutcome::unavailable;
    ready_.cut({front.range.begin, is_there ? reader_.offset() : within.end});
    count();
    next.delivered.delivery = front.value + 1;
    if (is_there) break;
  }
  return outcome;
}

std::optional<Offset> RedeliveryQueue::first() const {
  if (ranges_ == 0) return std::nullopt;
  if (delayed_.empty()) return ready_.front().range.begin;
  if (ready_.empty()) return delayed_.front().range.begin;
  return std::min(ready_.front().range.begin, delayed_.front().range.begin);
}

std::optional<OffsetRange> RedeliveryQueue::first_behind(Offset offset) const {
  const auto ready = ready_.first_behind(offset);
  const auto delayed = delayed_.first_behind(offset);
  if (!ready && !delayed) return std::nullopt;
  if (!delayed || (ready && ready->range.begin < delayed->range.begin)) return ready->range;
  return delayed->range;
}

}  // namespace lightq::broker
