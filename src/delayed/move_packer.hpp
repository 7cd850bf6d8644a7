/// Packs whole runs of messages into one batch. Layer: delayed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include <lightq/base/batch.hpp>
#include <lightq/base/limits.hpp>

#include "delayed/delayed_bodies.hpp"

namespace lightq::broker {

/// Packs messages that leave a schedule, many with one copy. BatchBuilder takes them one by one, and does not
/// know the kinds of records that are added as bytes. Reusable: clear() keeps the memory, unless a huge
/// message made it grow. Thread: one.
class MovePacker {
 public:
  void clear() {
    if (BatchBuilder::keep_bytes_max < capacity_) {
      buffer_.reset();
      capacity_ = 0;
    }
    size_ = batch_layout::header_bytes;
    record_count_ = 0;
    message_bytes_ = 0;
  }

  [[nodiscard]] bool empty() const { return record_count_ == 0; }
  [[nodiscard]] std::uint32_t record_count() const { return record_count_; }
  /// Returns the length of the header and the records so far.
  [[nodiscard]] std::size_t size_bytes() const { return size_; }
  [[nodiscard]] std::uint64_t message_bytes() const { return message_bytes_; }
  /// Returns the attribute kinds of all records. Requires: not empty.
  [[nodiscard]] AttributeKinds kinds() const { return kinds_; }

  /// Adds the first `messages` of `bodies`. Requires: found, at least one, and with the kinds of the records
  /// before; the batch stays within its limits. Throws std::bad_alloc; nothing has changed then.
  void add(const DelayedBodies& bodies, std::uint32_t messages) {
    const std::size_t end = size_ + messages * record_bytes(bodies.bytes);
    if (capacity_ < end) grow(end);
    bodies.write(buffer_.get() + size_, messages);
    size_ = end;
    record_count_ += messages;
    message_bytes_ += std::uint64_t{bodies.bytes} * messages;
    kinds_ = bodies.kinds;
  }

  /// Completes the header as BatchBuilder does, and returns the batch. Requires: not empty. The result is
  /// valid until the next clear or add.
  std::span<std::byte> finish(const BatchIdentity& producer) {
    using namespace batch_layout;
    std::byte* const batch = buffer_.get();
    std::fill_n(batch, header_bytes, std::byte{0});
    store_little_endian(batch + magic, magic_value);
    store_little_endian(batch + version, version_value);
    store_little_endian(batch + flags, kinds_.bits());
    store_little_endian(batch + total_bytes, static_cast<std::uint32_t>(size_));
    store_little_endian(batch + batch_layout::record_count, record_count_);
    store_little_endian(batch + producer_id, producer.producer_id);
    store_little_endian(batch + first_sequence, producer.first_sequence);
    store_little_endian(batch + producer_epoch, producer.producer_epoch);
    store_little_endian(batch + body_crc, batch_body_crc({batch, size_}));
    return {batch, size_};
  }

 private:
  void grow(std::size_t needed) {
    const std::size_t wanted = std::max({needed, 2 * capacity_, std::size_t{4096}});
    auto grown = std::make_unique_for_overwrite<std::byte[]>(wanted);
    if (!empty()) std::memcpy(grown.get(), buffer_.get(), size_);
    buffer_ = std::move(grown);
    capacity_ = wanted;
  }

  std::unique_ptr<std::byte[]> buffer_;
  std::size_t capacity_ = 0;
  std::size_t size_ = batch_layout::header_bytes;
  std::uint32_t record_count_ = 0;
  std::uint64_t message_bytes_ = 0;
  AttributeKinds kinds_;
};

}  // namespace lightq::broker
