/// Decides when a topic's producers are saved. docs/log_format.md, "Producer file". Layer: delivery.
#include "delivery/producers/durable_producers.hpp"

#include <cassert>
#include <utility>

#include "delivery/producers/producer_replay.hpp"
#include "log/elapsed.hpp"

namespace lightq::broker {

namespace {

constexpr std::int64_t save_interval_us = 1'000'000;
constexpr std::uint64_t replay_bytes_target = 32 * limits::MiB;  // a start should read no more than this

}  // namespace

// A file that covers more than the log has must be removed. Otherwise a later start would believe it once the
// log has grown to that offset again. Any other file leads to the same result at each start.
Result<DurableProducers::Recovery> DurableProducers::recover(const ProducerSnapshot& found,
                                                             log::BatchLog& log) {
  table_.restore(found.producers);
  in_use_ = true;
  ProducerReplay replay(table_, log);
  if (auto replayed = replay.run(found.as_of); !replayed) return replayed.error();
  table_.restore(table_.list());  // sorts by idle time as of now
  unsaved_ = replay.changed();
  unsaved_bytes_ = replay.read_bytes();
  const bool remove_file = log.next_offset() < found.as_of;
  if (!remove_file) saved_as_of_ = found.as_of;
  return Recovery{replay.doubt(), remove_file};
}

ProducerTable::Opened DurableProducers::open(ProducerIdentity wanted, std::uint64_t fresh_id, Timestamp now,
                                             const ProducerTable::Opener& opener) {
  const KnownProducer* const known = wanted.id == 0 ? nullptr : table_.find(wanted.id);
  const bool takes_over = known != nullptr && is_later_epoch(wanted.epoch, known->identity.epoch);
  const auto opened = table_.open(wanted, fresh_id, now, opener);
  if (opened.refusal != ClientError::none) return opened;
  in_use_ = unsaved_ = true;
  if (takes_over) ++change_;
  asked_ = change_;
  return opened;
}

void DurableProducers::stored(const Sequences& batch, Timestamp now) {
  table_.stored(batch, now);
  unsaved_ = true;
}

bool DurableProducers::is_outdated() const {
  return unsaved_ || (in_use_ && replay_bytes_target <= unsaved_bytes_);
}

void DurableProducers::take_snapshot(Offset as_of) {
  pending_ = Pending{{as_of, table_.list()}, change_, false};
  unsaved_ = false;
  unsaved_bytes_ = 0;
}

// A snapshot may be written only when everything that it covers is durable. Otherwise, after a power cut, the
// table could list messages as stored that the log has lost.
std::optional<EncodedProducers> DurableProducers::take_save(LogEnds ends, Timestamp now) {
  if (kept_ == Kept::in_memory) return std::nullopt;
  const bool at_once = somebody_waits() && !failed_;
  if (!pending_ &&
      (at_once || ((is_outdated() || somebody_waits()) && log::has_passed(taken_, save_interval_us, now)))) {
    take_snapshot(ends.next);
    taken_ = now;
  }
  if (!pending_ || pending_->out || ends.durable < pending_->snapshot.as_of) return std::nullopt;
  pending_->out = true;
  return ProducerFile::encode(pending_->snapshot);
}

void DurableProducers::saved(bool well) {
  assert(pending_ && pending_->out);
  failed_ = !well;
  if (well) {
    settled_ = pending_->change;
    saved_as_of_ = pending_->snapshot.as_of;
  } else {
    unsaved_ = true;
  }
  pending_.reset();
}

bool DurableProducers::wants_save() const {
  return kept_ == Kept::on_disk && (pending_ || somebody_waits() || is_outdated());
}

std::optional<Offset> DurableProducers::wants_flush(LogEnds ends) const {
  const bool waits = kept_ == Kept::on_disk && somebody_waits() && pending_;
  if (!waits || pending_->snapshot.as_of <= ends.durable) return std::nullopt;
  return pending_->snapshot.as_of;
}

std::optional<EncodedProducers> DurableProducers::take_last_save(LogEnds ends) {
  assert(!pending_ || !pending_->out);
  const bool all_said = !unsaved_ && !pending_ && saved_as_of_ == ends.next;
  if (kept_ == Kept::in_memory || !in_use_ || all_said || ends.durable < ends.next) return std::nullopt;
  take_snapshot(ends.next);
  pending_->out = true;
  return ProducerFile::encode(pending_->snapshot);
}

}  // namespace lightq::broker
