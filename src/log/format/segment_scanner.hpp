/// Finds and checks the batches in a segment file with pread: for recovery, for the first check of earlier
/// bytes, and to continue after damage. Layer: log.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <lightq/base/batch.hpp>

#include "log/format/segment_format.hpp"
#include "log/storage/storage.hpp"

namespace lightq::log {

/// A batch that was found in a file.
struct ScannedBatch {
  std::uint64_t position = 0;
  std::uint64_t total_bytes = 0;
  Offset base;
  Offset end;
  Timestamp time;
  std::uint32_t epoch = 0;
  std::uint32_t mask = 0;

  [[nodiscard]] std::uint64_t end_position() const { return position + total_bytes; }
};

/// A batch of a newer version: its header is sound, but its version, codec or flags are unknown.
struct NewerBatch {
  std::uint64_t position = 0;
  std::uint8_t version = 0;
  std::uint8_t codec = 0;
  std::uint16_t flags = 0;

  /// Returns the error that the file at `path` contains this batch.
  [[nodiscard]] Error error(const std::string& path) const;
};

/// Scans a file for batches with certain marks. It reads through a window, so that a walk costs one pread per
/// megabyte. Bytes that the disk cannot read count as zeros. Lifetime: the file must outlive the scanner.
/// Thread: one.
class SegmentScanner {
 public:
  /// Scans for batches with `marks`, and reads nothing at or past `limit`. `window_bytes`: how much is read
  /// at a time to check bodies.
  SegmentScanner(File& file, const BatchMarks& marks, std::uint64_t limit,
                 std::uint64_t window_bytes = limits::MiB)
      : file_(file), marks_(marks), limit_(limit), body_window_bytes_(window_bytes) {}

  /// Returns the batch at `position` if its header is sound and has the right epoch. Does not check the body.
  std::optional<ScannedBatch> header_at(std::uint64_t position);
  /// Returns the batch at `position` if all of it is sound.
  std::optional<ScannedBatch> batch_at(std::uint64_t position);
  /// Returns the next sound batch after damage at `position`, with a base offset of at least `lowest`.
  std::optional<ScannedBatch> resume_after(std::uint64_t position, Offset lowest);
  /// Returns the batch at `position` or the one that resume_after finds, whichever is sound and skips fewer
  /// messages. Used where messages may be missing before a sound batch.
  std::optional<ScannedBatch> resume_at(std::uint64_t position, Offset lowest);
  /// Returns the first batch of a newer version, with the right epoch, that was found so far; it is neither
  /// damage nor the end. It was found where a batch has to begin: where a walk stopped, or behind the length
  /// of a damaged batch.
  [[nodiscard]] const std::optional<NewerBatch>& newer() const { return newer_; }
  /// Notes the batch at `position` if a newer version wrote it and its base offset is at least `lowest`.
  void look_for_newer(std::uint64_t position, Offset lowest);

  /// Returns the furthest end that any sound header of the epoch has claimed so far; 0 if there was none.
  [[nodiscard]] std::uint64_t claimed_end() const { return claimed_end_; }
  /// Returns the first position in [begin, end) that the disk could not read; nothing if it could read all.
  [[nodiscard]] std::optional<std::uint64_t> unreadable(std::uint64_t begin, std::uint64_t end) const;
  /// Returns the first read error; nothing if all bytes could be read.
  [[nodiscard]] const std::optional<Error>& read_error() const { return read_error_; }
  /// Returns the position up to which the file was read.
  [[nodiscard]] std::uint64_t window_end() const { return window_position_ + window_bytes_; }
  /// Drops the window, so that the next call reads again: another process may have written to the file.
  void forget() { window_bytes_ = 0; }
  /// Returns the bytes from `position` on: at least `needed` of them, fewer only at the limit. Lifetime:
  /// until the next call.
  ByteView bytes_at(std::uint64_t position, std::uint64_t needed, std::uint64_t wanted);

 private:
  void load(std::uint64_t position, std::uint64_t bytes);
  [[nodiscard]] std::optional<BatchFault> check_header(ByteView available) const;
  [[nodiscard]] std::uint32_t mask_of(ByteView header) const;
  std::optional<BatchView> newer_header_at(std::uint64_t position, Offset lowest);

  File& file_;
  BatchMarks marks_;
  std::uint64_t limit_;
  std::uint64_t body_window_bytes_;
  std::unique_ptr<std::byte[]> window_;
  std::uint64_t window_capacity_ = 0;
  std::uint64_t window_position_ = 0;
  std::uint64_t window_bytes_ = 0;
  std::uint64_t claimed_end_ = 0;
  std::optional<NewerBatch> newer_;
  struct Range {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
  };
  std::vector<Range> unreadable_;
  std::optional<Error> read_error_;
};

}  // namespace lightq::log
