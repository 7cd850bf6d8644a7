/// The batch: many records under one header and checksum; the same bytes on the wire, in the ring and on
/// disk. Includes its builder too. Byte by byte: docs/log_format.md, "Batch". Layer: base.
#pragma once

#include <cstdint>
#include <optional>

#include <lightq/base/batch_builder.hpp>
#include <lightq/base/batch_layout.hpp>

namespace lightq::inline v1 {

/// Why bytes are not a batch.
enum class BatchFault {
  short_header,  ///< fewer than header_bytes
  bad_magic,
  bad_header_crc,
  bad_version,  ///< version, codec, flags or reserved bytes this reader does not know
  bad_length,   ///< total_bytes out of its range, or more than there is
  bad_body_crc,
  bad_records,  ///< record lengths do not add up to total_bytes and record_count, or too many
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
  /// What `check` does after `check_header`: the body checksum, and records that add up. The header must have
  /// passed check_header.
  [[nodiscard]] std::optional<BatchFault> check_body() const;

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

inline std::optional<BatchFault> BatchView::check_header(ByteView available) {
  using namespace batch_layout;
  if (available.size() < header_bytes) return BatchFault::short_header;
  const BatchView view(available.data());
  if (view.field<std::uint32_t>(magic) != magic_value) return BatchFault::bad_magic;
  if (view.field<std::uint32_t>(header_crc) != batch_header_crc(available.data())) {
    return BatchFault::bad_header_crc;
  }
  const bool known = view.field<std::uint8_t>(version) == version_value &&
                     view.field<std::uint8_t>(codec) == 0 && view.field<std::uint16_t>(flags) == 0 &&
                     view.field<std::uint16_t>(producer_epoch + 2) == 0;
  if (!known) return BatchFault::bad_version;
  if (view.total_bytes() < header_bytes || view.total_bytes() > available.size()) {
    return BatchFault::bad_length;
  }
  if (view.record_count() == 0 || view.record_count() > limits::batch_records_max) {
    return BatchFault::bad_records;
  }
  return std::nullopt;
}

inline std::optional<BatchFault> BatchView::check_body() const {
  if (field<std::uint32_t>(batch_layout::body_crc) != batch_body_crc(bytes())) {
    return BatchFault::bad_body_crc;
  }
  std::size_t left = total_bytes() - batch_layout::header_bytes;
  const std::byte* at = start_ + batch_layout::header_bytes;
  for (std::uint32_t record = record_count(); record != 0; --record) {
    if (left < record_bytes(0)) return BatchFault::bad_records;
    const std::size_t bytes = record_bytes(load_little_endian<std::uint32_t>(at));
    if (bytes > left) return BatchFault::bad_records;
    at += bytes;
    left -= bytes;
  }
  if (left != 0) return BatchFault::bad_records;
  return std::nullopt;
}

inline std::optional<BatchFault> BatchView::check(ByteView available) {
  if (const auto fault = check_header(available)) return fault;
  return BatchView(available.data()).check_body();
}

}  // namespace lightq::inline v1
