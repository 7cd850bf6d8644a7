/// The batch: many records under one header and one checksum, with the same bytes on the wire, in the ring
/// and on disk. Also includes its builder. Byte by byte: docs/log_format.md, "Batch". Layer: base.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <optional>

#include <lightq/base/attributes.hpp>
#include <lightq/base/batch_builder.hpp>
#include <lightq/base/batch_layout.hpp>
#include <lightq/base/codec.hpp>

namespace lightq::inline v1 {

/// The reason why bytes are not a valid batch.
enum class BatchFault {
  short_header,  ///< fewer than header_bytes
  bad_magic,
  bad_header_crc,
  bad_version,  ///< a version, codec, required flag or reserved byte is unknown here: perhaps sound
  bad_length,   ///< total_bytes is out of its range, or more than there are
  bad_body_crc,
  bad_records,  ///< record lengths do not add up to total_bytes and record_count, or too many; offsets above
                ///< limits::offset_max; attributes that are missing, or beyond their limits
  bad_stamp,    ///< in a producer's batch: a field that the log stamps is set already
};

/// A read-only view of one encoded batch. Does not own; copyable.
class BatchView {
 public:
  BatchView() = default;
  /// Makes a view. Requires: the batch was checked, or made by this process. The bytes may be longer than the
  /// batch.
  static BatchView trusted(const std::byte* start) { return BatchView(start); }

  /// Returns the fault of the header, or nothing: checks magic, header checksum, version, record count, and
  /// length against `available`. Uses the length only after the header checksum was checked. `mask`: see
  /// stamp_batch_header_crc.
  static std::optional<BatchFault> check_header(ByteView available, std::uint32_t mask = 0) {
    return check_header(available, mask, CodecSet::known().has(codec_in(available)));
  }
  /// Checks as check_header does, for a batch that was read from disk: it may also be encrypted.
  static std::optional<BatchFault> check_stored_header(ByteView available, std::uint32_t mask = 0) {
    const Codec codec = codec_in(available);
    return check_header(available, mask, codec == Codec::encrypted || CodecSet::known().has(codec));
  }
  /// Returns the mask with which the header checksum is right. Requires: a whole header.
  static std::uint32_t mask_of(ByteView header) {
    return load_little_endian<std::uint32_t>(header.data() + batch_layout::header_crc) ^
           batch_header_crc(header.data());
  }
  /// Returns the first fault of header, body checksum or record structure; nothing if the batch is valid.
  static std::optional<BatchFault> check(ByteView available);
  /// Checks the body checksum, and the records as far as they can be read. Requires: the header passed
  /// check_header or check_stored_header.
  [[nodiscard]] std::optional<BatchFault> check_body() const;

  /// The result of check_produced.
  struct Produced {
    std::optional<BatchFault> fault;
    std::size_t longest_message_bytes = 0;  ///< set if there is no fault and the records are not compressed
  };
  /// Checks a batch as a producer sends it, docs/session.md, "produce": exactly `bytes`, with no field
  /// stamped, and valid otherwise. Damage on the way is reported as `short_header` or `bad_body_crc`, except
  /// in the magic and in fields that the log stamps. The producer itself caused any other fault. `permitted`:
  /// the kinds of attributes that the batch may have; others are the fault `bad_version`.
  static Produced check_produced(ByteView bytes,
                                 AttributeKinds permitted = AttributeKinds(AttributeKinds::all));

