/// Appends batches to a segment log. Layer: log.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "log/log.hpp"
#include "log/segment/encrypted_batches.hpp"
#include "log/segment_log/close_mark.hpp"
#include "log/segment_log/next_segment.hpp"
#include "log/segment_log/segment_list.hpp"
#include "log/segment_log/segment_log_options.hpp"
#include "log/segment_log/segment_roller.hpp"

namespace lightq::log {

/// Space for a batch at the end of the log, in the mapping through which the active segment is written.
struct RoomInPlace {
  std::span<std::byte> bytes;
  std::byte* page = nullptr;  ///< the segment's first page
  std::uint64_t position = 0;
  SegmentHeader header;
};

/// The result of SegmentAppender::room_in_place. Outcomes `full`, `no_space`, `failed`, `too_large` as for
/// append.
struct RoomResult {
  AppendOutcome outcome = AppendOutcome::failed;
  RoomInPlace room;
};

/// Writes batches to the end of the active segment, and begins the next one when a batch does not fit.
///
/// Owns nothing: the segments belong to the list, the errors to the log. Called by SegmentLog for the owner
/// of the log. Thread: the log's.
///
/// Invariants: a batch is in the list's next offset only after it is completely written. No batch is written
/// past the position that a checkpoint on disk has reserved, because recovery scans no further. Example: the
/// active segment ends at offset 249 and position 60,000 of 65,536. A batch of 10 records and 8,000 bytes
/// does not fit, so a segment begins at offset 250, and the batch gets the offsets 250 to 259.
class SegmentAppender {
 public:
  /// `encrypted`: null if the log is not encrypted. `last_error` receives the reason for each `failed` and
  /// `no_space`. Lifetime: all must outlive this object.
  SegmentAppender(const SegmentLogOptions& options, Storage& storage, SegmentList& segments,
                  const NextSegment& next, SegmentRoller& roller, CloseMark& close_mark,
                  EncryptedBatches* encrypted, Error& last_error)
      : options_(options),
        storage_(storage),
        segments_(segments),
        next_(next),
        roller_(roller),
        close_mark_(close_mark),
        encrypted_(encrypted),
        last_error_(last_error) {}

  /// See BatchLog::append.
  AppendResult append(std::span<std::byte> batch, Timestamp now);
  /// See SegmentLog::room_in_place and append_in_place.
  RoomResult room_in_place(std::size_t at_least, std::size_t wanted);
  void append_in_place(std::span<std::byte> batch);

  /// Returns true if a batch of this size fits the capacity.
  [[nodiscard]] bool fits_capacity(std::size_t bytes, std::uint64_t messages) const;
  /// Returns how many more messages the active segment takes. If the next append begins a segment, returns
  /// how many messages that segment takes.
  [[nodiscard]] std::uint64_t messages_left() const;
  /// Returns the size of a batch as it is stored.
  [[nodiscard]] std::size_t bytes_on_disk(std::size_t batch_bytes) const {
    return batch_bytes + (encrypted_ == nullptr ? 0 : encrypted_layout::more_bytes);
  }

 private:
  [[nodiscard]] AppendOutcome outcome_of(const Error& error);
  [[nodiscard]] bool active_takes(std::size_t bytes, std::uint64_t messages) const;
  Result<void> make_writable(std::size_t bytes, std::uint64_t messages);
  Result<void> begin_writing(SegmentFile& active, std::size_t bytes);
  Result<void> reserve(SegmentFile& active, std::size_t bytes);

  const SegmentLogOptions& options_;
  Storage& storage_;
  SegmentList& segments_;
  const NextSegment& next_;
  SegmentRoller& roller_;
  CloseMark& close_mark_;
  EncryptedBatches* const encrypted_;
  Error& last_error_;
};

}  // namespace lightq::log
