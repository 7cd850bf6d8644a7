/// Options, start positions and statistics of an embedded queue. Layer: queue.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <lightq/base/limits.hpp>
#include <lightq/base/types.hpp>

namespace lightq::inline v1 {

/// When appended messages reach the disk. Rules may be combined; the first one that is due causes a sync.
/// With no rule (`FlushPolicy::none()`), messages are written into mapped files. They then survive the end of
/// the process, SIGKILL included. A power cut leaves only messages that Queue::flush or a clean close has
/// synced.
struct FlushPolicy {
  std::uint64_t messages = 0;            ///< after this many messages; 0: not by number
  std::uint64_t bytes = 0;               ///< after this many bytes of batches; 0: not by size
  std::chrono::milliseconds interval{};  ///< by a timer, even without calls; needs `background`
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

/// The rule for an append that does not fit into the capacity.
enum class Overflow {
  block,        ///< waits at most `block_timeout` until a commit or another removal frees space
  reject,       ///< fails with `limit_reached`; nothing changes
  drop_oldest,  ///< drops the oldest segments, even if a cursor has not read them; counted
};

/// The options of Queue::open. Each field works independently of the others.
struct QueueOptions {
  /// Bytes of batches in a segment file, 4 KiB to 4 GiB − 68 KiB. The file is one page of 4 KiB larger. A
  /// larger message gets a segment of its own size.
  std::uint64_t segment_bytes = 64 * limits::MiB;
  std::uint64_t segment_messages_max = 0;  ///< the most messages in a segment; 0: as many as fit
  /// The most address space for mapped segment files, in bytes; 0: no limit. Segments that are being written
  /// or read stay mapped even above it.
  std::uint64_t mapped_bytes_max = 1 * limits::GiB;
  FlushPolicy flush{};
  std::uint64_t capacity_bytes = 0;     ///< bytes of stored batches; 0: limited only by the disk
  std::uint64_t capacity_messages = 0;  ///< 0: no limit
  Overflow overflow = Overflow::block;
  std::chrono::milliseconds block_timeout{60'000};  ///< how long `block` waits before `timeout`
  // Retention: a segment is removed when any of these rules says so. 0: the rule is off.
  std::uint64_t retention_bytes = 0;           ///< keeps at least this many of the newest bytes
  std::chrono::milliseconds retention_time{};  ///< keeps messages that are not older
  std::uint64_t retention_messages = 0;        ///< keeps at least this many of the newest messages
  bool retain_uncommitted = true;              ///< the rules above keep messages that some cursor needs
  bool drop_committed = true;                  ///< removes messages that every named cursor has committed
  std::uint64_t message_bytes_max = limits::message_bytes_max_max;  ///< at most 1 GiB
  std::uint64_t disk_free_floor_bytes = 0;  ///< appends fail with `no_space` rather than leave less
  /// How many files of dropped segments are kept for reuse. Reusing a file is several times faster than
  /// creating one.
  std::size_t recycled_files_max = 4;
  /// Starts a thread that syncs, prepares the next segment and recycles old ones. Under FlushPolicy::none()
  /// it also starts one thread for all queues of the process, which tells writers that time has passed.
  /// Without it, this work happens inside the calls that make it due.
  bool background = false;
  /// Appends and flushes may come from any thread; without it, from one thread at a time.
  bool many_writers = false;
};

/// The offset or time at which a reader or a new cursor starts.
class Start {
 public:
  enum class Kind { first, next, offset, time, copy };
  static Start first() { return {Kind::first, 0, {}}; }  ///< the oldest message kept
  static Start next() { return {Kind::next, 0, {}}; }    ///< the next message to be appended
  static Start at(Offset offset) { return {Kind::offset, static_cast<std::int64_t>(offset.value), {}}; }
  /// Starts at the first message of the first batch appended at `time` or later.
  static Start at(Timestamp time) { return {Kind::time, time.us, {}}; }
  /// Starts at the committed offset of the cursor of this name.
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

/// The state of a named cursor when the statistics were taken.
struct CursorState {
  std::string name;
  Offset committed;  ///< everything before it was acknowledged by a commit
  Offset delivered;  ///< one past the last message read, also before a restart; >= committed
};

/// A range of the log that cannot be read.
struct DamagedMessages {
  std::string file;
  std::uint64_t begin_position = 0;
  std::uint64_t end_position = 0;  ///< equal to begin_position: a file is missing here
  Offset first;
  Offset next;  ///< one past the last lost message
};

/// The findings of recovery when the queue was opened.
struct QueueRecovery {
  bool clean = false;               ///< the queue had been closed cleanly; nothing was scanned
  std::uint64_t scanned_bytes = 0;  ///< scanned behind the newest checkpoint
  std::uint64_t bytes_cut = 0;      ///< of an append that was not completed
  std::string cut_file;
  std::vector<DamagedMessages> damaged;
  std::vector<std::string> clamped_cursors;  ///< were beyond next_offset after a power cut lost messages
};

/// Statistics of an open queue.
struct QueueStats {
  Offset first_offset;    ///< the oldest message kept
  Offset next_offset;     ///< one past the newest message
  Offset durable_offset;  ///< everything before it survives a power cut
  std::uint64_t stored_bytes = 0;
  std::size_t segments = 0;
  std::uint64_t mapped_bytes = 0;      ///< of segment files that are mapped now
  std::uint64_t dropped_messages = 0;  ///< by Overflow::drop_oldest, since opened
  std::vector<CursorState> cursors;
};

}  // namespace lightq::inline v1