  [[nodiscard]] bool valid() const { return start_ != nullptr; }
  [[nodiscard]] std::size_t total_bytes() const { return field<std::uint32_t>(batch_layout::total_bytes); }
  [[nodiscard]] std::uint32_t record_count() const {
    return field<std::uint32_t>(batch_layout::record_count);
  }
  [[nodiscard]] Offset base_offset() const { return {field<std::uint64_t>(batch_layout::base_offset)}; }
  [[nodiscard]] Offset end_offset() const { return base_offset() + record_count(); }
  [[nodiscard]] Timestamp append_time() const { return {field<std::int64_t>(batch_layout::append_time_us)}; }
  /// Returns the id of the batch's producer; 0 if the producer has none.
  [[nodiscard]] std::uint64_t producer_id() const { return field<std::uint64_t>(batch_layout::producer_id); }
  [[nodiscard]] std::uint16_t producer_epoch() const {
    return field<std::uint16_t>(batch_layout::producer_epoch);
  }
  /// Returns the producer's own number of the first record. The other records have the numbers that follow.
  [[nodiscard]] std::uint64_t first_sequence() const {
    return field<std::uint64_t>(batch_layout::first_sequence);
  }
  [[nodiscard]] std::uint32_t segment_epoch() const {
    return field<std::uint32_t>(batch_layout::segment_epoch);
  }
  [[nodiscard]] ByteView bytes() const { return {start_, total_bytes()}; }
  [[nodiscard]] Codec codec() const { return static_cast<Codec>(field<std::uint8_t>(batch_layout::codec)); }
  /// Returns true if the records can only be read with the log's key. Then `records` and every function that
  /// reads records must not be called.
  [[nodiscard]] bool is_encrypted() const { return codec() == Codec::encrypted; }
  /// Returns true if the records can only be read after BatchUnpacker::unpack. Also true for an encrypted
  /// batch, which unpack refuses.
  [[nodiscard]] bool is_compressed() const { return codec() != Codec::none; }
  /// Returns the kinds of attributes that each record has.
  [[nodiscard]] AttributeKinds kinds() const {
    return AttributeKinds(static_cast<std::uint16_t>(flags() & ~batch_layout::optional_flags));
  }
  [[nodiscard]] std::uint8_t version() const { return field<std::uint8_t>(batch_layout::version); }
  /// Returns all flags, including those that this version does not know.
  [[nodiscard]] std::uint16_t flags() const { return field<std::uint16_t>(batch_layout::flags); }
  /// Returns the length of the uncompressed records in bytes, length fields included.
  [[nodiscard]] std::size_t records_bytes() const {
    if (is_compressed()) return field<std::uint32_t>(batch_layout::header_bytes);
    return total_bytes() - batch_layout::header_bytes;
  }
  /// Returns the sum of the messages' bytes: uncompressed payloads and attributes.
  [[nodiscard]] std::uint64_t message_bytes() const {
    return records_bytes() - record_bytes(0) * record_count();
  }
  /// Returns the compressed records. Requires: is_compressed().
  [[nodiscard]] ByteView packed_records() const { return bytes().subspan(compressed_records_at); }

  /// Iterates over the records in order: `for (auto r = batch.records(); !r.done(); r.next())
  /// use(r.payload());` Requires: the batch is not compressed.
  class Records {
   public:
    explicit Records(const BatchView& batch)
        : at_(batch.start_ + batch_layout::header_bytes), left_(batch.record_count()), kinds_(batch.kinds()) {
      assert(!batch.is_compressed());
    }
    [[nodiscard]] bool done() const { return left_ == 0; }
    [[nodiscard]] ByteView payload() const { return payload_of(kinds_, message()); }
    [[nodiscard]] AttributesView attributes() const {
      return AttributesView::trusted(kinds_, at_ + sizeof(std::uint32_t));
    }
    /// Returns the message: attributes and payload.
    [[nodiscard]] ByteView message() const { return {at_ + sizeof(std::uint32_t), length()}; }
    void next() {
      at_ += record_bytes(length());
      --left_;
    }

   private:
    [[nodiscard]] std::uint32_t length() const { return load_little_endian<std::uint32_t>(at_); }
    const std::byte* at_;
    std::uint32_t left_;
    AttributeKinds kinds_;
  };
  [[nodiscard]] Records records() const { return Records(*this); }

  /// Returns the longest message's bytes, or nothing if the records do not add up or an attribute exceeds its
  /// limits. Requires: the batch is not compressed, and its length was checked.
  [[nodiscard]] std::optional<std::size_t> longest_message_bytes() const;

