/// The batch: many records under one header and checksum; the same bytes on the wire, in the ring and on
/// disk. Byte by byte: docs/log_format.md, "Batch". Layer: base.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <lightq/base/bytes.hpp>
#include <lightq/base/crc32c.hpp>
#include <lightq/base/limits.hpp>
#include <lightq/base/types.hpp>

namespace lightq::inline v1 {

/// Where each header field lies, in bytes from the batch's start. All integers are little-endian.
namespace batch_layout {
inline constexpr std::uint32_t magic_value = 0x3142514C;  ///< "LQB1"
inline constexpr std::uint8_t version_value = 1;
inline constexpr std::size_t magic = 0;            ///< u32
inline constexpr std::size_t version = 4;          ///< u8
inline constexpr std::size_t codec = 5;            ///< u8: 0 = none; others reserved for compression
inline constexpr std::size_t flags = 6;            ///< u16: see BatchFlag
inline constexpr std::size_t total_bytes = 8;      ///< u32: header and records
inline constexpr std::size_t record_count = 12;    ///< u32: at least 1
inline constexpr std::size_t base_offset = 16;     ///< u64, stamped by the log
inline constexpr std::size_t append_time_us = 24;  ///< i64, stamped by the log
inline constexpr std::size_t producer_id = 32;     ///< u64: 0 = none
inline constexpr std::size_t first_sequence = 40;  ///< u64
inline constexpr std::size_t producer_epoch = 48;  ///< u16; 2 reserved bytes, zero, follow
inline constexpr std::size_t segment_epoch = 52;   ///< u32, stamped by the log
inline constexpr std::size_t body_crc = 56;        ///< u32: CRC-32C of bytes [4,16), [32,52) and the records
inline constexpr std::size_t header_crc = 60;      ///< u32: CRC-32C of bytes [0,60), stamped by the log
inline constexpr std::size_t header_bytes = 64;
}  // namespace batch_layout

/// Bits of the `flags` field. Unknown bits make a batch invalid.
enum class BatchFlag : std::uint16_t {
  keys = 1,        ///< reserved: every record carries a key
  headers = 2,     ///< reserved: every record carries headers
  timestamps = 4,  ///< reserved: every record carries its producer's time
  control = 8,     ///< reserved: not for consumers
};

/// Bytes that a record of `payload_bytes` adds to a batch.
constexpr std::size_t record_bytes(std::size_t payload_bytes) {
  return sizeof(std::uint32_t) + payload_bytes;
}

/// Packs messages into a batch. Reusable, keeps its memory. One thread.
class BatchBuilder {
 public:
  BatchBuilder() { clear(); }

  void clear();
  /// Adds a record; the caller keeps size_bytes() within 4 GiB and record_count() within batch_records_max.
  void add(ByteView payload);
  /// Adds a record of `payload_bytes` whose bytes the caller writes at the returned place before anything
  /// else.
  std::byte* add_uninitialized(std::size_t payload_bytes);

  [[nodiscard]] bool empty() const { return record_count_ == 0; }
  [[nodiscard]] std::uint32_t record_count() const { return record_count_; }
  /// Header and records so far.
  [[nodiscard]] std::size_t size_bytes() const { return size_; }
  /// The sum of the payloads' bytes.
  [[nodiscard]] std::uint64_t payload_bytes() const { return payload_bytes_; }

  /// Completes the producer's part of the header, body checksum included. Valid until the next call of clear
  /// or add. A log then stamps the rest (Log::append).
  std::span<std::byte> finish();

 private:
  std::vector<std::byte> buffer_;
  std::size_t size_ = 0;
  std::uint32_t record_count_ = 0;
  std::uint64_t payload_bytes_ = 0;
};

/// Stamps the log's part of the header and the header checksum.
void stamp_batch(std::span<std::byte> batch, Offset base, Timestamp append_time, std::uint32_t segment_epoch);

/// Why bytes are not a batch.
enum class BatchFault {
  short_header,  ///< fewer than header_bytes
  bad_magic,
  bad_header_crc,
  bad_version,  ///< version, codec, flags or reserved bytes this reader does not know
  bad_length,   ///< total_bytes out of its range, or more than there is
  bad_body_crc,
  bad_records,  ///< record lengths do not add up to total_bytes and record_count
};

/// A read-only view of one encoded batch. Does not own; copyable.
class BatchView {
 public:
  BatchView() = default;
  /// A view of bytes already checked (or made here). The bytes may be longer than the batch.
  static BatchView trusted(const std::byte* start) { return BatchView(start); }

  /// The header's fault, or nothing: magic, header checksum, version and length against `available`.
  /// A length is never trusted before the header checksum has been checked.
  static std::optional<BatchFault> check_header(ByteView available);
  /// Header, body checksum and record structure.
  static std::optional<BatchFault> check(ByteView available);

  [[nodiscard]] bool valid() const { return start_ != nullptr; }
  [[nodiscard]] std::size_t total_bytes() const { return field<std::uint32_t>(batch_layout::total_bytes); }
  [[nodiscard]] std::uint32_t record_count() const {
    return field<std::uint32_t>(batch_layout::record_count);
  }
  [[nodiscard]] Offset base_offset() const { return {field<std::uint64_t>(batch_layout::base_offset)}; }
  [[nodiscard]] Offset end_offset() const { return base_offset() + record_count(); }
  [[nodiscard]] Timestamp append_time() const { return {field<std::int64_t>(batch_layout::append_time_us)}; }
  [[nodiscard]] std::uint32_t segment_epoch() const {
    return field<std::uint32_t>(batch_layout::segment_epoch);
  }
  [[nodiscard]] ByteView bytes() const { return {start_, total_bytes()}; }

  /// Walks a batch's records in order: `for (auto r = batch.records(); !r.done(); r.next())
  /// use(r.payload());`
  class Records {
   public:
    explicit Records(const BatchView& batch)
        : at_(batch.start_ + batch_layout::header_bytes), left_(batch.record_count()) {}
    [[nodiscard]] bool done() const { return left_ == 0; }
    [[nodiscard]] ByteView payload() const { return {at_ + sizeof(std::uint32_t), length()}; }
    void next() {
      at_ += record_bytes(length());
      --left_;
    }

   private:
    [[nodiscard]] std::uint32_t length() const { return load_little_endian<std::uint32_t>(at_); }
    const std::byte* at_;
    std::uint32_t left_;
  };
  [[nodiscard]] Records records() const { return Records(*this); }

 private:
  explicit BatchView(const std::byte* start) : start_(start) {}
  template <typename T>
  [[nodiscard]] T field(std::size_t at) const {
    return load_little_endian<T>(start_ + at);
  }
  const std::byte* start_ = nullptr;
};

}  // namespace lightq::inline v1
