/// Reads a segment log: finds the segment and the batch of an offset or a time. Layer: log.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "log/log.hpp"
#include "log/segment/encrypted_batches.hpp"
#include "log/segment_log/read_views.hpp"
#include "log/segment_log/segment_list.hpp"
#include "log/segment_log/segment_log_options.hpp"

namespace lightq::log {

/// Reads batches of the segments in a list. Bytes that this process did not write are checked before the
/// first read of each batch.
///
/// Owns nothing: the segments belong to the list, the mappings to them, the errors to the log. Called by
/// SegmentLog for the owner of the log. Thread: the log's. Readers on other threads use SegmentViews instead.
///
/// A hint is the segment's number in the upper half and the position of the last batch in the lower half.
/// Example: a reader has received the batch of the offsets 180 to 189, at position 5,000 of segment 1. Its
/// hint is (1 << 32) | 5000 and its next offset 190, so the search begins at that batch. After segment 1 was
/// dropped, the hint is ignored.
class SegmentReader {
 public:
  /// `encrypted`: null if the log is not encrypted. `last_error` receives the reason for each `damaged` and
  /// `unavailable`. Lifetime: all must outlive this object.
  SegmentReader(const SegmentLogOptions& options, Storage& storage, const SegmentList& segments,
                ReadViews& views, EncryptedBatches* encrypted, Error& last_error)
      : options_(options),
        storage_(storage),
        segments_(segments),
        views_(views),
        encrypted_(encrypted),
        last_error_(last_error) {}

  /// See BatchLog::read and read_header. `header_alone`: an encrypted batch is not decrypted.
  ReadResult find(ReadPosition& place, bool header_alone);
  /// See BatchLog::first_since.
  FoundByTime first_since(Timestamp time);

 private:
  /// The place at which a search begins.
  struct Start {
    std::size_t segment = 0;     // its place in the list
    std::uint64_t position = 0;  // of a batch to start at; 0: search
  };
  [[nodiscard]] std::optional<Start> start_from_hint(const ReadPosition& place) const;
  ReadResult read_behind_end(const SegmentFile& segment, const SegmentFile& next, Offset offset);
  ReadResult read_encrypted(const SegmentFile& segment, std::uint64_t position);
  ReadResult damaged(const SegmentFile& segment, const SegmentDamage& damage);
  ReadResult unavailable(const ReadPosition& place, const Error& error);
  [[nodiscard]] bool may_come_back(const Error& error) const;

  const SegmentLogOptions& options_;
  Storage& storage_;
  const SegmentList& segments_;
  ReadViews& views_;
  EncryptedBatches* const encrypted_;
  Error& last_error_;
};

}  // namespace lightq::log
