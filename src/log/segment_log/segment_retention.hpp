/// Drops the oldest segments of a log. Layer: log.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "log/drop_guard.hpp"
#include "log/log_limits.hpp"
#include "log/segment_log/dropped_segments.hpp"
#include "log/segment_log/next_segment.hpp"
#include "log/segment_log/read_views.hpp"
#include "log/segment_log/segment_appender.hpp"
#include "log/segment_log/segment_job.hpp"
#include "log/segment_log/segment_list.hpp"
#include "log/segment_log/segment_log_options.hpp"
#include "log/segment_log/segment_roller.hpp"
#include "log/segment_log/writer_mappings.hpp"

namespace lightq::log {

/// Decides which segments a log no longer needs, and drops them: by age, by size, to make space, or because
/// the owner asks. Dropped segments are not read any more; DroppedSegments keeps their files until a job
/// retires them.
///
/// Owns the offset up to which messages are in use. Called by SegmentLog for the owner of the log. Thread:
/// the log's.
///
/// Invariants: segments are dropped whole, oldest first. The last segment is never dropped, because its name
/// records the next offset; to drop all messages, an empty segment is begun first. Example: the segments
/// [0, 100), [100, 250) and [250, 260) are there. `drop_before({180})` drops the first one.
/// `drop_first({250}, 0)` then drops the second one, and `drop_first({255}, 0)` drops nothing, since the last
/// one has offsets from 255 on.
class SegmentRetention {
 public:
  /// `last_error` receives the reason if no segment could be begun. Lifetime: all must outlive this object.
  SegmentRetention(SegmentLogOptions& options, SegmentList& segments, DroppedSegments& dropped,
                   const NextSegment& next, const SegmentAppender& appender, SegmentRoller& roller,
                   ReadViews& views, WriterMappings& mappings, Error& last_error)
      : options_(options),
        segments_(segments),
        dropped_(dropped),
        next_(next),
        appender_(appender),
        roller_(roller),
        views_(views),
        mappings_(mappings),
        last_error_(last_error) {}

  /// Changes the limits of the log, for all of its parts. The next `apply` and the next append use them.
  void set_limits(const LogLimits& limits);
  /// Keeps retention from dropping anything at or past `hold`.
  void hold(Offset hold) { hold_ = hold; }
  /// See BatchLog::guard_drops.
  void guard(DropGuard* guard) { guard_ = guard; }
  /// Drops messages that the settings of retention do not keep, also a last segment with messages that are
  /// too old.
  void apply(Timestamp now);
  /// Drops segments that retention does not need, but never the last one.
  void drop_unneeded(Timestamp now);
  /// See SegmentLog::drop_before.
  void drop_before(Offset before);
  /// See SegmentLog::make_room.
  bool make_room(std::size_t bytes, std::uint64_t messages, Offset limit);
  /// Drops the oldest segment, even if the capacity is not reached, unless it contains something at or past
  /// `limit`. If it is the only segment, first begins another with space for `bytes`. Returns false if
  /// nothing could be dropped.
  bool drop_first(Offset limit, std::size_t bytes);
  /// See BatchLog::end_segment.
  Result<void> end_segment();
  /// Drops all segments, for a log that is destroyed.
  void drop_all();
  /// Corrects the segments' times for retention. A time in the future came from a clock that was ahead: the
  /// segment is at most as new as those behind it, and as now. It is at least as new as those before it.
  void date_segments(Timestamp now);

 private:
  void drop_oldest();
  [[nodiscard]] RetiredSegment retired(SegmentFile& segment);
  [[nodiscard]] bool may_drop_up_to(Offset end, DropGuard::Reason reason);
  [[nodiscard]] std::optional<Offset> unneeded_end(Timestamp now) const;
  bool drop_first_unasked(Offset limit, std::size_t bytes);
  [[nodiscard]] bool is_too_old(const SegmentFile& segment, Timestamp now) const;

  SegmentLogOptions& options_;
  SegmentList& segments_;
  DroppedSegments& dropped_;
  const NextSegment& next_;
  const SegmentAppender& appender_;
  SegmentRoller& roller_;
  ReadViews& views_;
  WriterMappings& mappings_;
  Error& last_error_;
  Offset hold_{~std::uint64_t{0}};  // everything at or past it is in use
  DropGuard* guard_ = nullptr;
};

}  // namespace lightq::log
