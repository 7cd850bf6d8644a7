/// A log that is read from memory and written behind to a durable log. Layer: log.
#include "log/memory/write_behind_log.hpp"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <limits>
#include <span>
#include <utility>

#include "log/elapsed.hpp"

namespace lightq::log {

namespace {

constexpr std::uint64_t chunk_bytes = limits::MiB;
// The highest bit of a hint, which neither log uses, marks the hints of the tail.
constexpr std::uint64_t tail_hint = std::uint64_t{1} << 63;

RingLogOptions starting_at(RingLogOptions options, Offset next) {
  options.first_offset = next;
  return options;
}

}  // namespace

WriteBehindLog::WriteBehindLog(const WriteBehindOptions& options, std::unique_ptr<Log> tail)
    : options_(options),
      tail_(std::move(tail)),
      ring_(starting_at(options.ring, tail_->next_offset())),
      write_place_{tail_->next_offset()},
      write_until_(tail_->next_offset()),
      last_error_(&tail_->last_error()) {}

bool WriteBehindLog::fits_capacity(std::size_t bytes) const {
  return options_.capacity_bytes == 0 || stored_bytes() == 0 ||
         stored_bytes() + bytes <= options_.capacity_bytes;
}

AppendResult WriteBehindLog::append(std::span<std::byte> batch, Timestamp now) {
  if (!fits_capacity(batch.size())) return {AppendOutcome::full, {}};
  if (!ring_.can_hold(batch.size())) return append_directly(batch, now);
  AppendResult result = ring_.append(batch, now);
  if (result.outcome == AppendOutcome::full) {
    const AppendOutcome freed = free_ring(batch.size());
    if (freed != AppendOutcome::appended) return {freed, {}};
    result = ring_.append(batch, now);
  }
  if (result.outcome == AppendOutcome::failed) last_error_ = &ring_.last_error();
  if (result.outcome != AppendOutcome::appended) return result;
  if (unwritten_bytes_ == 0) unwritten_since_ = now;
  unwritten_bytes_ += batch.size();
  return result;
}

// Frees space in the ring by dropping its oldest batches, which are written first if necessary.
AppendOutcome WriteBehindLog::free_ring(std::size_t bytes) {
  while (!ring_.make_room(bytes, written_offset())) {
    const AppendOutcome written =
        write_up_to(next_offset(), std::max<std::uint64_t>(bytes, 64 * limits::KiB));
    if (written != AppendOutcome::appended) return written;
  }
  return AppendOutcome::appended;
}

AppendResult WriteBehindLog::append_directly(std::span<std::byte> batch, Timestamp now) {
  const AppendOutcome written = write_up_to(next_offset(), std::numeric_limits<std::uint64_t>::max());
  if (written != AppendOutcome::appended) return {written, {}};
  const AppendResult result = tail_->append(batch, now);
  last_error_ = &tail_->last_error();
  if (result.outcome != AppendOutcome::appended) return result;
  ring_.trim(ring_.next_offset());
  ring_.restart_at(tail_->next_offset());
  write_place_ = {tail_->next_offset()};
  return result;
}

// Keeps the batch's append time. The tail stamps its own epoch over the ring's header.
AppendOutcome WriteBehindLog::write_next() {
  const ReadResult next = ring_.read(write_place_);
  assert(next.outcome == ReadOutcome::batch && write_place_.offset == written_offset());
  const AppendResult result = tail_->append(RingLog::writable(next.batch), next.batch.append_time());
  last_error_ = &tail_->last_error();
  if (result.outcome != AppendOutcome::appended) return result.outcome;
  requested_write_failed_ = false;
  write_place_.offset = next.batch.end_offset();
  unwritten_bytes_ -= next.batch.total_bytes();
  unwritten_since_ = next.batch.append_time();
  return AppendOutcome::appended;
}

AppendOutcome WriteBehindLog::write_up_to(Offset end, std::uint64_t bytes_max) {
  std::uint64_t written = 0;
  while (written_offset() < end && written < bytes_max) {
    const std::uint64_t before = unwritten_bytes_;
    const AppendOutcome outcome = write_next();
    if (outcome != AppendOutcome::appended) return outcome;
    written += before - unwritten_bytes_;
  }
  return AppendOutcome::appended;
}

ReadResult WriteBehindLog::find(ReadPosition& place, ReadResult (Log::*way)(ReadPosition&)) {
  if (place.offset < first_offset()) return {ReadOutcome::trimmed, {}, first_offset()};
  const bool tail_place = (place.hint & tail_hint) != 0;
  if (ring_.first_offset() <= place.offset) {
    ReadPosition in_ring{place.offset, tail_place ? ReadPosition::no_hint : place.hint};
    const ReadResult result = ring_.read(in_ring);
    if (result.outcome == ReadOutcome::batch) place.hint = in_ring.hint;
    return result;
  }
  const bool hinted = tail_place && place.hint != ReadPosition::no_hint;
  ReadPosition in_tail{place.offset, hinted ? place.hint & ~tail_hint : ReadPosition::no_hint};
  const ReadResult result = (*tail_.*way)(in_tail);
  last_error_ = &tail_->last_error();
  if (result.outcome == ReadOutcome::batch) place.hint = in_tail.hint | tail_hint;
  return result;
}

FoundByTime WriteBehindLog::first_since(Timestamp time) {
  const FoundByTime written = tail_->first_since(time);
  last_error_ = &tail_->last_error();
  if (written.offset < written_offset() || written.unavailable) return written;
  const FoundByTime in_memory = ring_.first_since(time);
  return {in_memory.offset, written.batches_passed + in_memory.batches_passed, false,
          written.segments_passed};
}

// On a full disk, dropping old messages first makes space for the rest.
Result<void> WriteBehindLog::end_segment() {
  auto written = write_all_behind();
  if (!written && written.error().code == ErrorCode::no_space) {
    drop_before(written_offset());
    written = write_all_behind();
  }
  if (!written) return written;
  last_error_ = &tail_->last_error();
  return tail_->end_segment();
}

void WriteBehindLog::drop_before(Offset before) {
  tail_->drop_before(before);
  ring_.trim(std::min(tail_->first_offset(), written_offset()));
}

bool WriteBehindLog::make_room(std::size_t bytes, Offset limit) {
  while (!fits_capacity(bytes)) {
    if (!drop_first(limit, bytes)) return false;
  }
  return true;
}

// The tail may drop only whole segments, so batches that are only in memory have to be written first.
bool WriteBehindLog::drop_first(Offset limit, std::size_t bytes) {
  if (!write_all_behind()) return false;
  const bool dropped = tail_->drop_first(limit, bytes);
  ring_.trim(tail_->first_offset());
  return dropped;
}

void WriteBehindLog::maintain(Timestamp now) {
  tail_->maintain(now);
  ring_.trim(std::min(tail_->first_offset(), written_offset()));
  const bool due = unwritten_bytes_ >= options_.unwritten_bytes ||
                   (unwritten_bytes_ != 0 && has_passed(unwritten_since_, in_us(options_.unwritten_ms), now));
  if (due) write_until_ = next_offset();
  if (more_to_write() && write_up_to(write_until_, chunk_bytes) != AppendOutcome::appended) {
    write_until_ = written_offset();  // the next call tries again
  }
  ring_.maintain(now);
}

// While a job is out, more batches may arrive, which are then written and synced together.
std::unique_ptr<DiskJob> WriteBehindLog::take_disk_job(Timestamp now) {
  if (!tail_->job_is_out() && durable_offset() < flush_requested_) write_for_request();
  return tail_->take_disk_job(now);
}

// Requests the sync even if not all could be written, so that the written part becomes durable.
void WriteBehindLog::write_for_request() {
  if (!requested_write_failed_ && written_offset() < flush_requested_)
    requested_write_failed_ = !write_all_behind().ok();
  tail_->request_flush();
}

Result<void> WriteBehindLog::flush() {
  if (auto written = write_all_behind(); !written) return written;
  return tail_->flush();
}

Result<void> WriteBehindLog::close() {
  if (auto written = write_all_behind(); !written) return written;
  return tail_->close();
}

Result<void> WriteBehindLog::write_all_behind() {
  const AppendOutcome written = write_up_to(next_offset(), std::numeric_limits<std::uint64_t>::max());
  return written == AppendOutcome::appended ? Result<void>{} : *last_error_;
}

}  // namespace lightq::log
