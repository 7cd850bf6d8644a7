/// The end of a segment that was being written. Layer: log.
#include "log/segment/torn_tail.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

namespace lightq::log {

Result<void> check_readable(const std::string& path, const SegmentScanner& scanner, std::uint64_t begin,
                            std::uint64_t end) {
  const auto lost = scanner.unreadable(begin, end);
  if (!lost) return {};
  return Error{ErrorCode::io_error, path + " cannot be read at position " + std::to_string(*lost),
               scanner.read_error()->system_error};
}

Result<void> check_known(const std::string& path, const SegmentScanner& scanner) {
  return scanner.newer() ? scanner.newer()->error(path) : Result<void>{};
}

Result<void> check_all_known(const std::string& path, File& file, const SegmentHeader& header,
                             std::uint64_t limit) {
  SegmentScanner scanner(file, BatchMarks::of(header), limit);
  std::uint64_t position = segment_header_bytes;
  Offset expected = header.first_offset;
  while (const auto batch = scanner.resume_at(position, expected)) {
    position = batch->end_position();
    expected = batch->end;
  }
  return check_known(path, scanner);
}

Result<void> wipe_tail(SegmentFile& segment, std::uint64_t begin, SegmentScanner& scanner) {
  static const std::array<std::byte, 4096> zeros{};
  bool wiped_any = false;
  const std::uint64_t end = segment.usable_bytes();
  for (std::uint64_t at = begin; at < end;) {
    const std::uint64_t count = std::min<std::uint64_t>(zeros.size() - at % zeros.size(), end - at);
    const ByteView block = scanner.bytes_at(at, count, limits::MiB).first(count);
    if (std::memcmp(block.data(), zeros.data(), count) != 0 && !scanner.unreadable(at, at + count)) {
      const auto wiped = write_all(*segment.file(), ByteView(zeros).first(count), at);
      if (!wiped) return wiped;
      wiped_any = true;
    }
    at += count;
  }
  // Sync the zeros before anything is written there: the next power cut could mix new data with the old tail.
  return wiped_any ? segment.file()->sync() : Result<void>{};
}

}  // namespace lightq::log
