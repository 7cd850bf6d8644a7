/// Decompresses a batch's records. docs/log_format.md, "Compressed records". Layer: base.
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

/// Memory of a size that a peer or file determines. Comes from malloc, so if there is none, no new-handler is
/// called and the caller gets an exception. Movable. One thread.
class UnpackMemory {
 public:
  /// Returns at least `bytes` bytes. Their content is undefined; the earlier content is lost. Throws
  /// std::bad_alloc.
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

/// Decompresses batches, and keeps the last one: at most limits::compressed_batch_bytes_max of records.
/// Movable. One thread.
class BatchUnpacker {
 public:
  /// Returns the batch with uncompressed records. Its header is that of `batch`, except for codec and length;
  /// its checksums remain those of the compressed batch. The result is valid until the next call. Returns a
  /// batch that is not compressed unchanged. Returns nothing if the batch is encrypted, if the compressed
  /// data do not match the header, or if the records do not add up. Requires: `batch` passed check_body.
  /// Throws std::bad_alloc, without having called a new-handler.
  std::optional<BatchView> unpack(const BatchView& batch) {
    if (!batch.is_compressed()) return batch;
    if (batch.is_encrypted()) return std::nullopt;
    const ByteView header = batch.bytes().first(batch_layout::header_bytes);
    // A batch at the same address with the same header (checksums, offset and append time) is the same batch.
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

  /// Returns the length of the longest message in the batch that was unpacked last.
  [[nodiscard]] std::size_t longest_message_bytes() const { return longest_message_bytes_; }
  /// Returns true if `batch` is the batch that was unpacked last.
  [[nodiscard]] bool has(const BatchView& batch) const {
    return of_ == batch.bytes().data() &&
           std::ranges::equal(batch.bytes().first(batch_layout::header_bytes), of_header_);
  }

  /// Forgets the unpacked batch. For callers that overwrite the memory of the batch with one that may look
  /// alike.
  void forget() { of_ = nullptr; }

 private:
  Decompressor decompressor_;
  UnpackMemory plain_;
  const std::byte* of_ = nullptr;  // the address of the batch that `plain_` contains
  std::array<std::byte, batch_layout::header_bytes> of_header_{};
  std::size_t longest_message_bytes_ = 0;
};

}  // namespace lightq::inline v1
