/// Packs messages into a batch. Layer: base.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>
#include <utility>

#include <lightq/base/attributes.hpp>
#include <lightq/base/batch_layout.hpp>
#include <lightq/base/codec.hpp>
#include <lightq/base/limits.hpp>

namespace lightq::inline v1 {

/// The numbers by which a topic detects a batch that is sent again: the producer's id and epoch, and the
/// sequence number of the batch's first message. A producer numbers its messages in sequence. A batch with id
/// 0 has no such identity.
struct BatchIdentity {
  std::uint64_t producer_id = 0;
  std::uint64_t first_sequence = 0;
  std::uint16_t producer_epoch = 0;
};

/// Packs messages into a batch. Reusable: clear() keeps the memory, unless a huge message made it grow beyond
/// keep_bytes_max. Allocates nothing before the first add. Not copyable. One thread.
class BatchBuilder {
 public:
  /// The most memory that clear() keeps.
  static constexpr std::size_t keep_bytes_max = 4 * limits::MiB;

  void clear() {
    if (capacity_ > keep_bytes_max) {
      buffer_.reset();
      capacity_ = 0;
    }
    size_ = batch_layout::header_bytes;
    record_count_ = 0;
    message_bytes_ = 0;
    summed_ = batch_layout::header_bytes;
    records_crc_ = 0;
    kinds_ = {};
    codec_ = Codec::none;
    is_sound_ = true;
  }

  /// Adds a record. Requires: size_bytes() stays within 4 GiB and record_count() within batch_records_max.
  void add(ByteView payload) { add_in_place(payload.size(), CopyOf{payload}); }
  /// Adds a record with attributes. The whole batch has the attribute kinds of its first record and those in
  /// `kinds`. Pass in `kinds` what later records need. Requires: size_bytes() stays within 4 GiB and
  /// record_count() within batch_records_max; the attributes pass Attributes::check; later records use no
  /// other kinds.
  void add(ByteView payload, const Attributes& attributes, AttributeKinds kinds = {}) {
    add_in_place(payload.size(), CopyOf{payload}, attributes, kinds);
  }
  /// For add_in_place: copies a payload that lies elsewhere.
  struct CopyOf {
    ByteView bytes;
    void operator()(std::span<std::byte> to) const {
      if (!bytes.empty()) std::memcpy(to.data(), bytes.data(), bytes.size());
    }
  };

  /// Adds a record. Calls `write(std::span<std::byte>)` with the `payload_bytes` bytes in the batch that are
  /// for the payload. `write` must not use the builder. If `write` throws, nothing was added. Requires:
  /// size_bytes() stays within 4 GiB and record_count() within batch_records_max.
  template <typename Write>
  void add_in_place(std::size_t payload_bytes, Write&& write) {
    if (kinds_.any()) [[unlikely]]
      return add_in_place(payload_bytes, std::forward<Write>(write), Attributes());
    std::byte* const to = place(payload_bytes);
    std::forward<Write>(write)(std::span(to, payload_bytes));
    placed(payload_bytes);
  }
  template <typename Write>
  void add_in_place(std::size_t payload_bytes, Write&& write, const Attributes& attributes,
                    AttributeKinds kinds = {}) {
    const AttributeKinds own(attributes);
    if (empty()) kinds_ = own | kinds;
    is_sound_ = is_sound_ && kinds_.has_all_of(own) && (!own.any() || attributes.check());
    if (!is_sound_) return;
    const std::size_t message_bytes = attributes_bytes(kinds_, attributes) + payload_bytes;
    std::byte* const to = write_attributes(place(message_bytes), kinds_, attributes);
    std::forward<Write>(write)(std::span(to, payload_bytes));
    placed(message_bytes);
  }
  /// Returns the attribute kinds that each record of the batch has. In an empty builder the next record
  /// decides them.
  [[nodiscard]] AttributeKinds kinds() const { return kinds_; }
  /// Returns false if a message was left out since clear(): its attributes exceeded their limits, or had
  /// kinds that the batch does not have.
  [[nodiscard]] bool is_sound() const { return is_sound_; }

  /// Adds a record of `message_bytes` and returns its start. The caller must write the record's bytes before
  /// any other call.
  std::byte* add_uninitialized(std::size_t message_bytes) {
    std::byte* const to = place(message_bytes);
    placed(message_bytes);
    return to;
  }

  [[nodiscard]] bool empty() const { return record_count_ == 0; }
  [[nodiscard]] std::uint32_t record_count() const { return record_count_; }
  /// Returns the length of the header and the records so far.
  [[nodiscard]] std::size_t size_bytes() const { return size_; }
  /// Returns the sum of the messages' bytes: uncompressed payloads and attributes.
  [[nodiscard]] std::uint64_t message_bytes() const { return message_bytes_; }
  /// Returns the records so far, length fields included. Valid until the next add.
  [[nodiscard]] ByteView records() const {
    return ByteView(buffer_.get(), size_).subspan(batch_layout::header_bytes);
  }

