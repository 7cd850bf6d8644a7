/// A durable log: dropping old segments, and retention. Layer: log.
#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstddef>
#include <mutex>
#include <utility>

#include "log/elapsed.hpp"
#include "log/segment_log.hpp"

namespace lightq::log {

namespace {

constexpr std::int64_t idle_before_release_us = 10'000'000;

}  // namespace

bool SegmentLog::make_room(std::size_t bytes, Offset limit) {
  return make_room(bytes, 1, limit);
}

bool SegmentLog::make_room(std::size_t bytes, std::uint64_t messages, Offset limit) {
  while (!fits_capacity(bytes_on_disk(bytes), messages)) {
    if (!drop_first(limit, bytes_on_disk(bytes))) return false;
  }
  return true;
}

// Returns where the next segment begins, even if the oldest one ends before that. The messages between,
// damaged or lost in a power cut, count as the oldest segment's. Readers that are not past them still have to
// learn of the loss.
Offset SegmentLog::end_of_oldest() const {
  return segments_.size() > 1 ? segments_[1]->first_offset() : segments_.front()->end_offset();
}

// On a full disk the smallest new segment is enough. If there is no space even for that, old segments are
// dropped first and their files make space.
Result<void> SegmentLog::end_segment() {
  if (segments_.empty() || segments_.back()->empty()) return {};
  auto rolled = roll_to_drop(0);
  if (!rolled && rolled.error().code == ErrorCode::no_space && segments_.size() > 1) {
    drop_before(next_);
    rolled = roll_to_drop(0);
  }
  if (!rolled) last_error_ = rolled.error();
  return rolled;
}

// Begins a segment so that those before it can be dropped. Without a batch to store, the dropped segments
// free more space than the new one takes. If a bound refuses the new segment then, tries the smallest one,
// which only a full disk refuses.
Result<void> SegmentLog::roll_to_drop(std::size_t batch_bytes) {
  auto rolled = roll(batch_bytes);
  const bool lacks_space = !rolled && rolled.error().code == ErrorCode::no_space;
  return lacks_space && batch_bytes == 0 ? roll(0, NewSegment::smallest) : rolled;
}

void SegmentLog::drop_before(Offset before) {
  while (segments_.size() > 1 && end_of_oldest() <= before) drop_oldest();
}

bool SegmentLog::drop_first(Offset limit, std::size_t bytes) {
  if (segments_.empty() || limit < end_of_oldest()) return false;
  if (segments_.size() == 1) {
    if (segments_.front()->empty()) return false;
    // The new segment must exist first, because its name records next_offset.
    if (const auto rolled = roll_to_drop(bytes); !rolled) {
      last_error_ = rolled.error();
      return false;
    }
  }
  drop_oldest();
  return true;
}

void SegmentLog::drop_oldest() {
  assert(segments_.size() > 1);
  SegmentFile& oldest = *segments_.front();
  forget_view(oldest);
  stored_bytes_ -= oldest.stored_bytes();
  // While one job takes long, many segments may gather for the next.
  if (retired_.size() >= retired_open_max) static_cast<void>(oldest.release_descriptor());
  retired_.push_back(retired(oldest));
  dropped_bytes_ += retired_.back().bytes;
  segments_.pop_front();
  ++front_number_;
}

// Returns true if a reader on another thread reads the segment, or can still reach it from the segment
// before. `after_another`: the same job retires the segment before, and its reference does not count. All
// other readers ask this log for the segment, on this thread.
bool SegmentLog::is_read(const RetiredSegment& segment, bool after_another) const {
  if (segment.node == nullptr) return false;
  options_.views->forget(*segment.node);
  const bool read = segment.node.use_count() > (after_another ? 2 : 1);
  std::atomic_thread_fence(std::memory_order_acquire);
  return read;
}

// Keeps the mapping only if the log's next file has the same size. The log asks for none of its first,
// smaller files again.
RetiredSegment SegmentLog::retired(SegmentFile& segment) {
  if (segment.usable_bytes() != next_segment_bytes(0)) stop_writing(segment);
  const bool has_index = !segment.begun_here || segment.index_may_be_stored;
  const std::string index =
      segment.node() == nullptr || !has_index ? "" : segment_index_path(*segment.node());
  const bool has_header = segment.header().epoch != 0;
  return {segment.path(),
          segment.usable_bytes(),
          segment.end_offset(),
          index,
          segment.stop_writing(),
          segment.file(),
          false,
          segment.node(),
          has_header,
          segment.begun_here ? std::optional(segment.header()) : std::nullopt};
}

void SegmentLog::maintain(Timestamp now) {
  apply_retention(now);
  release_idle_files(now);
}

// Corrects the segments' times for retention. A time in the future came from a clock that was ahead: the
// segment is at most as new as those behind it, and as now. It is at least as new as those before it.
void SegmentLog::date_segments(Timestamp now) {
  Timestamp latest = now;
  for (auto segment = segments_.rbegin(); segment != segments_.rend(); ++segment) {
    SegmentFile& each = **segment;
    each.end_before(now < each.written() ? latest : now);
    if (!each.empty()) latest = each.written();
  }
  for (std::size_t i = 1; i < segments_.size(); ++i) segments_[i]->begin_after(segments_[i - 1]->written());
}

bool SegmentLog::is_too_old(const SegmentFile& segment, Timestamp now) const {
  return options_.retention_ms != 0 && is_older(segment.written(), options_.retention_ms, now);
}

void SegmentLog::drop_unneeded(Timestamp now) {
  if (!segments_.empty()) {
    segments_.back()->end_before(now);
    if (now < segments_.front()->written()) date_segments(now);
  }
  const auto unneeded = [&](const SegmentFile& segment) {
    if (hold_ < end_of_oldest()) return false;
    const std::uint64_t left_bytes = stored_bytes_ - segment.stored_bytes();
    const std::uint64_t left_messages = distance(segment.end_offset(), next_);
    return (options_.retention_bytes != 0 && left_bytes >= options_.retention_bytes) ||
           (options_.retention_messages != 0 && left_messages >= options_.retention_messages) ||
           (options_.retention_ms != 0 && is_too_old(segment, now));
  };
  while (segments_.size() > 1 && unneeded(*segments_.front())) drop_oldest();
}

void SegmentLog::apply_retention(Timestamp now) {
  drop_unneeded(now);
  const bool all_too_old = segments_.size() == 1 && !segments_.front()->empty() && next_ <= hold_ &&
                           is_too_old(*segments_.front(), now);
  if (all_too_old) static_cast<void>(drop_first(next_, 0));
}

// Closes descriptors and mappings of a log that has not been used for a while.
void SegmentLog::release_idle_files(Timestamp now) {
  if (options_.mapped_writes) return;
  if (encrypted_ != nullptr) encrypted_->let_go();
  if (used_) {
    used_ = false;
    last_use_ = now;
    return;
  }
  if (!has_passed(last_use_, idle_before_release_us, now)) return;
  release_views();
  if (encrypted_ != nullptr) encrypted_->forget();
  if (!segments_.empty()) segments_.back()->release();
}

Result<void> SegmentLog::destroy() {
  const std::lock_guard lock(jobs_->running);
  jobs_->closed = true;
  views_.clear();
  prepared_.reset();
  for (const auto& segment : segments_) retired_.push_back(retired(*segment));
  segments_.clear();
  // No other log uses these files again.
  for (const RetiredSegment& segment : ready_to_retire(true)) {
    if (auto removed = pool_.remove(segment.path, segment.bytes); !removed) return removed;
  }
  retired_.clear();
  const auto left = list_if_there(options_.directory, storage_);
  if (!left) return left.error();
  if (left->empty() && !directory_made_) return {};
  for (const std::string& name : *left) {
    if (name.starts_with(damaged_prefix)) {  // left by a repair
      remove_files(options_.directory + "/" + name, storage_);
      continue;
    }
    if (auto removed = storage_.unlink(options_.directory + "/" + name); !removed) return removed;
  }
  return storage_.remove_directory(options_.directory);
}

std::uint64_t SegmentLog::held_bytes() const {
  std::uint64_t bytes = prepared_ ? prepared_->header.file_bytes : 0;
  for (const auto& segment : segments_) bytes += segment->header().file_bytes;
  return bytes;
}

// Returns the next file's size: four times the last one's up to 1 MiB, then twice, up to segment_bytes. So a
// log that grows soon has few small files. A file is larger only for a batch that needs it.
std::uint64_t SegmentLog::next_segment_bytes(std::size_t batch_bytes) const {
  constexpr std::uint64_t small = 1 * limits::MiB;
  std::uint64_t bytes = options_.first_segment_bytes;
  if (!segments_.empty()) {
    const std::uint64_t last = segments_.back()->header().file_bytes;
    bytes = std::max(bytes, last < small ? std::min(last * 4, small) : last * 2);
  }
  bytes = std::min(bytes, options_.segment_bytes);
  const std::uint64_t needed = round_up_to_page(segment_header_bytes + batch_bytes);
  while (bytes < needed && bytes < options_.segment_bytes)
    bytes = std::min(bytes * 2, options_.segment_bytes);
  return round_up_to_page(std::max(bytes, needed));
}

}  // namespace lightq::log