 private:
  explicit BatchView(const std::byte* start) : start_(start) {}
  static std::optional<BatchFault> check_header(ByteView available, std::uint32_t mask, bool codec_is_known);
  static Codec codec_in(ByteView available) {
    const bool there = batch_layout::codec < available.size();
    return there ? static_cast<Codec>(available[batch_layout::codec]) : Codec::none;
  }
  [[nodiscard]] bool is_known(bool codec_is_known) const;
  [[nodiscard]] bool is_stamped() const;
  [[nodiscard]] bool has_possible_records() const;
  template <typename T>
  [[nodiscard]] T field(std::size_t at) const {
    return load_little_endian<T>(start_ + at);
  }
  const std::byte* start_ = nullptr;
};

// Checks version, codec, required flags and reserved bytes.
inline bool BatchView::is_known(bool codec_is_known) const {
  return version() == batch_layout::version_value && codec_is_known &&
         AttributeKinds(AttributeKinds::known).has_all_of(kinds()) &&
         field<std::uint16_t>(batch_layout::producer_epoch + 2) == 0;
}

inline bool BatchView::is_stamped() const {
  return (field<std::uint64_t>(batch_layout::base_offset) |
          field<std::uint64_t>(batch_layout::append_time_us) |
          field<std::uint32_t>(batch_layout::segment_epoch) |
          field<std::uint32_t>(batch_layout::header_crc)) != 0;
}

inline std::optional<std::size_t> BatchView::longest_message_bytes() const {
  std::size_t left = total_bytes() - batch_layout::header_bytes;
  const std::byte* at = start_ + batch_layout::header_bytes;
  const AttributeKinds attributes = kinds();
  std::size_t longest = 0;
  for (std::uint32_t record = record_count(); record != 0;) {
    if (left < record_bytes(0)) return std::nullopt;
    const std::size_t message_bytes = load_little_endian<std::uint32_t>(at);
    const std::size_t bytes = record_bytes(message_bytes);
    if (bytes > left) return std::nullopt;
    if (attributes.any() && !AttributesView::measure(attributes, {at + sizeof(std::uint32_t), message_bytes}))
      return std::nullopt;
    longest = std::max(longest, message_bytes);
    // Messages often have the same length. While they do, the position of the next record does not depend on
    // loading this record's length. The loop then waits only for the comparison.
    do {
      at += bytes;
      left -= bytes;
      --record;
    } while (!attributes.any() && record != 0 && bytes <= left &&
             load_little_endian<std::uint32_t>(at) == message_bytes);
  }
  if (left != 0) return std::nullopt;
  return longest;
}

// Checks uncompressed records. For compressed and encrypted ones, checks only that their length is possible.
inline bool BatchView::has_possible_records() const {
  if (is_encrypted())
    return total_bytes() >= batch_layout::header_bytes + encrypted_layout::more_bytes + record_bytes(0);
  if (!is_compressed()) return longest_message_bytes().has_value();
  return total_bytes() > compressed_records_at &&
         may_be_packed_in(records_bytes(), total_bytes() - compressed_records_at) &&
         records_bytes() >= record_bytes(0) * record_count();
}

inline std::optional<BatchFault> BatchView::check_header(ByteView available, std::uint32_t mask,
                                                         bool codec_is_known) {
  using namespace batch_layout;
  if (available.size() < header_bytes) return BatchFault::short_header;
  const BatchView view(available.data());
  if (view.field<std::uint32_t>(magic) != magic_value) return BatchFault::bad_magic;
  if (mask_of(available) != mask) return BatchFault::bad_header_crc;
  if (!view.is_known(codec_is_known)) return BatchFault::bad_version;
  if (view.total_bytes() < header_bytes || view.total_bytes() > available.size()) {
    return BatchFault::bad_length;
  }
  if (view.record_count() == 0 || view.record_count() > limits::batch_records_max) {
    return BatchFault::bad_records;
  }
  if (view.base_offset().value > limits::offset_max - view.record_count()) return BatchFault::bad_records;
  return std::nullopt;
}

inline std::optional<BatchFault> BatchView::check_body() const {
  if (field<std::uint32_t>(batch_layout::body_crc) != batch_body_crc(bytes())) {
    return BatchFault::bad_body_crc;
  }
  if (!has_possible_records()) return BatchFault::bad_records;
  return std::nullopt;
}

inline std::optional<BatchFault> BatchView::check(ByteView available) {
  if (const auto fault = check_header(available)) return fault;
  return BatchView(available.data()).check_body();
}

inline BatchView::Produced BatchView::check_produced(ByteView bytes, AttributeKinds permitted) {
  if (bytes.size() < batch_layout::header_bytes) return {BatchFault::short_header};
  const BatchView view(bytes.data());
  // Check this before every field that it covers, the length included. So damage on the way is told apart
  // from a producer's own fault.
  if (view.field<std::uint32_t>(batch_layout::body_crc) != batch_body_crc(bytes))
    return {BatchFault::bad_body_crc};
  if (view.field<std::uint32_t>(batch_layout::magic) != batch_layout::magic_value)
    return {BatchFault::bad_magic};
  // A stored batch may have optional flags. A producer that sends one knows which flags this version has.
  if (!view.is_known(CodecSet::known().has(view.codec())) || view.kinds().bits() != view.flags() ||
      !permitted.has_all_of(view.kinds()))
    return {BatchFault::bad_version};
  if (view.total_bytes() != bytes.size()) return {BatchFault::bad_length};
  if (view.is_stamped()) return {BatchFault::bad_stamp};
  if (view.record_count() == 0 || view.record_count() > limits::batch_records_max)
    return {BatchFault::bad_records};
  if (view.is_compressed()) {
    if (!view.has_possible_records()) return {BatchFault::bad_records};
    return {};
  }
  const auto longest = view.longest_message_bytes();
  if (!longest) return {BatchFault::bad_records};
  return {std::nullopt, *longest};
}

}  // namespace lightq::inline v1
