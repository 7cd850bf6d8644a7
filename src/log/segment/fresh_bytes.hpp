/// Writes the bytes of a new file in large pieces. Layer: log.
#pragma once

#include <cstdint>
#include <limits>

#include "log/segment/segment_bytes.hpp"

namespace lightq::log {

/// Fills the piece around the next end of a new file with zeros, which change nothing. The system keeps the
/// bytes of one write call together in memory. In large pieces, later writes are cheaper, now and whenever
/// the file is recycled; small pieces would stay as small as the first batches. A piece is as large as the
/// data before it, so that a log of a few messages takes little memory.
///
/// Owned by SegmentFile, which calls it before each append into the file. Thread: the log's.
///
/// Example: a file is new from position 4,096 on and has 40,000 bytes. A batch that would end at 42,000 lies
/// in the piece [32768, 65536), of which [40000, 65536) is filled first. Appends up to 65,536 fill nothing.
class FreshBytes {
 public:
  /// States that nothing was ever written from `from` on. By default, nothing is known about the file.
  void begin_at(std::uint64_t from) { new_from_ = from; }
  /// Prepares an append from `begin` to `end`. Errors have no consequence and are ignored.
  void prepare(SegmentBytes& bytes, std::uint64_t begin, std::uint64_t end) {
    if (new_from_ < end) fill_piece(bytes, begin, end);
  }

 private:
  void fill_piece(SegmentBytes& bytes, std::uint64_t begin, std::uint64_t end);

  std::uint64_t new_from_ = std::numeric_limits<std::uint64_t>::max();
};

}  // namespace lightq::log
