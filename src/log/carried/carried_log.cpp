/// Carried records in files. Layer: log. docs/log_format.md, "Carried messages".
#include "log/carried/carried_log.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace lightq::log {

namespace {

constexpr Offset no_limit{std::numeric_limits<std::uint64_t>::max()};
constexpr std::size_t moved_max = 256;                       // copies in one call of maintain
constexpr std::uint64_t moved_bytes_max = 1 * limits::MiB;   // the same in bytes, but at least one
constexpr std::uint64_t unused_bytes_min = 1 * limits::MiB;  // less is not worth moving

SegmentLogOptions carried_options(SegmentLogOptions options) {
  options.directory += std::string("/") + CarriedLog::directory_name;
  options.segment_bytes = CarriedLog::segment_bytes;
  options.first_segment_bytes = limits::segment_bytes_first;
  options.capacity_bytes = 0;
  options.retention_bytes = 0;
  options.retention_ms = 0;
  options.retention_messages = 0;
  return options;
}

/// Returns the copy in a batch of the log, or nothing if it is not one.
std::optional<BatchView> copy_in(const BatchView& stored) {
  if (stored.is_compressed() || stored.record_count() != 1 || stored.kinds().any()) return std::nullopt;
  const ByteView bytes = stored.records().payload();
  if (BatchView::check(bytes)) return std::nullopt;
  const BatchView copy = BatchView::trusted(bytes.data());
  if (copy.total_bytes() != bytes.size() || copy.record_count() != 1 || copy.is_compressed())
    return std::nullopt;
  return copy;
}

}  // namespace

Result<std::unique_ptr<CarriedLog>> CarriedLog::open(SegmentLogOptions options, std::uint64_t bytes_max,
                                                     Offset first, Storage& storage, SegmentPool& pool,
                                                     Timestamp now, std::size_t messages_max) {
  std::unique_ptr<CarriedLog> carried(
      new CarriedLog(carried_options(std::move(options)), bytes_max, messages_max, storage, pool));
  const auto names = list_if_there(carried->options_.directory, storage);
  if (!names) return names.error();
  if (names->empty()) return carried;
  if (!carried->open_log(now)) return carried->last_error_;
  carried->load(first);
  return carried;
}

bool CarriedLog::open_log(Timestamp now) {
  if (log_ != nullptr) return true;
  auto opened = SegmentLog::open(options_, storage_, pool_, now);
  if (!opened) {
    last_error_ = opened.error();
    return false;
  }
  log_ = std::move(*opened);
  move_place_ = {log_->first_offset()};
  return true;
}

/// Finds the copies. One that is damaged is lost; its owner counts it as such, because nothing has it.
/// A copy of a message that the main log still has must also leave the files: after a power cut the main log
/// may assign its offset to another message, and drop that one later.
void CarriedLog::load(Offset first) {
  const Offset found_end = log_->next_offset();
  if (!find_copies(first)) return;
  for (Offset at = log_->first_offset(); at < found_end;) {
    const Offset moved = move_place_.offset;
    move_oldest();
    at = log_->first_offset();
    if (moved == move_place_.offset) return;  // it cannot be written now
  }
  static_cast<void>(close());  // removes the files
}

/// Returns true if there are copies of messages that the main log still has.
bool CarriedLog::find_copies(Offset first) {
  bool any_not_needed = false;
  ReadPosition place{log_->first_offset()};
  for (;;) {
    const ReadResult found = log_->read(place);
    if (found.outcome == ReadOutcome::end || found.outcome == ReadOutcome::unavailable) return any_not_needed;
    if (found.outcome != ReadOutcome::batch) {
      place = {found.next};
      continue;
    }
    const auto copy = copy_in(found.batch);
    any_not_needed = any_not_needed || (copy && first <= copy->base_offset());
    if (copy && copy->base_offset() < first) {
      Entry& entry = entries_[copy->base_offset().value];
      bytes_ = bytes_ - entry.bytes + found.batch.total_bytes();
      entry = {place.offset, found.batch.total_bytes()};
      offsets_.add({copy->base_offset(), copy->end_offset()});
    }
    place.offset = found.batch.end_offset();
  }
}

/// Returns false, and states the limit, if another copy would exceed one.
bool CarriedLog::has_room_for(const BatchView& copy) {
  const std::uint64_t bytes = copy.total_bytes();
  if (bytes_max_ != 0 && (bytes > bytes_max_ || bytes_ > bytes_max_ - bytes)) {
    last_error_ = {ErrorCode::limit_reached, "messages that wait have filled the " +
                                                 std::to_string(bytes_max_) +
                                                 " bytes of disk for those that the log has dropped"};
    return false;
  }
  if (messages_max_ <= entries_.size() && !entries_.contains(copy.base_offset().value)) {
    last_error_ = {ErrorCode::limit_reached, std::to_string(messages_max_) +
                                                 " messages that wait are kept beside the log already "
                                                 "(carried_messages_max)"};
    return false;
  }
  return true;
}

bool CarriedLog::add(ByteView record) {
  const BatchView copy = BatchView::trusted(record.data());
  if (!open_log(copy.append_time()) || !has_room_for(copy)) return false;
  if (log_->sync().poisoned()) {
    last_error_ = log_->sync().sync_error();
    return false;
  }
  return append(record, copy.base_offset());
}

