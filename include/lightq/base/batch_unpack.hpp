/// Takes a compressed batch apart. docs/log_format.md, "Compressed records". Layer: base.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <optional>
#include <span>

#include <lightq/base/batch.hpp>
#include <lightq/base/compression.hpp>

namespace lightq::inline v1 {

/// Memory of the C library, for a size that somebody else decides: where there is none, that is told, and no
/// new-handler is called for it. Movable. One thread.
class UnpackMemory {
 public:
  /// Returns at least so many bytes; what they were is lost. Throws std::bad_alloc.
  std::byte* take(std::size_t bytes) {
    if (bytes <= bytes_) return memory_.get();
    memory_.reset();
    bytes_ = 0;
    memory_.reset(static_cast<std::byte*>(std::malloc(bytes)));
    if (memory_ == nullptr) throw std::bad_alloc();
    bytes_ = bytes;
    return memory_.get();
  }

  [[nodiscard]] std::byte* data() const { return memory_.get(); }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte, Free> memory_;
  std::size_t bytes_ = 0;
};

/// Keeps the last batch that it has unpacked, at most limits::compressed_batch_bytes_max of records. Movable.
/// One thread.
class BatchUnpacker {
 public:
  /// The same batch with its records as they were before they were compressed, and its header as it is, but
  /// for codec and length: its checksums speak of the compressed one. Valid until the next call. One that is
  /// not compressed is answered as it is. Nothing: what is compressed is not what the batch says, or its
  /// records do not add up. `batch` has passed check_body. Throws std::bad_alloc, without having called a
  /// new-handler.
  std::optional<BatchView> unpack(const BatchView& batch) {
    if (!batch.is_compressed()) return batch;
    if (batch.is_encrypted()) return std::nullopt;
    const ByteView header = batch.bytes().first(batch_layout::header_bytes);
    // At the same place with the same header (checksums, offset and time of appending) is the same batch.
    if (has(batch)) return BatchView::trusted(plain_.data());
    of_ = nullptr;
    const std::size_t bytes = batch_layout::header_bytes + batch.records_bytes();
    std::byte* const to = plain_.take(bytes);
    if (!decompressor_.decompress(batch.codec(), batch.packed_records(),
                                  std::span(to, bytes).subspan(batch_layout::header_bytes)))
      return std::nullopt;
    std::ranges::copy(header, to);
    store_little_endian(to + batch_layout::codec, static_cast<std::uint8_t>(Codec::none));
    store_little_endian(to + batch_layout::total_bytes, static_cast<std::uint32_t>(bytes));
    const BatchView made = BatchView::trusted(to);
    const auto longest = made.longest_message_bytes();
    if (!longest) return std::nullopt;
    longest_message_bytes_ = *longest;
    of_ = batch.bytes().data();
    std::ranges::copy(header, of_header_.begin());
    return made;
  }

  /// Of the batch that was unpacked last.
  [[nodiscard]] std::size_t longest_message_bytes() const { return longest_message_bytes_; }
  /// Whether that is the batch unpacked last.
  [[nodiscard]] bool has(const BatchView& batch) const {
    return of_ == batch.bytes().data() &&
           std::ranges::equal(batch.bytes().first(batch_layout::header_bytes), of_header_);
  }

  /// What was unpacked is forgotten: for memory that is written over with what may look alike.
  void forget() { of_ = nullptr; }

 private:
  Decompressor decompressor_;
  UnpackMemory plain_;
  const std::byte* of_ = nullptr;  // where the batch lies that `plain_` is made of
  std::array<std::byte, batch_layout::header_bytes> of_header_{};
  std::size_t longest_message_bytes_ = 0;
};

}  // namespace lightq::inline v1
