/// A transient log: batches in a ring of memory. Layer: log.
#include "log/memory/ring_log.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include <lightq/base/fetch_ahead.hpp>

#include "log/elapsed.hpp"

namespace lightq::log {

namespace {

constexpr std::uint64_t page_bytes = 4096;
constexpr std::int64_t idle_before_give_back_us = 10'000'000;

}  // namespace

RingLog::RingLog(const RingLogOptions& options)
    : capacity_((std::max<std::uint64_t>(options.capacity_bytes, 1) + page_bytes - 1) / page_bytes *
                page_bytes),
      soft_limit_(options.soft_limit_bytes == 0 ? capacity_ : std::min(options.soft_limit_bytes, capacity_)),
      space_(capacity_, options.reuse_from_bytes),
      first_(options.first_offset),
      next_(options.first_offset) {}

AppendResult RingLog::append(std::span<std::byte> batch, Timestamp now) {
  assert(batch.size() >= batch_layout::header_bytes &&
         BatchView::trusted(batch.data()).total_bytes() == batch.size());
  if (batch.size() > capacity_) return {AppendOutcome::too_large, {}};
  if (!has_offsets()) {
    last_error_ = {ErrorCode::limit_reached, "the log in memory has used up its offsets, which end at " +
                                                 std::to_string(limits::offset_max)};
    return {AppendOutcome::failed, {}};
  }
  if (!accepts(batch.size())) return {AppendOutcome::full, {}};
  if (!map()) return {AppendOutcome::failed, {}};
  if (empty()) index_.clear();
  const std::uint64_t position = space_.take(batch.size());
  stamp_batch(batch, next_, now, 0);
  const std::uint32_t records = BatchView::trusted(batch.data()).record_count();
  std::byte* const to = memory_.data() + space_.physical(position);
  // A batch built in place_for_next may have to move, because make_room has freed other memory meanwhile. The
  // move may overwrite it: from here on it is read at its new place only.
  if (batch.data() != to) std::memmove(to, batch.data(), batch.size());
  index_.note(next_, position, now);
  const Offset base = next_;
  newest_ = position;
  newest_offset_ = base;
  next_ = next_ + records;
  stored_bytes_ += batch.size();
  last_append_ = now;
  touched_ = true;
  return {AppendOutcome::appended, base};
}

std::span<std::byte> RingLog::place_for_next(std::size_t bytes) {
  if (bytes > capacity_ || !has_offsets() || !accepts(bytes) || !map()) return {};
  touched_ = true;
  return {memory_.data() + space_.next_physical(bytes), bytes};
}

bool RingLog::map() {
  if (memory_.valid()) return true;
  auto mapped = MappedMemory::anonymous(capacity_);
  if (mapped) {
    memory_ = std::move(*mapped);
  } else {
    last_error_ = mapped.error();
  }
  return mapped.ok();
}

void RingLog::fetch_ahead_for_append(unsigned step) const {
  constexpr std::size_t batch_bytes = 256;  // of the next one: a small message's, or a header
  if (!memory_.valid()) return;
  if (step == 0) {
    space_.fetch_ahead();
    index_.fetch_ahead();
  } else if (step == 1) {
    fetch_ahead(memory_.data() + space_.next_physical(1), batch_bytes);
    if (!empty()) fetch_ahead(memory_.data() + space_.physical(space_.begin()), 1);
  }
}

bool RingLog::accepts(std::size_t bytes) const {
  if (empty()) return bytes <= capacity_;
  return stored_bytes_ + bytes <= soft_limit_ && space_.has_room(bytes);
}

BatchView RingLog::batch_at(std::uint64_t position) const {
  return BatchView::trusted(memory_.data() + space_.physical(position));
}

ReadResult RingLog::read(ReadPosition& place) {
  if (place.offset < first_) return {ReadOutcome::trimmed, {}, first_};
  if (place.offset >= next_) return {ReadOutcome::end, {}, {}};
  place.hint = locate(place);
  return {ReadOutcome::batch, batch_at(place.hint), {}};
}

// Returns the position of the batch with place.offset. Requires: the offset is in [first_, next_).
std::uint64_t RingLog::locate(const ReadPosition& place) const {
  if (place.offset == newest_offset_) return newest_;  // without access to any other batch
  if (place.hint >= space_.begin() && place.hint < space_.end()) {
    const BatchView batch = batch_at(place.hint);
    if (place.offset == batch.end_offset()) return place.hint + batch.total_bytes();
    if (batch.base_offset() <= place.offset && place.offset < batch.end_offset()) return place.hint;
  }
  return search(place.offset);
}

std::uint64_t RingLog::search(Offset offset) const {
  const SparseIndex::Entry* entry = index_.find(offset);
  std::uint64_t position = entry == nullptr ? space_.begin() : entry->position;
  for (;;) {
    const BatchView batch = batch_at(position);
    assert(batch.base_offset() <= offset);
    if (offset < batch.end_offset()) return position;
    position += batch.total_bytes();
  }
}

// Batches before the first index entry exist if the entry that covered them was dropped.
FoundByTime RingLog::first_since(Timestamp time) {
  FoundByTime found{next_};
  if (empty()) return found;
  const auto entries = index_.entries();
  const auto search = [&](std::uint64_t position, std::uint64_t end) {
    while (position < end) {
      const BatchView batch = batch_at(position);
      ++found.batches_passed;
      if (time <= batch.append_time()) {
        found.offset = batch.base_offset();
        return true;
      }
      position += batch.total_bytes();
    }
    return false;
  };
  if (search(space_.begin(), entries.empty() ? space_.end() : entries.front().position)) return found;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::uint64_t end = i + 1 < entries.size() ? entries[i + 1].position : space_.end();
    if (time <= entries[i].newest && search(entries[i].position, end)) break;
  }
  return found;
}