bool CarriedLog::append(ByteView record, Offset offset) {
  builder_.clear();
  builder_.add(record);
  const std::span<std::byte> batch = builder_.finish();
  const AppendResult appended = log_->append(batch, BatchView::trusted(record.data()).append_time());
  if (appended.outcome != AppendOutcome::appended) {
    last_error_ = appended.outcome == AppendOutcome::too_large
                      ? Error{ErrorCode::limit_reached, "the message is too long to be carried over"}
                      : log_->last_error();
    return false;
  }
  Entry& entry = entries_[offset.value];
  bytes_ = bytes_ - entry.bytes + batch.size();
  entry = {appended.base, batch.size()};
  offsets_.add({offset, offset + 1});
  if (unsynced_.empty() || (job_taken_ && unsynced_.size() == 1)) {
    unsynced_.push_back({log_->next_offset(), offset});
    job_taken_ = false;
  } else {
    unsynced_.back().end = log_->next_offset();
    unsynced_.back().from = std::min(unsynced_.back().from, offset);
  }
  builder_.clear();
  return true;
}

void CarriedLog::remove(OffsetRange range) {
  const auto begin = entries_.lower_bound(range.begin.value);
  auto end = begin;
  for (; end != entries_.end() && end->first < range.end.value; ++end) bytes_ -= end->second.bytes;
  if (begin == end) return;
  entries_.erase(begin, end);
  offsets_.remove(range);
}

ReadResult CarriedLog::read(Offset offset) {
  ReadPosition place{entries_.find(offset.value)->second.at};
  const ReadResult found = log_->read(place);
  if (found.outcome == ReadOutcome::unavailable) {
    last_error_ = log_->last_error();
    return found;
  }
  if (found.outcome == ReadOutcome::batch) {
    const auto copy = copy_in(found.batch);
    if (copy && copy->base_offset() == offset) return {ReadOutcome::batch, *copy, {}};
  }
  last_error_ = found.outcome == ReadOutcome::damaged
                    ? log_->last_error()
                    : Error{ErrorCode::corrupt, "the copy of message " + std::to_string(offset.value) +
                                                    " in " + options_.directory + " is damaged"};
  return {ReadOutcome::damaged, {}, offset + 1};
}

/// Forgets the copies that are durable by now.
void CarriedLog::settle() {
  while (!unsynced_.empty() && unsynced_.front().end <= log_->durable_offset()) unsynced_.pop_front();
  if (kept_until_ <= log_->durable_offset()) log_->dropped().keep_all_from(no_limit);
}

Offset CarriedLog::undurable_from() {
  if (log_ == nullptr) return no_limit;
  settle();
  Offset from = no_limit;
  for (const Unsynced& each : unsynced_) from = std::min(from, each.from);
  return from;
}

void CarriedLog::maintain(Timestamp now) {
  if (log_ == nullptr) return;
  log_->maintain(now);
  settle();
  const std::uint64_t stored = log_->stored_bytes();
  if (stored == 0) return;
  if (entries_.empty()) {
    if (log_->end_segment()) drop_before(log_->next_offset());
  } else if (stored - std::min(stored, bytes_) > std::max(bytes_, unused_bytes_min)) {
    move_oldest();
  }
}

/// Appends copies of the oldest segment again. When none is left in it, drops the segment.
void CarriedLog::move_oldest() {
  const Offset end = log_->segments().oldest().end_offset();
  if (log_->segments().size() == 1) {
    if (!log_->end_segment()) return;
  }
  if (log_->sync().poisoned()) return;
  std::uint64_t bytes = 0;
  for (std::size_t moved = 0; move_place_.offset < end && moved < moved_max && bytes < moved_bytes_max;
       ++moved) {
    const ReadResult found = log_->read(move_place_);
    if (found.outcome == ReadOutcome::unavailable || found.outcome == ReadOutcome::end) return;
    if (found.outcome != ReadOutcome::batch) {
      move_place_ = {found.next};
      continue;
    }
    const Offset at = move_place_.offset;
    const auto copy = copy_in(found.batch);
    const auto entry = copy ? entries_.find(copy->base_offset().value) : entries_.end();
    if (entry != entries_.end() && entry->second.at == at) {
      moved_.assign(copy->bytes().begin(), copy->bytes().end());
      bytes += moved_.size();
      if (!append(moved_, copy->base_offset())) return;
    }
    move_place_ = {at + 1};
  }
  if (end <= move_place_.offset) drop_before(end);
}

void CarriedLog::drop_before(Offset before) {
  if (log_->durable_offset() < log_->next_offset()) {
    kept_until_ = log_->next_offset();
    log_->dropped().keep_all_from(Offset{0});
  }
  log_->drop_before(before);
  move_place_ = {std::max(move_place_.offset, before)};
}

std::unique_ptr<DiskJob> CarriedLog::take_disk_job(Timestamp now) {
  if (log_ == nullptr) return nullptr;
  settle();
  if (!unsynced_.empty()) log_->request_flush();
  auto job = log_->take_disk_job(now);
  if (job != nullptr) job_taken_ = true;
  return job;
}

Result<void> CarriedLog::flush() {
  if (log_ == nullptr) return {};
  const auto flushed = log_->flush();
  settle();
  return flushed;
}

Result<void> CarriedLog::close() {
  if (log_ == nullptr) return {};
  if (auto flushed = flush(); !flushed) return flushed;
  return log_->close();
}

Result<void> CarriedLog::destroy() {
  if (log_ != nullptr) return log_->destroy();
  remove_files(options_.directory, storage_);  // it may be there, and empty
  return {};
}

}  // namespace lightq::log
