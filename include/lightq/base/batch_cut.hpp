/// Writes the batch headers that consumers receive, for a part of a batch or for a whole batch. Both omit the
/// producer's fields and the segment's epoch. docs/session.md, "deliver". Layer: base.
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include <lightq/base/batch.hpp>

namespace lightq::inline v1 {

/// Memory for a batch's header.
using BatchHeaderSpace = std::span<std::byte, batch_layout::header_bytes>;

/// Writes the header of a batch of `records`. The append time and the offsets stay. The producer's id, epoch
/// and sequence and the segment's epoch become zero. Length and checksums are those of the new batch. Reads
/// the records once. Requires: `records` are `count` (at least 1) consecutive records of `whole` from its
/// record `first` on, length fields included; `to` does not overlap `whole`.
inline void write_cut_header(BatchHeaderSpace to, const BatchView& whole, std::uint32_t first,
                             std::uint32_t count, ByteView records) {
  using namespace batch_layout;
  assert(count > 0 && first + count <= whole.record_count());
  std::memcpy(to.data(), whole.bytes().data(), header_bytes);
  store_little_endian(to.data() + total_bytes, static_cast<std::uint32_t>(header_bytes + records.size()));
  store_little_endian(to.data() + record_count, count);
  store_little_endian(to.data() + base_offset, (whole.base_offset() + first).value);
  std::memset(to.data() + producer_id, 0, body_crc - producer_id);
  std::uint32_t crc = crc32c(ByteView(to).subspan(version, base_offset - version));
  crc = crc32c(ByteView(to).subspan(producer_id, segment_epoch - producer_id), crc);
  store_little_endian(to.data() + body_crc, crc32c(records, crc));
  store_little_endian(to.data() + header_crc, batch_header_crc(to.data()));
}

/// Returns the value to XOR onto a CRC-32C when `change` is XORed onto some of the checked bytes. `behind`:
/// how many checked bytes follow the changed ones. Does not read them: takes about 0.1 µs for any `behind`.
inline std::uint32_t crc32c_change(ByteView change, std::size_t behind) {
  constexpr std::size_t zeros_max = 512;  // up to here a pass over zeros is faster than crc32c_join
  static constexpr std::array<std::byte, zeros_max> zeros{};
  // A CRC without the inversions before and after it is linear.
  std::uint32_t crc = ~crc32c(change, UINT32_MAX);
  if (crc == 0) return 0;
  const std::size_t passed = behind % zeros_max;
  if (passed > 0) crc = ~crc32c(ByteView(zeros).first(passed), ~crc);
  return crc32c_join(crc, 0, behind - passed);
}

/// Writes the header of `whole` with the producer's id, epoch and sequence and the segment's epoch set to
/// zero. A client that knew the segment's epoch could store a message that looks like a batch of the segment.
/// Adjusts the body checksum instead of computing it from the records, so it still detects any damage since
/// the producer computed it. Requires: `to` does not overlap `whole`.
inline void write_anonymous_header(BatchHeaderSpace to, const BatchView& whole) {
  using namespace batch_layout;
  constexpr std::size_t producer_bytes = segment_epoch - producer_id;
  std::memcpy(to.data(), whole.bytes().data(), header_bytes);
  const ByteView producer = whole.bytes().subspan(producer_id, producer_bytes);
  const std::uint32_t change = crc32c_change(producer, whole.total_bytes() - header_bytes);
  std::memset(to.data() + producer_id, 0, body_crc - producer_id);
  store_little_endian(to.data() + body_crc, load_little_endian<std::uint32_t>(to.data() + body_crc) ^ change);
  store_little_endian(to.data() + header_crc, batch_header_crc(to.data()));
}

}  // namespace lightq::inline v1
