/// Appends batches to a segment log. Layer: log.
#include "log/segment_log/segment_appender.hpp"

#include <algorithm>
#include <cassert>
#include <string>

#include <lightq/base/limits.hpp>

namespace lightq::log {

namespace {

constexpr std::uint64_t batch_bytes_max = 4 * limits::GiB - 64 * limits::KiB;

}  // namespace

AppendResult SegmentAppender::append(std::span<std::byte> batch, Timestamp now) {
  assert(batch.size() >= batch_layout::header_bytes &&
         BatchView::trusted(batch.data()).total_bytes() == batch.size());
  const std::size_t bytes = bytes_on_disk(batch.size());
  if (bytes > batch_bytes_max) return {AppendOutcome::too_large, {}};
  const BatchView view = BatchView::trusted(batch.data());
  if (!fits_capacity(bytes, view.record_count())) return {AppendOutcome::full, {}};
  if (const auto ready = make_writable(bytes, view.record_count()); !ready) {
    return {outcome_of(ready.error()), {}};
  }
  SegmentFile& active = segments_.active();
  const Offset base = segments_.next_offset();
  const std::uint32_t mask = active.header().batch_mask;
  stamp_batch(batch, base, now, active.header().epoch, encrypted_ == nullptr ? mask : 0);
  const BatchView stored = encrypted_ == nullptr ? view : encrypted_->encrypt(view, mask);
  if (const auto written = active.append(stored); !written) return {outcome_of(written.error()), {}};
  segments_.note_append(view.end_offset(), bytes);
  return {AppendOutcome::appended, base};
}

RoomResult SegmentAppender::room_in_place(std::size_t at_least, std::size_t wanted) {
  assert(options_.mapped_writes && at_least <= wanted);
  if (at_least > batch_bytes_max) return {AppendOutcome::too_large, {}};
  if (!fits_capacity(at_least, 1)) return {AppendOutcome::full, {}};
  if (const auto ready = make_writable(at_least, 1); !ready) return {outcome_of(ready.error()), {}};
  SegmentFile& active = segments_.active();
  const std::uint64_t stored = segments_.stored_bytes();
  if (options_.capacity_bytes != 0 && stored != 0) {
    wanted =
        std::max<std::uint64_t>(at_least, std::min<std::uint64_t>(wanted, options_.capacity_bytes - stored));
  }
  const std::uint64_t reserved = active.marks().checkpoint().reserved - active.end_position();
  return {AppendOutcome::appended,
          {active.room(std::min<std::uint64_t>(wanted, reserved)), active.first_page(), active.end_position(),
           active.header()}};
}

void SegmentAppender::append_in_place(std::span<std::byte> batch) {
  const BatchView view = BatchView::trusted(batch.data());
  segments_.active().append_in_place(view);
  segments_.note_append(view.end_offset(), batch.size());
}

// Makes the active segment ready for a batch of this size, beginning a new segment if it does not fit.
Result<void> SegmentAppender::make_writable(std::size_t bytes, std::uint64_t messages) {
  // A batch that is written in place may still grow to batch_records_max records.
  if (segments_.next_offset().value > limits::offset_max - limits::batch_records_max) {
    return Error{ErrorCode::limit_reached, options_.directory + " has used up its offsets, which end at " +
                                               std::to_string(limits::offset_max)};
  }
  if (!active_takes(bytes, messages)) {
    if (auto rolled = roller_.roll(bytes); !rolled) return rolled;
  }
  return begin_writing(segments_.active(), bytes);
}

// Removes the mark of a closed log before the first batch is written behind it.
Result<void> SegmentAppender::begin_writing(SegmentFile& active, std::size_t bytes) {
  auto opened = options_.mapped_writes ? active.open_mapped(storage_, options_.views)
                                       : active.open_for_writing(storage_);
  if (!opened) return opened;
  if (close_mark_.may_be_on_disk()) {
    if (auto removed = close_mark_.remove(active); !removed) return removed;
  }
  const std::uint64_t end = active.end_position() + bytes;
  return active.marks().needs_reserve(end) ? reserve(active, bytes) : Result<void>{};
}

// Writes a checkpoint with a larger reservation. The checkpoint's end is the last synced end, so that losing
// a slot loses nothing durable. A mapped log is not synced: there the checkpoint has the log's end, and is
// valid in this boot only.
Result<void> SegmentAppender::reserve(SegmentFile& active, std::size_t bytes) {
  const BootId boot{options_.mapped_writes ? storage_.boot_id() : 0};
  SegmentCheckpoint checkpoint = checkpoint_at(boot == BootId{} ? active.synced_point : active.seal());
  checkpoint.boot = boot;
  checkpoint.reserved = std::max(checkpoint.end_position + checkpoint_reserve_bytes,
                                 active.end_position() + bytes + checkpoint_interval_bytes);
  checkpoint.reserved = std::min(checkpoint.reserved, active.usable_bytes());
  return active.marks().write_checkpoint(checkpoint);
}

AppendOutcome SegmentAppender::outcome_of(const Error& error) {
  last_error_ = error;
  return error.code == ErrorCode::no_space ? AppendOutcome::no_space : AppendOutcome::failed;
}

bool SegmentAppender::fits_capacity(std::size_t bytes, std::uint64_t messages) const {
  const std::uint64_t stored = segments_.stored_bytes();
  if (stored == 0) return true;
  const std::uint64_t kept = distance(segments_.first_offset(), segments_.next_offset());
  return (options_.capacity_bytes == 0 || stored + bytes <= options_.capacity_bytes) &&
         (options_.capacity_messages == 0 || kept + messages <= options_.capacity_messages);
}

bool SegmentAppender::active_takes(std::size_t bytes, std::uint64_t messages) const {
  if (segments_.empty() || segments_.active().sealed || !segments_.active().has_room(bytes)) return false;
  const SegmentFile& active = segments_.active();
  if (active.header().key_id != next_.key_id()) return false;  // the log encrypts with another key now
  return options_.segment_messages_max == 0 || active.empty() ||
         distance(active.first_offset(), active.end_offset()) + messages <= options_.segment_messages_max;
}

std::uint64_t SegmentAppender::messages_left() const {
  if (options_.segment_messages_max == 0) return ~std::uint64_t{0};
  if (segments_.empty() || segments_.active().sealed) return options_.segment_messages_max;
  const SegmentFile& active = segments_.active();
  const std::uint64_t there = distance(active.first_offset(), active.end_offset());
  return options_.segment_messages_max - std::min(there, options_.segment_messages_max);
}

}  // namespace lightq::log
