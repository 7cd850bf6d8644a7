/// A byte ring in memory that two processes share: one writes, the other reads, neither blocks. Layer: base.
/// docs/session.md, "Shared memory", has the position of each word.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include <lightq/base/types.hpp>

namespace lightq::inline v1 {

/// The words through which the two ends of a ring communicate. Each word has its own cache line. One end
/// alone writes each counter. An end that waits sets its `_waits` word to 1; the other end sets it back to 0.
struct ByteRingWords {
  static constexpr std::size_t line_bytes = 64;
  /// Bytes written over the ring's life; set by the writer.
  alignas(line_bytes) std::atomic<std::uint64_t> written{0};
  /// Bytes read over the ring's life; set by the reader.
  alignas(line_bytes) std::atomic<std::uint64_t> taken{0};
  alignas(line_bytes) std::atomic<std::uint32_t> reader_waits{0};
  alignas(line_bytes) std::atomic<std::uint32_t> writer_waits{0};
};
static_assert(sizeof(ByteRingWords) == 4 * ByteRingWords::line_bytes);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

/// The writing end. Another process has the other end and may write anything into the words. So this end
/// checks each value, and accepts only possible ones. One thread.
class ByteRingWriter {
 public:
  /// Makes the writing end of a ring to which nothing was written yet. Requires: `bytes` has a power of two
  /// of bytes. Lifetime: `words` and `bytes` outlive this object.
  ByteRingWriter(ByteRingWords& words, std::span<std::byte> bytes) : words_(&words), bytes_(bytes) {}

  /// Copies as much of `bytes` as there is space for, after the bytes written before. Returns how much that
  /// is. The reader does not see it before `publish`.
  std::size_t write(ByteView bytes) {
    const std::size_t count = std::min(bytes.size(), room(bytes.size()));
    const std::size_t at = written_ & (bytes_.size() - 1);
    const std::size_t first = std::min(count, bytes_.size() - at);
    if (first > 0) std::memcpy(bytes_.data() + at, bytes.data(), first);
    if (count > first) std::memcpy(bytes_.data(), bytes.data() + first, count - first);
    written_ += count;
    return count;
  }
  /// Lets the reader see the bytes written so far. Returns true if the reader waits, so that the caller must
  /// wake it.
  [[nodiscard]] bool publish() {
    words_->written.store(written_, std::memory_order_seq_cst);
    if (words_->reader_waits.load(std::memory_order_seq_cst) == 0) return false;
    return words_->reader_waits.exchange(0, std::memory_order_seq_cst) != 0;
  }
  /// Tells the reader that this end waits for space. Returns false, and does not wait, if at least half of
  /// the ring is free or the ring is broken.
  [[nodiscard]] bool wait() {
    words_->writer_waits.store(1, std::memory_order_seq_cst);
    waits_ = room(bytes_.size()) < bytes_.size() / 2 && !broken_;
    if (!waits_) words_->writer_waits.store(0, std::memory_order_relaxed);
    return waits_;
  }
  /// Returns true once after a `wait` that returned true, when the reader has cleared `writer_waits`. The
  /// reader clears the word before it wakes this end. Costs no system call.
  [[nodiscard]] bool take_woken() {
    if (!waits_ || words_->writer_waits.load(std::memory_order_acquire) != 0) return false;
    waits_ = false;
    return true;
  }
  [[nodiscard]] std::size_t size() const { return bytes_.size(); }
  /// Returns the part of the ring that contains no unread bytes.
  [[nodiscard]] std::array<std::span<std::byte>, 2> unused() {
    const std::size_t count = room(bytes_.size());
    const std::size_t at = written_ & (bytes_.size() - 1);
    const std::size_t first = std::min(count, bytes_.size() - at);
    return {bytes_.subspan(at, first), bytes_.first(count - first)};
  }
  /// Returns true if the reader's word had an impossible value. Nothing can be written any more.
  [[nodiscard]] bool broken() const { return broken_; }

