/// Reads the messages of a log that have not expired. Layer: delivery.
#include "delivery/record_reader.hpp"

#include "delivery/expiry/expiry_index.hpp"

namespace lightq::broker {

namespace {
// The most steps over expired messages in a call: well below a millisecond.
constexpr unsigned expired_steps_max = 256;
}  // namespace

/// Finds the next messages in a topic whose messages may expire. Each step decides about the messages up to
/// the next border between expired ones and others.
SliceOutcome RecordReader::next_unexpired(log::BatchLog& log, const DeliveryContext& context,
                                          const SliceLimits& limits, NextSlice& next) {
  ExpiryIndex& expiry = *context.expiry;
  for (unsigned steps = 0; place_.offset < limits.end; ++steps) {
    if (steps == expired_steps_max) return SliceOutcome::skipped;
    ExpiryIndex::Part part = expiry.part_at(place_.offset);
    SliceLimits within = limits;
    if (!part.expired) {
      const log::ReadResult result = read(log);
      if (result.outcome == log::ReadOutcome::end) return SliceOutcome::end;
      if (pending_) return SliceOutcome::pending;
      if (unavailable_ != nullptr) return wait(context, next);
      if (result.outcome != log::ReadOutcome::batch) {
        skip(result.outcome, std::min({result.next, limits.end, part.end}));
        continue;
      }
      within.end = std::min(within.end, result.batch.end_offset());
      if (const auto checked =
              expiry.check(result.batch, {place_.offset, std::min(part.end, within.end)}, context.wall);
          !checked) {
        unavailable_ = std::make_unique<Error>(checked.error());
        return wait(context, next);
      }
      part = expiry.part_at(place_.offset);
    }
    within.end = std::min(within.end, part.end);
    if (part.expired && !context.shows_expired) {
      if (stops_at_expired_) return SliceOutcome::expired;
      pass_expired(within.end);
      continue;
    }
    next.delivered.expired = part.expired;
    const SliceOutcome outcome = next_stored(log, context, within, next);
    next.delivered.expired = part.expired;  // a new slice has replaced it
    const bool is_at_border = outcome == SliceOutcome::limit && within.end <= place_.offset;
    if (!is_at_border) return outcome;
  }
  return SliceOutcome::limit;
}

}  // namespace lightq::broker
