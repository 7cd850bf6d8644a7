/// Bytes through memory that two processes share: one writes, the other one reads, neither waits. Layer:
/// base. docs/session.md, "Shared memory", says where each word lies.
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

/// What the two ends of a ring tell each other. Each word has a line of the cache for itself, and one writer;
/// but who waits sets a word to 1 that the other one sets back to 0.
struct ByteRingWords {
  static constexpr std::size_t line_bytes = 64;
  alignas(line_bytes) std::atomic<std::uint64_t> written{0};  ///< bytes ever, by the writer
  alignas(line_bytes) std::atomic<std::uint64_t> taken{0};    ///< bytes ever, by the reader
  alignas(line_bytes) std::atomic<std::uint32_t> reader_waits{0};
  alignas(line_bytes) std::atomic<std::uint32_t> writer_waits{0};
};
static_assert(sizeof(ByteRingWords) == 4 * ByteRingWords::line_bytes);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

/// The writing end. The other end is somebody else's, who may write anything into the words: what they say is
/// believed only where it can be true. One thread.
class ByteRingWriter {
 public:
  /// `bytes`: a power of two of them. Both outlive it; nothing has been written yet.
  ByteRingWriter(ByteRingWords& words, std::span<std::byte> bytes) : words_(&words), bytes_(bytes) {}

  /// Copies as much of `bytes` as there is room for behind what was written, not to be seen before `publish`.
  std::size_t write(ByteView bytes) {
    const std::size_t count = std::min(bytes.size(), room(bytes.size()));
    const std::size_t at = written_ & (bytes_.size() - 1);
    const std::size_t first = std::min(count, bytes_.size() - at);
    if (first > 0) std::memcpy(bytes_.data() + at, bytes.data(), first);
    if (count > first) std::memcpy(bytes_.data(), bytes.data() + first, count - first);
    written_ += count;
    return count;
  }
  /// Lets the reader see what was written. Whether it waits, so that it has to be woken.
  [[nodiscard]] bool publish() {
    words_->written.store(written_, std::memory_order_seq_cst);
    if (words_->reader_waits.load(std::memory_order_seq_cst) == 0) return false;
    return words_->reader_waits.exchange(0, std::memory_order_seq_cst) != 0;
  }
  /// Tells the reader that this end waits for room. False: there is a good deal of it, and it does not.
  [[nodiscard]] bool wait() {
    words_->writer_waits.store(1, std::memory_order_seq_cst);
    if (room(bytes_.size()) < bytes_.size() / 2 && !broken_) return true;
    words_->writer_waits.store(0, std::memory_order_relaxed);
    return false;
  }
  [[nodiscard]] std::size_t size() const { return bytes_.size(); }
  /// Where nothing lies that is still to be read.
  [[nodiscard]] std::array<std::span<std::byte>, 2> unused() {
    const std::size_t count = room(bytes_.size());
    const std::size_t at = written_ & (bytes_.size() - 1);
    const std::size_t first = std::min(count, bytes_.size() - at);
    return {bytes_.subspan(at, first), bytes_.first(count - first)};
  }
  /// The reader's word cannot be true. Nothing can be written any more.
  [[nodiscard]] bool broken() const { return broken_; }

 private:
  /// At least `wanted`, if there is so much.
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
  std::uint64_t taken_ = 0;  // as the reader said last
  bool broken_ = false;
};

/// The reading end; what holds for the writing one holds for it.
class ByteRingReader {
 public:
  ByteRingReader(ByteRingWords& words, std::span<std::byte> bytes) : words_(&words), bytes_(bytes) {}

  /// How many bytes can be read.
  [[nodiscard]] std::size_t available() {
    const std::uint64_t written = words_->written.load(std::memory_order_seq_cst);
    broken_ |= written - taken_ > bytes_.size();
    return broken_ ? 0 : static_cast<std::size_t>(written - taken_);
  }
  /// Copies what can be read, from the first on but for `skipped` bytes, at most as much as `to` holds: it
  /// stays, until `release`.
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
  /// The first `count` bytes that can be read, where they lie; or those behind the first `skipped`.
  [[nodiscard]] std::array<std::span<std::byte>, 2> front(std::size_t count, std::size_t skipped = 0) const {
    const std::size_t at = (taken_ + skipped) & (bytes_.size() - 1);
    const std::size_t first = std::min(count, bytes_.size() - at);
    return {bytes_.subspan(at, first), bytes_.first(count - first)};
  }
  /// The first `count` bytes were read. Whether the writer waits and has room now, so that it has to be
  /// woken.
  [[nodiscard]] bool release(std::size_t count) {
    taken_ += count;
    words_->taken.store(taken_, std::memory_order_seq_cst);
    if (words_->writer_waits.load(std::memory_order_seq_cst) == 0) return false;
    if (available() > bytes_.size() / 2) return false;  // it will be, with more
    return words_->writer_waits.exchange(0, std::memory_order_seq_cst) != 0;
  }
  /// Tells the writer that this end waits. False: there is something to be read, and it does not.
  [[nodiscard]] bool wait() {
    words_->reader_waits.store(1, std::memory_order_seq_cst);
    if (available() == 0 && !broken_) return true;
    words_->reader_waits.store(0, std::memory_order_relaxed);
    return false;
  }
  /// All of the ring.
  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }
  /// The writer's word cannot be true. There is nothing to be read any more.
  [[nodiscard]] bool broken() const { return broken_; }

 private:
  ByteRingWords* words_;
  std::span<std::byte> bytes_;
  std::uint64_t taken_ = 0;
  bool broken_ = false;
};

}  // namespace lightq::inline v1