 private:
  /// Returns the free bytes. Reads the reader's word only if fewer than `wanted` bytes were known to be free.
  std::size_t room(std::size_t wanted) {
    if (free() < wanted && !broken_) {
      const std::uint64_t taken = words_->taken.load(std::memory_order_seq_cst);
      broken_ = written_ - taken > bytes_.size();
      if (!broken_) taken_ = taken;
    }
    return broken_ ? 0 : free();
  }
  [[nodiscard]] std::size_t free() const { return bytes_.size() - (written_ - taken_); }

  ByteRingWords* words_;
  std::span<std::byte> bytes_;
  std::uint64_t written_ = 0;
  std::uint64_t taken_ = 0;  // the reader's word, as read last
  bool broken_ = false;
  bool waits_ = false;  // the last `wait` returned true, and take_woken has not since
};

/// The reading end. Another process has the other end and may write anything into the words. So this end
/// checks each value, and accepts only possible ones. One thread.
class ByteRingReader {
 public:
  ByteRingReader(ByteRingWords& words, std::span<std::byte> bytes) : words_(&words), bytes_(bytes) {}

  /// Returns how many bytes can be read.
  [[nodiscard]] std::size_t available() {
    const std::uint64_t written = words_->written.load(std::memory_order_seq_cst);
    broken_ |= written - taken_ > bytes_.size();
    return broken_ ? 0 : static_cast<std::size_t>(written - taken_);
  }
  /// Copies readable bytes to `to`, as many as fit, without the first `skipped` ones. Returns how many. The
  /// bytes stay in the ring until `release`.
  std::size_t copy(std::span<std::byte> to, std::size_t skipped = 0) {
    const std::size_t there = available();
    const std::size_t count = std::min(there - std::min(there, skipped), to.size());
    const auto parts = front(count, skipped);
    std::byte* at = to.data();
    for (const std::span<std::byte> part : parts) {
      if (!part.empty()) std::memcpy(at, part.data(), part.size());
      at += part.size();
    }
    return count;
  }
  /// Frees the first `count` readable bytes. Returns true if the writer waits and at least half of the ring
  /// is free now, so that the caller must wake it.
  [[nodiscard]] bool release(std::size_t count) {
    taken_ += count;
    words_->taken.store(taken_, std::memory_order_seq_cst);
    if (words_->writer_waits.load(std::memory_order_seq_cst) == 0) return false;
    if (available() > bytes_.size() / 2) return false;  // the writer is woken later, when more is free
    return words_->writer_waits.exchange(0, std::memory_order_seq_cst) != 0;
  }
  /// Tells the writer that this end waits for bytes. Returns false, and does not wait, if there are bytes to
  /// read or the ring is broken.
  [[nodiscard]] bool wait() {
    words_->reader_waits.store(1, std::memory_order_seq_cst);
    waits_ = available() == 0 && !broken_;
    if (!waits_) words_->reader_waits.store(0, std::memory_order_relaxed);
    return waits_;
  }
  /// Returns true once after a `wait` that returned true, when the writer has cleared `reader_waits`. The
  /// writer clears the word before it wakes this end. Costs no system call.
  [[nodiscard]] bool take_woken() {
    if (!waits_ || words_->reader_waits.load(std::memory_order_acquire) != 0) return false;
    waits_ = false;
    return true;
  }
  /// Returns the whole ring.
  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }
  /// Returns true if the writer's word had an impossible value. Nothing can be read any more.
  [[nodiscard]] bool broken() const { return broken_; }

 private:
  /// Returns `count` readable bytes in the ring, after the first `skipped` ones.
  [[nodiscard]] std::array<std::span<std::byte>, 2> front(std::size_t count, std::size_t skipped = 0) const {
    const std::size_t at = (taken_ + skipped) & (bytes_.size() - 1);
    const std::size_t first = std::min(count, bytes_.size() - at);
    return {bytes_.subspan(at, first), bytes_.first(count - first)};
  }

  ByteRingWords* words_;
  std::span<std::byte> bytes_;
  std::uint64_t taken_ = 0;
  bool broken_ = false;
  bool waits_ = false;  // the last `wait` returned true, and take_woken has not since
};

}  // namespace lightq::inline v1
