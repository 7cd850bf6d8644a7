/// The batch: many records under one header and checksum; the same bytes on the wire, in the ring and on
/// disk. Includes its builder too. Byte by byte: docs/log_format.md, "Batch". Layer: base.
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

/// Why bytes are not a batch.
enum class BatchFault {
  short_header,  ///< fewer than header_bytes
  bad_magic,
  bad_header_crc,
  bad_version,  ///< version, codec, required flags or reserved bytes this reader does not know: perhaps sound
  bad_length,   ///< total_bytes out of its range, or more than there is
  bad_body_crc,
  bad_records,  ///< record lengths do not add up to total_bytes and record_count, or too many; attributes
                ///< that are not there, or beyond their limits
  bad_stamp,    ///< as a producer sends it: what the log stamps is there already
};

/// A read-only view of one encoded batch. Does not own; copyable.
class BatchView {
 public:
  BatchView() = default;
  /// A view of bytes already checked (or made here). The bytes may be longer than the batch.
  static BatchView trusted(const std::byte* start) { return BatchView(start); }

  /// The header's fault, or nothing: magic, header checksum, version and length against `available`.
  /// A length is never trusted before the header checksum has been checked. `mask`: see
  /// stamp_batch_header_crc.
  static std::optional<BatchFault> check_header(ByteView available, std::uint32_t mask = 0) {
    return check_header(available, mask, CodecSet::known().has(codec_in(available)));
  }
  /// As check_header, of a batch as it lies on a disk: it may be encrypted, too.
  static std::optional<BatchFault> check_stored_header(ByteView available, std::uint32_t mask = 0) {
    const Codec codec = codec_in(available);
    return check_header(available, mask, codec == Codec::encrypted || CodecSet::known().has(codec));
  }
  /// Returns the mask under which the header checksum is right. Requires: a whole header.
  static std::uint32_t mask_of(ByteView header) {
    return load_little_endian<std::uint32_t>(header.data() + batch_layout::header_crc) ^
           batch_header_crc(header.data());
  }
  /// Header, body checksum and record structure.
  static std::optional<BatchFault> check(ByteView available);
  /// What `check` does after `check_header`: the body checksum, and records that add up, as far as they can
  /// be read. The header must have passed check_header or check_stored_header.
  [[nodiscard]] std::optional<BatchFault> check_body() const;

  /// What a broker finds in a batch as its producer sends it.
  struct Produced {
    std::optional<BatchFault> fault;
    std::size_t longest_message_bytes = 0;  ///< without a fault, and unless the records are compressed
  };
  /// A batch as a producer sends it, docs/session.md, "produce": exactly `bytes`, nothing stamped yet, and
  /// sound otherwise. What has been damaged on its way is `short_header` or `bad_body_crc`, unless it is the
  /// magic or a field that the log stamps; any other fault the producer has made itself.
  static Produced check_produced(ByteView bytes);

  [[nodiscard]] bool valid() const { return start_ != nullptr; }
  [[nodiscard]] std::size_t total_bytes() const { return field<std::uint32_t>(batch_layout::total_bytes); }
  [[nodiscard]] std::uint32_t record_count() const {
    return field<std::uint32_t>(batch_layout::record_count);
  }
  [[nodiscard]] Offset base_offset() const { return {field<std::uint64_t>(batch_layout::base_offset)}; }
  [[nodiscard]] Offset end_offset() const { return base_offset() + record_count(); }
  [[nodiscard]] Timestamp append_time() const { return {field<std::int64_t>(batch_layout::append_time_us)}; }
  /// Who made it; 0: nobody who can be told from others.
  [[nodiscard]] std::uint64_t producer_id() const { return field<std::uint64_t>(batch_layout::producer_id); }
  [[nodiscard]] std::uint16_t producer_epoch() const {
    return field<std::uint16_t>(batch_layout::producer_epoch);
  }
  /// The producer's own number of the first record; the others follow.
  [[nodiscard]] std::uint64_t first_sequence() const {
    return field<std::uint64_t>(batch_layout::first_sequence);
  }
  [[nodiscard]] std::uint32_t segment_epoch() const {
    return field<std::uint32_t>(batch_layout::segment_epoch);
  }
  [[nodiscard]] ByteView bytes() const { return {start_, total_bytes()}; }
  [[nodiscard]] Codec codec() const { return static_cast<Codec>(field<std::uint8_t>(batch_layout::codec)); }
  /// Nobody can read its records without its log's key: neither they nor what follows from their bytes may be
  /// asked for.
  [[nodiscard]] bool is_encrypted() const { return codec() == Codec::encrypted; }
  /// Its records can be read after BatchUnpacker::unpack only.
  [[nodiscard]] bool is_compressed() const { return codec() != Codec::none; }
  /// The attributes that each record has.
  [[nodiscard]] AttributeKinds kinds() const {
    return AttributeKinds(static_cast<std::uint16_t>(flags() & ~batch_layout::optional_flags));
  }
  [[nodiscard]] std::uint8_t version() const { return field<std::uint8_t>(batch_layout::version); }
  /// All of them, those that this version does not know included.
  [[nodiscard]] std::uint16_t flags() const { return field<std::uint16_t>(batch_layout::flags); }
  /// Of the records, length fields included, when they are not compressed.
  [[nodiscard]] std::size_t records_bytes() const {
    if (is_compressed()) return field<std::uint32_t>(batch_layout::header_bytes);
    return total_bytes() - batch_layout::header_bytes;
  }
  /// The sum of the messages' bytes: payloads and attributes, not compressed.
  [[nodiscard]] std::uint64_t message_bytes() const {
    return records_bytes() - record_bytes(0) * record_count();
  }
  /// The records compressed, of a batch that is.
  [[nodiscard]] ByteView packed_records() const { return bytes().subspan(compressed_records_at); }

  /// Walks the records of a batch, which is not compressed, in order: `for (auto r = batch.records();
  /// !r.done(); r.next()) use(r.payload());`
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
    /// Attributes and payload.
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

  /// Of a batch that is not compressed and whose length is right: the longest message's bytes, if the records
  /// add up and their attributes keep to their limits; else nothing.
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

// Version, codec, required flags and reserved bytes.
inline bool BatchView::is_known(bool codec_is_known) const {
  return version() == batch_layout::version_value && codec_is_known &&
         AttributeKinds(AttributeKinds::all).has_all_of(kinds()) &&
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
    // Messages are often of one length. As long as they are, where the next one lies does not have to wait
    // for what this one says, only the check of it.
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

// Of compressed and encrypted ones, whether their length is one that they may have.
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

inline BatchView::Produced BatchView::check_produced(ByteView bytes) {
  if (bytes.size() < batch_layout::header_bytes) return {BatchFault::short_header};
  const BatchView view(bytes.data());
  // Before all that it covers, the length included: damage is told from what was meant.
  if (view.field<std::uint32_t>(batch_layout::body_crc) != batch_body_crc(bytes))
    return {BatchFault::bad_body_crc};
  if (view.field<std::uint32_t>(batch_layout::magic) != batch_layout::magic_value)
    return {BatchFault::bad_magic};
  // What is stored may have optional flags; who sends one knows what this version says of them.
  if (!view.is_known(CodecSet::known().has(view.codec())) || view.kinds().bits() != view.flags())
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
