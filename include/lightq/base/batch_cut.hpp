/// The header of a batch that has some of another one's records. docs/session.md, "deliver", flag *part*.
/// Layer: base.
#pragma once

#include <cassert>
#include <cstdint>
#include <cstring>
#include <span>

#include <lightq/base/batch.hpp>

namespace lightq::inline v1 {

/// The place for a batch's header.
using BatchHeaderSpace = std::span<std::byte, batch_layout::header_bytes>;

/// Writes the header that makes a batch of `records`: these are `count` (at least 1) of `whole`'s records
/// that follow each other, from its record `first` on, length fields included. Whose they are, when they were
/// appended and their offsets and sequence numbers stay; length and checksums are the new batch's. One pass
/// over the records. `to` must not overlap `whole`.
inline void write_cut_header(BatchHeaderSpace to, const BatchView& whole, std::uint32_t first,
                             std::uint32_t count, ByteView records) {
  using namespace batch_layout;
  assert(count > 0 && first + count <= whole.record_count());
  std::memcpy(to.data(), whole.bytes().data(), header_bytes);
  store_little_endian(to.data() + total_bytes, static_cast<std::uint32_t>(header_bytes + records.size()));
  store_little_endian(to.data() + record_count, count);
  store_little_endian(to.data() + base_offset, (whole.base_offset() + first).value);
  if (whole.producer_id() != 0)
    store_little_endian(to.data() + first_sequence, whole.first_sequence() + first);
  std::uint32_t crc = crc32c(ByteView(to).subspan(version, base_offset - version));
  crc = crc32c(ByteView(to).subspan(producer_id, segment_epoch - producer_id), crc);
  store_little_endian(to.data() + body_crc, crc32c(records, crc));
  store_little_endian(to.data() + header_crc, batch_header_crc(to.data()));
}

}  // namespace lightq::inline v1
