/// The interface of carried records: copies of single messages that their log has dropped. Layer: log.
/// docs/adr/0064-carry-waiting-messages-over.md.
#pragma once

#include <cstdint>

#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>

#include "log/log.hpp"
#include "log/offsets/offset_set.hpp"

namespace lightq::log {

/// Keeps copies of single messages under their offsets, while the log that had them drops its oldest part.
/// Each copy is a batch of one record: same offset, append time, attributes and payload, no producer, and
/// checksums of its own.
/// A store owns it beside its log. Thread: one at a time. Implementations: CarriedMemory, CarriedLog.
/// Example: the messages 3 and 7 of [0, 1000) were carried, then the log has dropped all of them. offsets()
/// is {3, 7}. `find` at 0 answers that 3 is the next message, and at 8 that the log's first one is.
class CarriedRecords {
 public:
  CarriedRecords() = default;
  CarriedRecords(const CarriedRecords&) = delete;
  CarriedRecords& operator=(const CarriedRecords&) = delete;
  virtual ~CarriedRecords() = default;

  /// Returns the offsets of all copies. The log may still have some of these messages.
  [[nodiscard]] virtual const OffsetSet& offsets() const = 0;
  /// Returns the bytes that the copies take, in memory with their bookkeeping.
  [[nodiscard]] virtual std::uint64_t bytes() const = 0;
  /// Returns the space that they occupy: in memory as bytes(), on disk whole files.
  [[nodiscard]] virtual std::uint64_t held_bytes() const { return bytes(); }
  /// Stores a copy, in place of an earlier one of the same offset. `record`: a sound batch of one record with
  /// its offset and append time stamped, and no segment's mask. After true it can be read, and if the copies
  /// are in files it survives the end of the process. Returns false if there is no room, or the disk fails:
  /// see last_error().
  virtual bool add(ByteView record) = 0;
  /// Forgets the copies of `range`.
  virtual void remove(OffsetRange range) = 0;
  /// Returns the error behind the last `add` that failed, or the last read that found a copy damaged or
  /// unavailable.
  [[nodiscard]] virtual const Error& last_error() const = 0;

  /// Reads the message at `offset`, which the log does not have; `first` is the log's first offset. Returns
  /// `batch`, `damaged` or `unavailable`; or `trimmed`, and the offset of the next message, if there is no
  /// copy. Lifetime of the batch: until the next call of a function that is not const.
  ReadResult find(Offset offset, Offset first) {
    const auto run = offsets().first_behind(offset);
    if (!run || first <= run->begin) return {ReadOutcome::trimmed, {}, first};
    if (offset < run->begin) return {ReadOutcome::trimmed, {}, run->begin};
    return read(offset);
  }

 private:
  /// Reads a copy. Requires: there is one.
  virtual ReadResult read(Offset offset) = 0;
};

}  // namespace lightq::log
