/// The log: a topic's ordered batches, whatever they are kept in. Layer: log.
/// Implementations: RingLog (memory), SegmentLog (files), WriteBehindLog (a ring in front of segments).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <lightq/base/batch.hpp>
#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>

namespace lightq::log {

/// Where a reader stands: an offset, and privately where its batch lies, so that reading on costs no search.
/// A plain value; a default-constructed or hand-made place is searched for at the first read.
struct Place {
  Offset offset;
  std::uint64_t hint = no_hint;

  static constexpr std::uint64_t no_hint = ~std::uint64_t{0};
};

enum class AppendOutcome {
  appended,   ///< the batch is in the log (durable logs: pwrite returned)
  full,       ///< no room; nothing changed. make_room() or wait for trim()
  no_space,   ///< the disk is full or below its floor; nothing changed; worth trying again later
  too_large,  ///< can never fit this log
  failed,     ///< the operating system refused; `last_error()` says why; nothing was appended
};

struct AppendResult {
  AppendOutcome outcome = AppendOutcome::failed;
  Offset base;  ///< of the batch's first record, if appended
};

enum class ReadOutcome {
  batch,    ///< `batch` contains the place's offset
  end,      ///< the place is at next_offset
  trimmed,  ///< the place is before first_offset, or in a gap that a repair has left; go on at `next`
  damaged,  ///< stored bytes failed their checks; `last_error()` names file and position; go on at `next`
  /// The place's bytes may be sound, but cannot be read now: a file cannot be opened or mapped, or the disk
  /// does not give its bytes. `last_error()` says why. Nothing may be passed over: read again later.
  unavailable,
};

struct ReadResult {
  ReadOutcome outcome = ReadOutcome::end;
  BatchView batch;  ///< valid until the next non-const call on this log
  Offset next;      ///< trimmed, damaged: the next offset that can be read
};

/// What a search by time has found.
struct FoundByTime {
  Offset offset;
  std::uint64_t batches_passed = 0;  ///< looked at for it
  bool unavailable = false;  ///< messages from `offset` on cannot be read now: it may lie behind some of them
  std::uint64_t segments_passed = 0;  ///< likewise
};

/// Work that waits for a disk (syncing, preparing or recycling files, writing cursors). Made on the log's
/// thread; `run` may be called once on any one thread, while the log goes on; then `finish` once on the log's
/// thread. The log must outlive the call of `finish`; a job may be destroyed without either call.
class DiskJob {
 public:
  DiskJob() = default;
  DiskJob(const DiskJob&) = delete;
  DiskJob& operator=(const DiskJob&) = delete;
  virtual ~DiskJob() = default;
  virtual void run() = 0;
  virtual void finish() = 0;
};

/// One topic's log. Thread rule: one thread at a time, except that DiskJob::run may be elsewhere.
/// Batches are kept whole: an append either is entirely in the log or left no trace.
class Log {
 public:
  Log() = default;
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;
  virtual ~Log() = default;

  /// Appends the batch as the next records. `batch` is a complete encoded batch (BatchBuilder::finish) of at
  /// least one record; base offset, append time, segment epoch and the header checksum are stamped into it in
  /// place. `appended` promises that the batch can be read and, for a durable log, survives the end of this
  /// process (not of the machine: see durable_offset).
  virtual AppendResult append(std::span<std::byte> batch, Timestamp now) = 0;
  /// Where a batch of `bytes` that is appended next may lie already, so that it need not be copied: memory of
  /// the log, but no part of it before. What is put there stays until something has been appended or
  /// `maintain` is called, and may be offered again after make_room. Empty: there is no such place.
  virtual std::span<std::byte> place_for_next(std::size_t /*bytes*/) { return {}; }
  /// There will be an append soon: asks the processor for memory that it needs, as group prefetching does: in
  /// steps from 0 on, each for what the step before has brought the addresses of. Never waits.
  virtual void fetch_ahead_for_append(unsigned /*step*/) const {}

