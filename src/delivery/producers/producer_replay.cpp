/// Reads the end of a log to bring a table of producers up to date. docs/log_format.md, "Producer file".
/// Layer: delivery.
#include "delivery/producers/producer_replay.hpp"

#include <utility>

namespace lightq::broker {

namespace {

std::string number(Offset offset) {
  return std::to_string(offset.value);
}

}  // namespace

Result<void> ProducerReplay::run(Offset from) {
  const Offset end = log_.next_offset();
  if (end < from) {
    disproves_table_ = true;
    doubt_everybody("their state was saved when the log ended at " + number(from) + ", but the log ends at " +
                    number(end));
  }
  log::ReadPosition place{from};
  while (place.offset < end) {
    const log::ReadResult result = log_.read(place);
    if (result.outcome == log::ReadOutcome::batch) {
      take(result.batch, place.offset);
      place.offset = result.batch.end_offset();
      continue;
    }
    if (result.outcome == log::ReadOutcome::unavailable) return log_.last_error();
    if (result.outcome == log::ReadOutcome::pending)
      return Error{ErrorCode::io_error,
                   "message " + number(place.offset) + " has not arrived from the store yet"};
    const bool damaged = result.outcome == log::ReadOutcome::damaged;
    doubt_everybody("messages from " + number(place.offset) + " on cannot be read" +
                    (damaged ? ": " + log_.last_error().text() : " any more"));
    if (result.next <= place.offset) break;
    place.offset = result.next;
  }
  forget_doubtful();
  return {};
}

void ProducerReplay::doubt_everybody(std::string why) {
  doubt_ = std::move(why);
  for (const KnownProducer& producer : table_.list()) doubtful_.insert(producer.identity.id);
}

// Each batch was admitted because it was its producer's next one. So a batch that continues its producer's
// sequence proves that nothing of this producer is missing before it. A batch that does not continue it
// proves the opposite, or that table and log do not belong together.
void ProducerReplay::take(const BatchView& batch, Offset at) {
  read_bytes_ += batch.total_bytes();
  if (batch.base_offset() != at) {
    disproves_table_ = true;
    doubt_everybody("no batch of the log begins at " + number(at));
  }
  const Sequences sequences{
      {batch.producer_id(), batch.producer_epoch()}, batch.first_sequence(), batch.record_count()};
  const std::uint64_t id = sequences.producer.id;
  if (id == 0) return;
  if (request_sequences_begin <= sequences.begin && sequences.begin < own_sequences_begin) {
    // A request has one message, and here it is.
    doubtful_.erase(id);
    return table_.found(sequences);
  }
  const KnownProducer* const known = table_.find(id);
  // The numbers of the broker's own producers may leave out some. In doubt, that may be a lost batch.
  const bool may_leave_out = own_sequences_begin <= sequences.begin && !doubtful_.contains(id);
  const bool next = known != nullptr &&
                    (may_leave_out ? known->expected <= sequences.begin : known->expected == sequences.begin);
  const bool follows = next && !is_later_epoch(known->identity.epoch, sequences.producer.epoch);
  if (known != nullptr && !follows) {
    disproves_table_ = disproves_table_ || !doubt_;
    if (!doubt_)
      doubt_everybody("the batch at " + number(batch.base_offset()) +
                      " does not continue its producer's sequence");
    return forget(id);
  }
  if (known == nullptr && doubt_ && sequences.begin != 0) return forget(id);
  if (lost_.contains(id)) return;
  doubtful_.erase(id);
  table_.found(sequences);
  changed_ = true;
}

void ProducerReplay::forget(std::uint64_t id) {
  lost_.insert(id);
  doubtful_.erase(id);
  table_.forget(id);
  changed_ = true;
}

// The broker sends messages of its own producers again until they are stored. If one had messages in an
// unreadable part and none behind it, these come again, and its earlier ones must still count as repeats.
// A request has one message, which was stored before the unreadable part.
void ProducerReplay::forget_doubtful() {
  for (const std::uint64_t id : doubtful_) {
    const KnownProducer* const known = table_.find(id);
    const bool stays =
        known != nullptr && (own_sequences_begin <= known->expected || is_of_request(known->expected));
    if (stays && !disproves_table_) continue;
    table_.forget(id);
    changed_ = true;
  }
}

}  // namespace lightq::broker
