/// What an embedded queue is opened with, and what it tells of itself. Layer: queue.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <lightq/base/limits.hpp>
#include <lightq/base/types.hpp>

namespace lightq::inline v1 {

/// When appended messages reach the disk. Rules may be combined; the first that is due counts. With no rule
/// at all (`FlushPolicy::none()`) messages are written into mapped files: they survive the end of the
/// process, SIGKILL included, but of a power cut only what Queue::flush or a clean close has
/// synced.
struct FlushPolicy {
  std::uint64_t messages = 0;            ///< after so many messages; 0: not by number
  std::uint64_t bytes = 0;               ///< after so many bytes of batches; 0: not by size
  std::chrono::milliseconds interval{};  ///< a timer, whether or not anybody calls; needs `background`
  bool each_append = false;              ///< an append returns when it is durable; many writers share a sync

  static FlushPolicy none() { return {}; }
  static FlushPolicy every_messages(std::uint64_t count) { return {.messages = count}; }
  static FlushPolicy every_bytes(std::uint64_t count) { return {.bytes = count}; }
  static FlushPolicy every(std::chrono::milliseconds interval) { return {.interval = interval}; }
  static FlushPolicy every_append() { return {.each_append = true}; }

  [[nodiscard]] bool is_none() const {
    return messages == 0 && bytes == 0 && interval.count() == 0 && !each_append;
  }
};

/// What an append does that does not fit the capacity.
enum class Overflow {
  block,        ///< waits until a commit, or what else drops messages, has made room, at most `block_timeout`
  reject,       ///< fails with `limit_reached`; nothing changes
  drop_oldest,  ///< drops the oldest segments, whoever still wants them; counted
};

/// How a queue is opened. Every field has a use without the others.
struct QueueOptions {
  /// Batches a segment file holds, in bytes; its file is one page of 4 KiB larger. 4 KiB to 4 GiB − 68 KiB. A
  /// larger message gets a segment of its own size.
  std::uint64_t segment_bytes = 64 * limits::MiB;
  std::uint64_t segment_messages_max = 0;  ///< messages in a segment at most; 0: as many as fit
  /// Of address space that segment files may be mapped to at once, less where that is not enough for the
  /// segment being written and those being read; 0: no cap.
  std::uint64_t mapped_bytes_max = 1 * limits::GiB;
  FlushPolicy flush{};
  std::uint64_t capacity_bytes = 0;     ///< of batches held; 0: no limit but the disk's
  std::uint64_t capacity_messages = 0;  ///< 0: no limit
  Overflow overflow = Overflow::block;
  std::chrono::milliseconds block_timeout{60'000};  ///< how long `block` waits before `timeout`
  // Retention: a segment goes when any of these says so. 0: the rule says nothing.
  std::uint64_t retention_bytes = 0;           ///< so many of the newest are enough
  std::chrono::milliseconds retention_time{};  ///< older messages are not needed
  std::uint64_t retention_messages = 0;        ///< so many of the newest are enough
  bool retain_uncommitted = true;              ///< the rules above never pass a named cursor
  bool drop_committed = true;                  ///< what every named cursor has committed goes
  std::uint64_t message_bytes_max = limits::message_bytes_max_max;  ///< at most 1 GiB
  std::uint64_t disk_free_floor_bytes = 0;  ///< appends fail with `no_space` rather than leave less
  /// Files kept for reuse when segments are dropped. Reused ones are several times faster than new ones.
  std::size_t recycled_files_max = 4;
  /// One thread that syncs, prepares the next segment and recycles old ones; under FlushPolicy::none() also
  /// one for all queues of the process, which tells the writer that time has passed. Without it, these happen
  /// inside the calls that make them due.
  bool background = false;
  /// Appends and flushes may come from any thread; without it, from one at a time.
  bool many_writers = false;
};

/// Where a reader or a new cursor begins.
class Start {
 public:
  enum class Kind { first, next, offset, time, copy };
  static Start first() { return {Kind::first, 0, {}}; }  ///< the oldest message kept
  static Start next() { return {Kind::next, 0, {}}; }    ///< the next message appended
  static Start at(Offset offset) { return {Kind::offset, static_cast<std::int64_t>(offset.value), {}}; }
  /// The first message of the first batch appended at `time` or later.
  static Start at(Timestamp time) { return {Kind::time, time.us, {}}; }
  /// Where the cursor of this name has committed.
  static Start copy_of(std::string cursor) { return {Kind::copy, 0, std::move(cursor)}; }

  [[nodiscard]] Kind kind() const { return kind_; }
  [[nodiscard]] Offset offset() const { return {static_cast<std::uint64_t>(value_)}; }
  [[nodiscard]] Timestamp time() const { return {value_}; }
  [[nodiscard]] const std::string& cursor() const { return cursor_; }

 private:
  Start(Kind kind, std::int64_t value, std::string cursor)
      : kind_(kind), value_(value), cursor_(std::move(cursor)) {}
  Kind kind_;
  std::int64_t value_;
  std::string cursor_;
};

/// A named cursor, as it stands now.
struct CursorState {
  std::string name;
  Offset committed;  ///< everything before it is done with
  Offset delivered;  ///< one past the last message its reader was given, also before a restart; >= committed
};

/// A stretch of the log that cannot be read.
struct DamagedMessages {
  std::string file;
  std::uint64_t begin_position = 0;
  std::uint64_t end_position = 0;  ///< equal to begin_position: a file is missing here
  Offset first;
  Offset next;  ///< one past the last message lost
};

/// What opening found.
struct QueueRecovery {
  bool clean = false;               ///< the queue had been closed; nothing was scanned
  std::uint64_t scanned_bytes = 0;  ///< looked at past the newest checkpoint
  std::uint64_t bytes_cut = 0;      ///< of an append that had not been completed
  std::string cut_file;
  std::vector<DamagedMessages> damaged;
  std::vector<std::string> clamped_cursors;  ///< stood past next_offset, after a power cut took its messages
};

/// Numbers of an open queue.
struct QueueStats {
  Offset first_offset;    ///< oldest message kept
  Offset next_offset;     ///< one past the newest
  Offset durable_offset;  ///< everything before it survives a power cut
  std::uint64_t stored_bytes = 0;
  std::size_t segments = 0;
  std::uint64_t mapped_bytes = 0;      ///< of segment files, now
  std::uint64_t dropped_messages = 0;  ///< by Overflow::drop_oldest, since opened
  std::vector<CursorState> cursors;
};

}  // namespace lightq::inline v1
