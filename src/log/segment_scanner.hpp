/// Finds and checks batches in a segment file by pread: for recovery, for a first look at old bytes, and past
/// damage. Layer: log.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include <lightq/base/batch.hpp>

#include "log/segment_format.hpp"
#include "log/storage.hpp"

namespace lightq::log {

/// A batch found in a file.
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

/// A batch whose header is sound, but not known to this version: a newer one wrote it.
struct NewerBatch {
  std::uint64_t position = 0;
  std::uint8_t version = 0;
  std::uint8_t codec = 0;
  std::uint16_t flags = 0;

  /// That the file at `path` has it.
  [[nodiscard]] Error error(const std::string& path) const;
};

/// Reads through a window, so that a walk costs one pread per megabyte. Bytes the disk cannot read count as
/// zeros. The file must outlive the scanner. One thread.
class SegmentScanner {
 public:
  /// Batches with these marks only. Nothing at or past `limit` is looked at. `window_bytes` are read at a
  /// time where bodies are checked.
  SegmentScanner(File& file, const BatchMarks& marks, std::uint64_t limit,
                 std::uint64_t window_bytes = limits::MiB)
      : file_(file), marks_(marks), limit_(limit), body_window_bytes_(window_bytes) {}

  /// The batch at `position` if its header is sound and of the epoch; its body is not looked at.
  std::optional<ScannedBatch> header_at(std::uint64_t position);
  /// The batch at `position` if all of it is sound.
  std::optional<ScannedBatch> batch_at(std::uint64_t position);
  /// Past damage at `position`: the next sound batch whose base offset is at least `lowest`.
  std::optional<ScannedBatch> resume_after(std::uint64_t position, Offset lowest);
  /// As resume_after, or the batch at `position` itself if it is sound and passes over fewer messages: others
  /// are missing before it.
  std::optional<ScannedBatch> resume_at(std::uint64_t position, Offset lowest);
  /// Returns the first batch of the epoch, of those looked at so far, that a newer version wrote. It lies
  /// where a walk stood, or where the length of a damaged batch leads to. It is neither damage nor the end.
  [[nodiscard]] const std::optional<NewerBatch>& newer() const { return newer_; }
  /// Notes the batch at `position` if it is such a one, and its base offset at least `lowest`.
  void look_for_newer(std::uint64_t position, Offset lowest);

  /// The furthest end that any sound header of the epoch has claimed so far; 0 if there was none.
  [[nodiscard]] std::uint64_t claimed_end() const { return claimed_end_; }
  /// The first of the bytes from `begin` up to `end` that the disk could not read; nothing if it could read
  /// all.
  [[nodiscard]] std::optional<std::uint64_t> unreadable(std::uint64_t begin, std::uint64_t end) const;
  /// Why bytes could not be read, first of all; nothing if all could.
  [[nodiscard]] const std::optional<Error>& read_error() const { return read_error_; }
  /// One past what has been read already.
  [[nodiscard]] std::uint64_t window_end() const { return window_position_ + window_bytes_; }
  /// Reads anew what is asked for next: somebody may have written it meanwhile.
  void forget() { window_bytes_ = 0; }
  /// The bytes from `position` on: at least `needed` of them, fewer only at the limit. Valid until the next
  /// call.
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
