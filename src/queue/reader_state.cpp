/// The position of a reader, and how it advances. Layer: queue.
#include "queue/reader_state.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include <lightq/base/batch.hpp>

#include "log/format/segment_scanner.hpp"

namespace lightq::queue {

namespace {

constexpr std::uint64_t worth_an_index = 1024;  // fewer messages are walked over instead of looked up
constexpr std::uint64_t large_batch_bytes = 16 * 1024;
constexpr std::uint64_t fetched_bytes = 3 * 1024;  // measured: 2 and 4 KiB gain less

}  // namespace

void ReaderState::place(Offset offset) {
  offset_ = offset;
  run_end_ = offset;
  node_ = nullptr;
  record_ = nullptr;
  seen_end_ = 0;
  populate_.jump();
}

void ReaderState::start_segment() {
  seen_end_ = 0;
  populate_.enter_segment();
  batch_base_ = node_->first_offset();
  start_batch(log::segment_header_bytes);
}

void ReaderState::start_batch(std::uint64_t position) {
  batch_ = position;
  record_ = nullptr;
  run_end_ = offset_;
}

// Prefetches the start of the next batch. A reader at memory speed requests nothing between two batches, and
// would then wait for memory before it is as fast again. Near the segment's end nothing is fetched, because
// the writer may be using those cache lines.
void ReaderState::fetch_next_batch() const {
  if (batch_end_ + fetched_bytes > seen_end_ || batch_end_ < batch_ + large_batch_bytes) return;
  fetch_lines(view_->data() + batch_end_, fetched_bytes);
}

Result<bool> ReaderState::find_message() {
  if (!has_message()) fetch_next_batch();
  while (!has_message()) {
    const auto step = find_records();
    if (!step) return step.error();
    if (*step == Step::end) return false;
  }
  return true;
}

Result<QueuedMessages> ReaderState::take(std::size_t max) {
  const auto found = find_message();
  if (!found) return found.error();
  if (!*found) return QueuedMessages();
  const std::uint64_t count = std::min<std::uint64_t>(distance(offset_, run_end_), max);
  const QueuedMessages taken(record_, count, offset_, time_, kinds_);
  const Offset end = offset_ + count;
  // The end of a complete batch is known; in an open batch the records are walked over.
  if (end < run_end_ || batch_end_ == 0) skip_records(offset_, end);
  offset_ = end;
  return taken;
}

Result<std::span<const QueuedMessage>> ReaderState::range(Offset first, Offset last) {
  place(std::min(first, source_.next_offset()));
  std::vector<QueuedMessage> all;
  std::vector<std::shared_ptr<const log::SegmentView>> views;
  while (offset_ < last) {
    const auto found = find_message();
    if (!found) {
      if (all.empty()) return found.error();
      place(all.back().offset + 1);  // the next call returns the error
      break;
    }
    // The next message may be past `last`, if messages before it are missing.
    if (!*found || last <= offset_) break;
    const auto some = take(distance(offset_, last));
    if (!some) return some.error();
    all.insert(all.end(), some->begin(), some->end());
    if (views.empty() || views.back() != view_) views.push_back(view_);
  }
  messages_ = std::move(all);
  range_views_ = std::move(views);
  return std::span<const QueuedMessage>(messages_);
}

std::shared_ptr<const void> ReaderState::pinned() const {
  if (range_views_.size() < 2) return view_;
  return std::make_shared<const std::vector<std::shared_ptr<const log::SegmentView>>>(range_views_);
}

Result<ReaderState::Step> ReaderState::find_records() {
  const Offset next = source_.next_offset();
  if (next <= offset_) return Step::end;
  range_views_.clear();
  return node_ == nullptr ? enter_segment() : find_in_segment(next);
}

// If the segment was dropped after it was found, its file is gone. The search is then repeated, for the
// segment that is the oldest now.
Result<ReaderState::Step> ReaderState::enter_segment() {
  for (int attempt = 0;; ++attempt) {
    auto node = source_.node_of(offset_);
    if (node == nullptr) return Step::end;
    auto view = source_.views().view(node);
    if (!view) {
      const bool dropped = node->first_offset() < source_.first_offset();
      if (dropped && attempt < 16) continue;
      return view.error();
    }
    view_ = std::move(*view);
    node_ = std::move(node);
    offset_ = std::max(offset_, node_->first_offset());
    start_segment();
    start_near();
    return Step::again;
  }
}

// Starts at the index entry nearest to the offset, after checking that its batch is there.
void ReaderState::start_near() {
  if (distance(node_->first_offset(), offset_) < worth_an_index) return;
  const auto index = source_.views().index(node_);
  const auto entry = index == nullptr ? std::nullopt : index->find(offset_);
  const std::uint64_t end = node_->end_position();
  if (!entry || end <= entry->position) return;
  const std::byte* at = view_->data() + entry->position;
  const BatchView batch = BatchView::trusted(at);
  const bool there = !BatchView::check_header({at, end - entry->position}, node_->header().batch_mask) &&
                     batch.segment_epoch() == node_->header().epoch && batch.base_offset() == entry->offset;
  if (!there) return;
  batch_base_ = entry->offset;
  start_batch(entry->position);
}

Result<ReaderState::Step> ReaderState::find_in_segment(Offset next) {
  const std::uint64_t end = node_->end_position();
  seen_end_ = end;
  // Without a header, this segment's bytes cannot be distinguished from those of the file's earlier uses.
  if (node_->header().epoch == 0 && offset_ < node_->end_offset()) return damage_at(end);
  if (record_ != nullptr && batch_end_ == 0) {
    if (end <= batch_) {  // the batch is still open
      run_end_ = next;
      return Step::ready;
    }
    const BatchView batch = BatchView::trusted(view_->data() + batch_);
    batch_end_ = batch_ + batch.total_bytes();
    run_end_ = batch.end_offset();
    if (has_message()) return Step::ready;
  }
  if (record_ != nullptr) {
    batch_base_ = offset_;
    start_batch(batch_end_);
  }
  if (batch_ < end) return enter_batch(end);
  if (node_->next() == nullptr) {
    // For another process's log only complete batches are shown, so the log has dropped this segment and
    // continued.
    if (source_.views().viewed() == log::ViewedLog::of_another_process) {
      node_ = nullptr;
      return Step::again;
    }
    return enter_open_batch(next);
  }
  // Once there is a successor, the end is final.
  return node_->end_position() == end ? leave_segment(end) : Step::again;
}

Result<ReaderState::Step> ReaderState::enter_batch(std::uint64_t end) {
  const std::byte* at = view_->data() + batch_;
  const bool trusted = node_->trusted_from() <= batch_ || batch_ < node_->checked_up_to();
  const BatchView batch = BatchView::trusted(at);
  const bool sound = trusted || (!BatchView::check_header({at, end - batch_}, node_->header().batch_mask) &&
                                 batch.segment_epoch() == node_->header().epoch &&
                                 batch.base_offset() == batch_base_ && batch_base_ < batch.end_offset());
  if (!sound) return damage_at(end);
  // The body of a batch that is skipped is checked only when it is read.
  if (batch.end_offset() <= offset_) {
    batch_base_ = batch.end_offset();
    start_batch(batch_ + batch.total_bytes());
    return Step::again;
  }
  const auto ahead = populate_.advance(batch_, batch_ + batch.total_bytes(), end);
  if (!ahead.empty()) view_->populate(ahead.begin, ahead.end);
  if (!trusted && batch.check_body()) return damage_at(end);
  if (!trusted) node_->note_checked(batch_, batch_ + batch.total_bytes());
  if (batch.is_compressed()) return pass_compressed(batch);
  record_ = at + batch_layout::header_bytes;
  run_end_ = batch.end_offset();
  batch_end_ = batch_ + batch.total_bytes();
  time_ = batch.append_time();
  kinds_ = batch.kinds();
  skip_records(batch.base_offset(), offset_);
  return Step::ready;
}

// There is no complete batch here, but there are messages: they are in the batch that is being packed.
ReaderState::Step ReaderState::enter_open_batch(Offset next) {
  const std::byte* at = view_->data() + batch_;
  record_ = at + batch_layout::header_bytes;
  run_end_ = next;
  batch_end_ = 0;
  kinds_ = {};
  time_ = {load_little_endian<std::int64_t>(at + batch_layout::append_time_us)};
  skip_records(batch_base_, offset_);
  return Step::ready;
}

// Reports a compressed batch. A topic's log may contain some, a queue's log contains none.
Result<ReaderState::Step> ReaderState::pass_compressed(const BatchView& batch) {
  const std::uint64_t position = batch_;
  const Offset first = offset_;
  batch_base_ = offset_ = batch.end_offset();
  start_batch(batch_ + batch.total_bytes());
  return Error{ErrorCode::not_supported,
               node_->path() + ": the batch at position " + std::to_string(position) +
                   " is compressed, which a queue does not read: offsets " + std::to_string(first.value) +
                   " up to " + std::to_string(offset_.value),
               0};
}

// Moves `record_` from the record of offset `from` to that of offset `to`.
void ReaderState::skip_records(Offset from, Offset to) {
  for (; from < to; from = from + 1) record_ += record_bytes(load_little_endian<std::uint32_t>(record_));
}

Result<ReaderState::Step> ReaderState::leave_segment(std::uint64_t end) {
  const auto next = node_->next();
  const Offset ended = node_->end_offset();
  // A gap that a repair has recorded is skipped without an error.
  const Offset gap = next->header().gap_begin;
  const Offset missing_end = gap.value != 0 && ended <= gap ? gap : next->first_offset();
  const bool missing = offset_ < missing_end;
  const std::string before = node_->header().epoch == 0
                                 ? node_->path() + " is not a segment of this log, or its header is damaged"
                                 : "a file is missing after " + node_->path() + " (which ends at position " +
                                       std::to_string(end) + ")";
  auto view = source_.views().view(next);
  if (view) {
    view_ = std::move(*view);
    node_ = next;
    start_segment();
  } else {
    node_ = nullptr;
  }
  offset_ = std::max(offset_, next->first_offset());
  if (!missing) return Step::again;
  return Error{ErrorCode::corrupt,
               before + ": offsets " + std::to_string(ended.value) + " up to " +
                   std::to_string(missing_end.value) + " cannot be read",
               0};
}

// Continues after the damage. Returns an error if it contained the next wanted message.
Result<ReaderState::Step> ReaderState::damage_at(std::uint64_t end) {
  const std::uint64_t begin = batch_;
  const Offset first = batch_base_;
  std::optional<log::ScannedBatch> sound;
  if (node_->header().epoch != 0) {
    auto file = source_.views().open(*node_);
    const bool dropped = !file && (log::is_missing(file.error()) || file.error().code == ErrorCode::closed);
    if (!file && !dropped) return file.error();
    // If the segment was dropped meanwhile, its remaining messages are skipped with the damage.
    if (file) {
      log::SegmentScanner scanner(**file, log::BatchMarks::of(node_->header()), end);
      sound = scanner.resume_at(begin, first);
      if (scanner.unreadable(begin, sound ? sound->position : end)) return *scanner.read_error();
      if (scanner.newer()) return scanner.newer()->error(node_->path());
    }
  }
  batch_base_ = sound ? sound->base : node_->end_offset();
  start_batch(sound ? sound->position : end);
  if (batch_base_ <= offset_) return Step::again;
  offset_ = std::max(offset_, batch_base_);
  return Error{ErrorCode::corrupt,
               node_->path() + " is damaged from position " + std::to_string(begin) + " to " +
                   std::to_string(batch_) + ": offsets " + std::to_string(first.value) + " up to " +
                   std::to_string(batch_base_.value) + " cannot be read",
               0};
}

Result<Offset> first_batch_at(SegmentSource& source, const std::shared_ptr<log::SegmentNode>& node,
                              Timestamp time) {
  const auto index = source.views().index(node);
  auto entry = index == nullptr ? std::nullopt : index->find(time);
  ReaderState reader(source);
  reader.place(entry ? entry->offset : node->first_offset());
  for (;;) {
    const auto batch = reader.take(limits::batch_records_max);
    if (!batch && batch.error().code == ErrorCode::corrupt) continue;
    if (!batch) return batch.error();
    if (batch->empty()) return source.next_offset();
    const bool doubtful =
        entry && entry->newest < batch->front().time && batch->front().offset <= entry->offset;
    if (doubtful) {  // the batch is newer than the index says
      entry.reset();
      reader.place(node->first_offset());
      continue;
    }
    if (time <= batch->front().time) return batch->front().offset;
  }
}

}  // namespace lightq::queue