  /// The batch that holds `place.offset`; updates the place's hint. The caller moves on by setting
  /// `place.offset` to the batch's end (`batch.base_offset() + batch.record_count()`), keeping the hint.
  virtual ReadResult read(Place& place) = 0;

  /// As read, but only the batch's offsets, time and producer may be looked at: what is encrypted is not
  /// decrypted for it, and may turn out not to be readable.
  virtual ReadResult look(Place& place) { return read(place); }

  /// Finds the first batch, in the order of the log, that was appended at `time` or later; next_offset if
  /// there is none. The clock may have been set back in between: a batch may be older than its predecessor.
  /// Where a file cannot be opened the answer is that file's first offset, so that nothing is left out;
  /// `unavailable` says whether that is for now only, and last_error() why.
  virtual FoundByTime first_since(Timestamp time) = 0;

  /// The oldest message kept; equals next_offset when empty.
  [[nodiscard]] virtual Offset first_offset() const = 0;
  /// One past the newest message.
  [[nodiscard]] virtual Offset next_offset() const = 0;
  /// Everything before it survives a power cut. A log without a disk answers offset 0.
  [[nodiscard]] virtual Offset durable_offset() const = 0;
  /// Bytes of batches held now, headers included.
  [[nodiscard]] virtual std::uint64_t stored_bytes() const = 0;
  /// What the log takes: of a disk the whole files, used or not; of a log in memory as stored_bytes.
  [[nodiscard]] virtual std::uint64_t held_bytes() const { return stored_bytes(); }

  /// Declares that nobody needs messages before `before`. A transient log frees whole batches before it; a
  /// durable one keeps them for replay (its retention settings decide) and does nothing.
  virtual void trim(Offset before) = 0;

  /// What is appended from now on can be dropped apart from what is there: drop_before(next_offset()) of this
  /// moment then drops exactly that. Errors: no_space, io_error; some of the oldest may have been dropped all
  /// the same, to make room.
  virtual Result<void> end_segment() { return {}; }
  /// Drops all that can be dropped before `before`, durable or not. A durable log's files go when a disk job
  /// has run: until then they are back when the process is killed.
  virtual void drop_before(Offset before) { trim(before); }

  /// Drops the oldest batches until an append of `bytes` would fit, but none that holds a message at or past
  /// `limit`. True if it fits now. first_offset() tells what was dropped.
  virtual bool make_room(std::size_t bytes, Offset limit) = 0;

  /// Applies retention and other housekeeping that depends on time (write-behind, giving back idle memory);
  /// cheap when there is nothing to do. Called about every 100 ms while the topic is in use.
  virtual void maintain(Timestamp now) = 0;

  /// Work for a disk thread that is due now, or null. At most one job of a log is out at a time.
  virtual std::unique_ptr<DiskJob> take_disk_job(Timestamp now) = 0;

  /// What has been appended should become durable as soon as possible, whatever the log's interval is: the
  /// next take_disk_job gives a job that covers all of it at once, or as soon as the one that is out is
  /// finished. Many requests until then cost one sync. Durable is what durable_offset says, as ever; a log
  /// whose sync has failed, or that has no disk, forgets the request.
  virtual void request_flush() {}

  /// take_disk_job would give a job now or later, though nothing is appended: whoever keeps the log keeps
  /// asking.
  [[nodiscard]] virtual bool wants_disk_work() const = 0;

  /// Makes everything appended durable before it returns, on this thread.
  virtual Result<void> flush() = 0;
  /// After a flush that failed: whether nothing was synced yet, so that a later one may make all of it
  /// durable.
  [[nodiscard]] virtual bool may_flush_again() const { return false; }
  /// As flush, for a clean stop: nothing will be appended before the log is opened again, which then need not
  /// look for what came last. An append all the same costs a sync, once.
  virtual Result<void> close() { return flush(); }

  /// What `failed`, `no_space`, `damaged` or `unavailable` was about, last.
  [[nodiscard]] virtual const Error& last_error() const = 0;
};

}  // namespace lightq::log
