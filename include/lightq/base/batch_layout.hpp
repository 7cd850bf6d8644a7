/// The batch's byte layout and its two checksums, shared by its builder and its readers. Byte by byte:
/// docs/log_format.md, "Batch". Layer: base.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <lightq/base/bytes.hpp>
#include <lightq/base/crc32c.hpp>
#include <lightq/base/limits.hpp>
#include <lightq/base/types.hpp>

namespace lightq::inline v1 {

/// The position of each header field, in bytes from the batch's start. All integers are little-endian.
namespace batch_layout {
inline constexpr std::uint32_t magic_value = 0x3142514C;  ///< "LQB1"
inline constexpr std::uint8_t version_value = 1;
inline constexpr std::size_t magic = 0;        ///< u32
inline constexpr std::size_t version = 4;      ///< u8
inline constexpr std::size_t codec = 5;        ///< u8: see Codec
inline constexpr std::size_t flags = 6;        ///< u16: the AttributeKinds of all records, or optional_flags
inline constexpr std::size_t total_bytes = 8;  ///< u32: header and records
inline constexpr std::size_t record_count = 12;    ///< u32: at least 1
inline constexpr std::size_t base_offset = 16;     ///< u64, stamped by the log
inline constexpr std::size_t append_time_us = 24;  ///< i64, stamped by the log
inline constexpr std::size_t producer_id = 32;     ///< u64: 0 = none
inline constexpr std::size_t first_sequence = 40;  ///< u64
inline constexpr std::size_t producer_epoch = 48;  ///< u16; 2 reserved bytes, zero, follow
inline constexpr std::size_t segment_epoch = 52;   ///< u32, stamped by the log
inline constexpr std::size_t body_crc = 56;        ///< u32: CRC-32C of bytes [4,16), [32,52) and the records
inline constexpr std::size_t header_crc =
    60;  ///< u32: CRC-32C of bytes [0,60), XOR a mask; stamped by the log
inline constexpr std::size_t header_bytes = 64;
/// Flags that a version which does not know them ignores. None is defined yet. All other flags are required.
inline constexpr std::uint16_t optional_flags = 0xFF00;
}  // namespace batch_layout

/// Returns how many bytes a message of `message_bytes` (attributes and payload) adds to a batch.
constexpr std::size_t record_bytes(std::size_t message_bytes) {
  return sizeof(std::uint32_t) + message_bytes;
}

/// The position of compressed records. Before them is a u32: the length of the uncompressed records.
inline constexpr std::size_t compressed_records_at = batch_layout::header_bytes + sizeof(std::uint32_t);

/// The layout behind the header of an encrypted batch. `more_bytes`: how much longer it is than unencrypted.
/// docs/log_format.md, "Encrypted batches".
namespace encrypted_layout {
inline constexpr std::size_t nonce = batch_layout::header_bytes;
inline constexpr std::size_t nonce_bytes = 24;
inline constexpr std::size_t sealed = nonce + nonce_bytes;  ///< the encrypted part: prefix and records
inline constexpr std::size_t prefix_bytes = 8;  ///< u32 body CRC, u8 codec before encryption; 3 zeros
inline constexpr std::size_t tag_bytes = 16;    ///< at the end
inline constexpr std::size_t more_bytes = nonce_bytes + prefix_bytes + tag_bytes;
}  // namespace encrypted_layout

/// Returns true if records of `records_bytes` may have `packed_bytes` when compressed. docs/log_format.md,
/// "Compressed records".
constexpr bool may_be_packed_in(std::size_t records_bytes, std::size_t packed_bytes) {
  return records_bytes <= limits::compressed_batch_bytes_max &&
         records_bytes <= limits::unpacked_bytes_free + limits::unpacked_ratio_max * packed_bytes;
}

/// Returns the CRC-32C of all fields that the producer sets: bytes [4,16), [32,52) and the records. `batch`
/// is exactly the batch, header included.
inline std::uint32_t batch_body_crc(ByteView batch) {
  using namespace batch_layout;
  std::uint32_t crc = crc32c(batch.subspan(version, base_offset - version));
  crc = crc32c(batch.subspan(producer_id, segment_epoch - producer_id), crc);
  return crc32c(batch.subspan(header_bytes), crc);
}

/// Returns the same CRC as batch_body_crc of a whole batch, computed from the header and the CRC of the
/// records.
inline std::uint32_t batch_body_crc(const std::byte* batch, std::uint32_t records_crc,
                                    std::size_t records_bytes) {
  using namespace batch_layout;
  std::uint32_t crc = crc32c({batch + version, base_offset - version});
  crc = crc32c({batch + producer_id, segment_epoch - producer_id}, crc);
  return crc32c_join(crc, records_crc, records_bytes);
}

/// Returns the CRC-32C of the header's bytes [0,60).
inline std::uint32_t batch_header_crc(const std::byte* batch) {
  return crc32c({batch, batch_layout::header_crc});
}

/// Writes the header checksum. `mask`: that of the segment file for which the batch is, see
/// log::SegmentHeader::batch_mask; 0 for other batches.
inline void stamp_batch_header_crc(std::byte* batch, std::uint32_t mask = 0) {
  store_little_endian(batch + batch_layout::header_crc, batch_header_crc(batch) ^ mask);
}

/// Stamps the log's part of the header and the header checksum. `batch`: a complete encoded batch.
inline void stamp_batch(std::span<std::byte> batch, Offset base, Timestamp append_time,
                        std::uint32_t segment_epoch, std::uint32_t mask = 0) {
  store_little_endian(batch.data() + batch_layout::base_offset, base.value);
  store_little_endian(batch.data() + batch_layout::append_time_us, append_time.us);
  store_little_endian(batch.data() + batch_layout::segment_epoch, segment_epoch);
  stamp_batch_header_crc(batch.data(), mask);
}

}  // namespace lightq::inline v1
