/// The interfaces of a log: a topic's ordered batches, in memory or in files. Layer: log. Implementations of
/// Log: RingLog (memory), SegmentLog (files), WriteBehindLog (a ring in front of a durable log).
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include <lightq/base/batch.hpp>
#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>

namespace lightq::log {

class CarriedRecords;
class DropGuard;

/// A read position: an offset, and a hint to where its batch lies, so that sequential reading needs no
/// search. A plain value that may be copied. Without a hint, the first read searches for the offset.
struct ReadPosition {
  Offset offset;
  std::uint64_t hint = no_hint;

  static constexpr std::uint64_t no_hint = ~std::uint64_t{0};
};

enum class AppendOutcome {
  appended,   ///< the batch is in the log (durable logs: pwrite returned)
  full,       ///< no free space; nothing changed. Call make_room() or wait for trim()
  no_space,   ///< the disk is full or below its floor; nothing changed; a later attempt may succeed
  too_large,  ///< the batch can never fit into this log
  failed,     ///< the system call failed; `last_error()` says why; nothing was appended
};

struct AppendResult {
  AppendOutcome outcome = AppendOutcome::failed;
  Offset base;  ///< of the batch's first record, if appended
};

enum class ReadOutcome {
  batch,    ///< `batch` contains the place's offset
  end,      ///< the place is at next_offset
  trimmed,  ///< the place is before first_offset and was not carried over, or in a gap that a repair has
            ///< left; continue at `next`
  damaged,  ///< stored bytes failed their checks; `last_error()` names file and position; continue at `next`
  /// The bytes may be sound but cannot be read now: a file cannot be opened or mapped, or the disk reports an
  /// error. `last_error()` says why. The caller must not skip any message: it reads again later.
  unavailable,
  /// The bytes are sound but still on their way, for example from another machine. The store reports their
  /// arrival (StoreEvents::on_readable). The caller must not skip any message. Logs of this folder never
  /// return this.
  pending,
};

struct ReadResult {
  ReadOutcome outcome = ReadOutcome::end;
  BatchView batch;  ///< valid until the next non-const call on this log
  Offset next;      ///< trimmed, damaged: the next readable offset
};

/// The result of a search by time.
struct FoundByTime {
  Offset offset;
  std::uint64_t batches_passed = 0;  ///< number of batches that the search examined
  bool unavailable = false;  ///< messages from `offset` on cannot be read now; the right offset may lie
                             ///< behind some of them
  std::uint64_t segments_passed = 0;  ///< number of segments that the search examined
};

/// Work that waits for a disk: syncing, preparing or recycling files, writing cursors. Thread: the log's
/// thread creates the job; any one thread calls `run` once, while the log continues; the log's thread then
/// calls `finish` once. Lifetime: the log must outlive the call of `finish`. A job may be destroyed without
/// either call.
class DiskJob {
 public:
  DiskJob() = default;
  DiskJob(const DiskJob&) = delete;
  DiskJob& operator=(const DiskJob&) = delete;
  virtual ~DiskJob() = default;
  virtual void run() = 0;
  virtual void finish() = 0;
};

/// The batches of a log: appending, reading and dropping them. It stores whole batches: an append either
/// succeeds entirely or leaves no trace. Thread: one at a time.
class BatchLog {
 public:
  BatchLog() = default;
  BatchLog(const BatchLog&) = delete;
  BatchLog& operator=(const BatchLog&) = delete;
  virtual ~BatchLog() = default;

  /// Appends the batch as the next records. Stamps base offset, append time, segment epoch and the header
  /// checksum into it in place. After `appended` the batch can be read, and in a durable log it survives the
  /// end of this process, but not of the machine: see durable_offset. Requires: `batch` is a complete encoded
  /// batch (BatchBuilder::finish) of at least one record.
  virtual AppendResult append(std::span<std::byte> batch, Timestamp now) = 0;
  /// Returns unused memory of the log where the caller may build the next batch of `bytes`, to save a copy.
  /// The content stays until an append or a call of `maintain`; after make_room the log may offer the same
  /// memory again. Returns an empty span if there is no such memory.
  virtual std::span<std::byte> place_for_next(std::size_t /*bytes*/) { return {}; }
  /// Returns the object that an append uses first. A caller that knows it can prefetch it without reading
  /// this object.
  [[nodiscard]] virtual const void* hot_part() const { return this; }
  /// Prefetches memory that the next append needs into the processor's caches (group prefetching). Call it
  /// with step 0, 1, …: each step follows the addresses that the step before has loaded. Never waits.
  virtual void fetch_ahead_for_append(unsigned /*step*/) const {}

  /// Returns the batch that contains `place.offset`, and updates the place's hint. To continue, the caller
  /// sets `place.offset` to the batch's end (`batch.base_offset() + batch.record_count()`) and keeps the
  /// hint.
  virtual ReadResult read(ReadPosition& place) = 0;

  /// Reads only a batch's header: the caller may use its offsets, time and producer. An encrypted batch is
  /// not decrypted, so a later `read` of it may still fail. Never answers `pending`: a store on another
  /// machine keeps an index of headers in this process.
  virtual ReadResult read_header(ReadPosition& place) { return read(place); }

