/// A segment file's first page: the header, and the seal that a full segment gets. Byte by byte:
/// docs/log_format.md, "Segment file". Layer: log.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>

namespace lightq::log {

/// The whole first page is the header's, so that no batch ever shares a page with it.
inline constexpr std::size_t segment_header_bytes = 4096;
inline constexpr std::uint32_t segment_format_version = 1;
/// A header that was written before its segment's first offset was known: the file's name has it.
inline constexpr Offset offset_not_yet_known{~std::uint64_t{0}};

/// What a segment file says of itself.
struct SegmentHeader {
  std::uint32_t epoch = 0;        ///< in every batch of the file; never 0
  Offset first_offset;            ///< of the first batch, or offset_not_yet_known
  std::uint64_t incarnation = 0;  ///< of the log: the same in all its files
  std::uint64_t file_bytes = 0;   ///< allocated, header included
  Offset gap_begin = {};          ///< a repair says: from here up to first_offset all is lost; 0: no gap
};

/// What is known of a segment that takes no more batches and is synced.
struct SegmentSeal {
  std::uint64_t end_position = 0;
  Offset end_offset;
  Timestamp newest;  ///< append time of the last batch
};

using SegmentPage = std::array<std::byte, segment_header_bytes>;
inline constexpr std::size_t segment_seal_position = 64;
inline constexpr std::size_t segment_seal_bytes = 64;

/// The first page of a new segment; no seal.
SegmentPage encode_segment_header(const SegmentHeader& header);
/// The seal's bytes, which belong at segment_seal_position. Bound to the segment by its header.
std::array<std::byte, segment_seal_bytes> encode_segment_seal(const SegmentSeal& seal,
                                                              const SegmentHeader& header);

enum class HeaderFault {
  blank,    ///< all zero: never written
  foreign,  ///< another magic, version or byte order
  damaged,  ///< checksum or values
};

/// The header of a first page, or what is wrong with it.
struct DecodedHeader {
  std::optional<SegmentHeader> header;
  HeaderFault fault = HeaderFault::damaged;
};
DecodedHeader decode_segment_header(const SegmentPage& page);
/// The seal of a first page whose header is `header`, if there is a valid one.
std::optional<SegmentSeal> decode_segment_seal(const SegmentPage& page, const SegmentHeader& header);

/// `00000000000000000042.seg`
std::string segment_name(Offset first_offset);
/// The offset in a segment's name; nothing for another name.
std::optional<Offset> segment_name_offset(std::string_view name);

}  // namespace lightq::log