void RingLog::drop_oldest() {
  const BatchView batch = batch_at(space_.begin());
  first_ = batch.end_offset();
  stored_bytes_ -= batch.total_bytes();
  space_.free_before(space_.begin() + batch.total_bytes());
  index_.drop_before(space_.begin());
}

void RingLog::trim(Offset before) {
  if (before <= first_) return;  // without access to the oldest batch, which may be in no cache
  while (!empty() && batch_at(space_.begin()).end_offset() <= before) {
    // Batches often have equal sizes: prefetch the place where the one after the next probably lies.
    const std::size_t bytes = batch_at(space_.begin()).total_bytes();
    fetch_ahead(batch_at(space_.begin()).bytes().data() + 3 * bytes, 1);
    drop_oldest();
  }
}

bool RingLog::make_room(std::size_t bytes, Offset limit) {
  while (!accepts(bytes)) {
    if (!drop_first(limit, bytes)) return false;
  }
  return true;
}

bool RingLog::drop_first(Offset limit, std::size_t /*bytes*/) {
  if (empty()) return false;
  const Offset end = batch_at(space_.begin()).end_offset();
  if (limit < end) return false;
  if (guard_ != nullptr && guard_->before_drop({first_, end}, DropGuard::Reason::space) < end) return false;
  drop_oldest();
  return true;
}

void RingLog::maintain(Timestamp now) {
  if (!touched_ || !empty() || !has_passed(last_append_, idle_before_give_back_us, now)) return;
  memory_.give_back();
  index_.release();
  touched_ = false;
}

std::unique_ptr<DiskJob> RingLog::take_disk_job(Timestamp /*now*/) {
  return nullptr;
}

void RingLog::restart_at(Offset next) {
  assert(empty());
  first_ = next;
  next_ = next;
}

std::span<std::byte> RingLog::writable(const BatchView& batch) {
  return {const_cast<std::byte*>(batch.bytes().data()), batch.total_bytes()};
}

}  // namespace lightq::log
