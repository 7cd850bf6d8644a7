/// Drops the oldest segments of a log. Layer: log.
#include "log/segment_log/segment_retention.hpp"

#include <algorithm>
#include <cassert>
#include <optional>
#include <string>

#include "log/elapsed.hpp"

namespace lightq::log {

void SegmentRetention::set_limits(const LogLimits& limits) {
  options_.segment_bytes = limits.segment_bytes;
  options_.capacity_bytes = limits.capacity_bytes;
  options_.retention_bytes = limits.retention_bytes;
  options_.retention_ms = limits.retention_ms;
  options_.retention_messages = limits.retention_messages;
  options_.leaves_others_room = limits.leaves_others_room;
}

bool SegmentRetention::make_room(std::size_t bytes, std::uint64_t messages, Offset limit) {
  const std::size_t on_disk = appender_.bytes_on_disk(bytes);
  while (!appender_.fits_capacity(on_disk, messages)) {
    if (!drop_first(limit, on_disk)) return false;
  }
  return true;
}

// On a full disk the smallest new segment is enough. If there is no space even for that, old segments are
// dropped first and their files make space.
Result<void> SegmentRetention::end_segment() {
  if (segments_.empty() || segments_.active().empty()) return {};
  auto rolled = roller_.roll_to_drop(0);
  if (!rolled && rolled.error().code == ErrorCode::no_space && segments_.size() > 1) {
    drop_before(segments_.next_offset());
    rolled = roller_.roll_to_drop(0);
  }
  if (!rolled) last_error_ = rolled.error();
  return rolled;
}

void SegmentRetention::drop_before(Offset before) {
  while (segments_.size() > 1 && segments_.end_of_oldest() <= before) drop_oldest();
}

bool SegmentRetention::drop_first(Offset limit, std::size_t bytes) {
  if (segments_.empty() || limit < segments_.end_of_oldest()) return false;
  return may_drop_up_to(segments_.end_of_oldest(), DropGuard::Reason::space) &&
         drop_first_unasked(limit, bytes);
}

bool SegmentRetention::drop_first_unasked(Offset limit, std::size_t bytes) {
  if (segments_.empty() || limit < segments_.end_of_oldest()) return false;
  if (segments_.size() == 1) {
    if (segments_.oldest().empty()) return false;
    // The new segment must exist first, because its name records the next offset.
    if (const auto rolled = roller_.roll_to_drop(bytes); !rolled) {
      last_error_ = rolled.error();
      return false;
    }
  }
  drop_oldest();
  return true;
}

void SegmentRetention::drop_oldest() {
  assert(segments_.size() > 1);
  SegmentFile& oldest = segments_.oldest();
  views_.forget(oldest);
  // While one job takes long, many segments may gather for the next.
  if (dropped_.are_many()) static_cast<void>(oldest.release_descriptor());
  dropped_.add(retired(oldest));
  segments_.take_oldest();
}

void SegmentRetention::drop_all() {
  views_.forget_all();
  while (!segments_.empty()) {
    dropped_.add(retired(segments_.oldest()));
    segments_.take_oldest();
  }
}

// Keeps the mapping only if the log's next file has the same size. The log asks for none of its first,
// smaller files again.
RetiredSegment SegmentRetention::retired(SegmentFile& segment) {
  if (segment.usable_bytes() != next_.next_bytes(0)) mappings_.stop_writing(segment);
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

void SegmentRetention::date_segments(Timestamp now) {
  const auto& all = segments_.all();
  Timestamp latest = now;
  for (auto segment = all.rbegin(); segment != all.rend(); ++segment) {
    SegmentFile& each = **segment;
    each.times().end_before(now < each.times().written() ? latest : now);
    if (!each.empty()) latest = each.times().written();
  }
  for (std::size_t i = 1; i < all.size(); ++i) all[i]->times().begin_after(all[i - 1]->times().written());
}

bool SegmentRetention::is_too_old(const SegmentFile& segment, Timestamp now) const {
  return options_.retention_ms != 0 && is_older(segment.times().written(), options_.retention_ms, now);
}

bool SegmentRetention::may_drop_up_to(Offset end, DropGuard::Reason reason) {
  return guard_ == nullptr || end <= guard_->before_drop({segments_.first_offset(), end}, reason);
}

/// Returns the end of the oldest segments that retention does not need, but not of the last segment. Returns
/// nothing if it needs them all.
std::optional<Offset> SegmentRetention::unneeded_end(Timestamp now) const {
  std::optional<Offset> end;
  std::uint64_t left_bytes = segments_.stored_bytes();
  for (std::size_t i = 0; i + 1 < segments_.size(); ++i) {
    const SegmentFile& segment = segments_.at(i);
    const Offset next_begins = segments_.at(i + 1).first_offset();
    if (hold_ < next_begins) break;
    left_bytes -= segment.stored_bytes();
    const std::uint64_t left_messages = distance(segment.end_offset(), segments_.next_offset());
    const bool unneeded =
        (options_.retention_bytes != 0 && left_bytes >= options_.retention_bytes) ||
        (options_.retention_messages != 0 && left_messages >= options_.retention_messages) ||
        is_too_old(segment, now);
    if (!unneeded) break;
    end = next_begins;
  }
  return end;
}

void SegmentRetention::drop_unneeded(Timestamp now) {
  if (!segments_.empty()) {
    segments_.active().times().end_before(now);
    if (now < segments_.oldest().times().written()) date_segments(now);
  }
  const auto end = unneeded_end(now);
  if (!end) return;
  const OffsetRange unneeded{segments_.first_offset(), *end};
  drop_before(
      guard_ == nullptr ? *end : std::min(*end, guard_->before_drop(unneeded, DropGuard::Reason::retention)));
}

void SegmentRetention::apply(Timestamp now) {
  drop_unneeded(now);
  const bool all_too_old = segments_.size() == 1 && !segments_.oldest().empty() &&
                           segments_.next_offset() <= hold_ && is_too_old(segments_.oldest(), now);
  if (all_too_old && may_drop_up_to(segments_.next_offset(), DropGuard::Reason::retention))
    static_cast<void>(drop_first_unasked(segments_.next_offset(), 0));
}

}  // namespace lightq::log