  [[nodiscard]] Codec codec() const { return codec_; }
  /// Replaces the records by `packed`. Requires: `packed` is records() compressed, and shorter. Nothing may
  /// be added before the next clear().
  void replace_records(Codec codec, ByteView packed) {
    assert(codec_ == Codec::none && packed.size() + sizeof(std::uint32_t) < records().size());
    std::byte* const to = buffer_.get() + batch_layout::header_bytes;
    store_little_endian(to, static_cast<std::uint32_t>(records().size()));
    std::memcpy(to + sizeof(std::uint32_t), packed.data(), packed.size());
    size_ = compressed_records_at + packed.size();
    codec_ = codec;
    summed_ = batch_layout::header_bytes;
    records_crc_ = 0;
  }
  /// Returns the bytes of memory that the builder owns now.
  [[nodiscard]] std::size_t capacity_bytes() const { return capacity_; }

  /// Completes the producer's part of the header, body checksum included, and returns the batch. A log later
  /// stamps the other fields (BatchLog::append). Requires: the batch is not empty. Records must not change
  /// any more. The result is valid until the next clear or add. May be called again, also with another
  /// identity.
  std::span<std::byte> finish(const BatchIdentity& producer = {}) {
    assert(!empty());
    std::byte* batch = buffer_.get();
    std::fill_n(batch, batch_layout::header_bytes, std::byte{0});
    store_little_endian(batch + batch_layout::magic, batch_layout::magic_value);
    store_little_endian(batch + batch_layout::version, batch_layout::version_value);
    store_little_endian(batch + batch_layout::codec, static_cast<std::uint8_t>(codec_));
    store_little_endian(batch + batch_layout::flags, kinds_.bits());
    store_little_endian(batch + batch_layout::total_bytes, static_cast<std::uint32_t>(size_));
    store_little_endian(batch + batch_layout::record_count, record_count_);
    store_little_endian(batch + batch_layout::producer_id, producer.producer_id);
    store_little_endian(batch + batch_layout::first_sequence, producer.first_sequence);
    store_little_endian(batch + batch_layout::producer_epoch, producer.producer_epoch);
    if (summed_ == batch_layout::header_bytes) {
      store_little_endian(batch + batch_layout::body_crc, batch_body_crc({batch, size_}));
    } else {
      sum_up_to(size_);
      const std::size_t records_bytes = size_ - batch_layout::header_bytes;
      store_little_endian(batch + batch_layout::body_crc, batch_body_crc(batch, records_crc_, records_bytes));
    }
    return {batch, size_};
  }

 private:
  /// Returns where to write the next record's message. The record is not counted before `placed`.
  std::byte* place(std::size_t message_bytes) {
    assert(message_bytes <= UINT32_MAX && codec_ == Codec::none);
    const std::size_t end = size_ + record_bytes(message_bytes);
    assert(end <= UINT32_MAX && record_count_ < limits::batch_records_max);
    if (end > capacity_) [[unlikely]]
      grow(end);
    // Sums while the latest records are still in the cache. Leaves out the record that is being added,
    // because its bytes are not written yet.
    if (size_ - summed_ >= sum_bytes_min) [[unlikely]]
      sum_up_to(size_);
    std::byte* const record = buffer_.get() + size_;
    store_little_endian(record, static_cast<std::uint32_t>(message_bytes));
    return record + sizeof(std::uint32_t);
  }
  void placed(std::size_t message_bytes) {
    size_ += record_bytes(message_bytes);
    ++record_count_;
    message_bytes_ += message_bytes;
  }

  static constexpr std::size_t sum_bytes_min = 3072;  // 4 x 3 x 256 bytes: four steps of crc32c
  // Not inlined, so that `place` is small enough to be inlined.
  [[gnu::noinline]] void sum_up_to(std::size_t end) {
    records_crc_ = crc32c({buffer_.get() + summed_, end - summed_}, records_crc_);
    summed_ = end;
  }

  struct Free {
    void operator()(std::byte* bytes) const { std::free(bytes); }
  };

  // Uses realloc, which neither zeroes memory nor copies memory that was never written. Not inlined, because
  // calls are rare, and because g++ 12 warns of impossible overflows in the inlined code.
  [[gnu::noinline]] void grow(std::size_t needed) {
    const std::size_t wanted = std::max({needed, 2 * capacity_, std::size_t{4096}});
    auto* moved = static_cast<std::byte*>(std::realloc(buffer_.get(), wanted));
    if (moved == nullptr) throw std::bad_alloc();
    static_cast<void>(buffer_.release());
    buffer_.reset(moved);
    capacity_ = wanted;
  }

  std::unique_ptr<std::byte[], Free> buffer_;
  std::size_t capacity_ = 0;
  std::size_t size_ = batch_layout::header_bytes;
  std::uint32_t record_count_ = 0;
  std::uint64_t message_bytes_ = 0;
  std::size_t summed_ = batch_layout::header_bytes;  // records_crc_ covers bytes up to this position
  std::uint32_t records_crc_ = 0;
  AttributeKinds kinds_;
  Codec codec_ = Codec::none;
  bool is_sound_ = true;
};

}  // namespace lightq::inline v1