  /// Finds the first batch, in log order, that was appended at `time` or later; next_offset if there is none.
  /// A batch may be older than its predecessor, if the clock was set back. If a file cannot be opened, the
  /// result is its first offset, so that no message is left out; `unavailable` says whether that may be
  /// temporary, and last_error() why. Never waits for `pending`
  /// messages, as read_header.
  virtual FoundByTime first_since(Timestamp time) = 0;

  /// Returns the offset of the oldest kept message; next_offset if the log is empty.
  [[nodiscard]] virtual Offset first_offset() const = 0;
  /// Returns one past the offset of the newest message.
  [[nodiscard]] virtual Offset next_offset() const = 0;
  /// Returns the end of the messages that survive a power cut. A log without a disk returns 0.
  [[nodiscard]] virtual Offset durable_offset() const = 0;
  /// Returns the bytes of all kept batches, headers included.
  [[nodiscard]] virtual std::uint64_t stored_bytes() const = 0;
  /// Returns the space that the log occupies: in memory as stored_bytes, on disk its whole files, used or
  /// not.
  [[nodiscard]] virtual std::uint64_t held_bytes() const { return stored_bytes(); }

  /// States that no reader needs messages before `before`. A transient log frees whole batches before it. A
  /// durable log does nothing: its retention settings decide how long messages stay.
  virtual void trim(Offset before) = 0;

  /// Separates later appends from the present messages: drop_before() with the present next_offset() then
  /// drops exactly the present ones. Errors: no_space, io_error. Even then some of the oldest messages may
  /// have been dropped, to make space.
  virtual Result<void> end_segment() { return {}; }
  /// Returns where the part of the log begins that appends go to. drop_before() drops nothing from there on.
  [[nodiscard]] virtual Offset last_part_begin() const { return next_offset(); }
  /// Drops everything before `before` that can be dropped, durable or not. A durable log removes the files in
  /// a disk job: if the process is killed before that job has run, the messages exist again.
  virtual void drop_before(Offset before) { trim(before); }

  /// Drops the oldest batches until an append of `bytes` would fit, but no batch with a message at or past
  /// `limit`. Returns true if it fits now. first_offset() shows how much was dropped.
  virtual bool make_room(std::size_t bytes, Offset limit) = 0;

  /// Drops the oldest part of the log, for example its oldest segment, even if the capacity is not reached,
  /// unless it contains something at or past `limit`. If it is the only part, makes another one first, with
  /// space for `bytes`. Returns false if nothing could be dropped.
  virtual bool drop_first(Offset limit, std::size_t bytes) = 0;

  /// Sets the guard that is asked before retention or make_room drops messages, but not before `trim` and
  /// drop_before do. Null: none. A SegmentLog has SegmentRetention::guard instead. Lifetime: until it is
  /// replaced.
  virtual void guard_drops(DropGuard* /*guard*/) {}
  /// Returns the copies of messages that `read` finds below first_offset(), or null if this log keeps none.
  /// Lifetime: the log's.
  [[nodiscard]] virtual CarriedRecords* carried() { return nullptr; }

  /// Returns the error behind the last `failed`, `no_space`, `damaged` or `unavailable`.
  [[nodiscard]] virtual const Error& last_error() const = 0;
};

/// A log with its upkeep: retention, disk jobs and syncs, which its owner calls for. Thread: one at a time,
/// except that DiskJob::run may run elsewhere.
class Log : public BatchLog {
 public:
  /// Applies retention and other time-dependent work (write-behind, freeing idle memory). Cheap if nothing is
  /// due. Called about every 100 ms while the topic is in use.
  virtual void maintain(Timestamp now) = 0;

  /// Returns work for a disk thread that is due now, or null. A log has at most one unfinished job at a time.
  virtual std::unique_ptr<DiskJob> take_disk_job(Timestamp now) = 0;

  /// Returns true if a job was taken, and is neither finished nor destroyed yet.
  [[nodiscard]] virtual bool job_is_out() const { return false; }

  /// Requests that everything appended becomes durable as soon as possible, independent of the log's
  /// interval. The next take_disk_job, or the first after the unfinished job, returns a job that covers all
  /// of it. All requests until then cost one sync; durable_offset reports the result. The request is ignored
  /// if the log has no disk or a sync has failed.
  virtual void request_flush() {}

  /// Returns true if take_disk_job may return a job now or later without further appends. The log's owner
  /// then keeps calling take_disk_job.
  [[nodiscard]] virtual bool wants_disk_work() const = 0;

  /// Makes everything appended durable before it returns, on this thread.
  virtual Result<void> flush() = 0;
  /// Returns, after a failed flush, whether nothing was synced yet, so that a later flush may make everything
  /// durable.
  [[nodiscard]] virtual bool may_flush_again() const { return false; }
  /// Flushes for a clean stop: if nothing is appended afterwards, the next open need not search for the last
  /// batch. An append after `close` is possible and costs one additional sync.
  virtual Result<void> close() { return flush(); }
};

}  // namespace lightq::log
