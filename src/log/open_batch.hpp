/// The batch that single messages are packed into, in place at the end of a segment that is written through a
/// mapping. Byte by byte: docs/log_format.md, "Open batch". Layer: log.
#pragma once

#include <array>
#include <atomic>
#include <cassert>
#include <cstdint>
#include <optional>
#include <span>

#include <lightq/base/batch.hpp>
#include <lightq/base/bytes.hpp>
#include <lightq/base/crc32c.hpp>

#include "log/record_sum.hpp"
#include "log/segment_format.hpp"

namespace lightq::log {

/// Where the first page tells of the open batch: two slots in sectors of their own, written in turn.
inline constexpr std::array<std::size_t, 2> open_slot_positions = {1536, 2048};
inline constexpr std::size_t open_slot_bytes = 64;

/// What a slot holds, see docs/log_format.md; positions in it.
namespace open_mark_layout {
inline constexpr std::uint32_t magic_value = 0x4E45504F;  // "OPEN"
inline constexpr std::size_t magic = 0;                   // u32
inline constexpr std::size_t epoch = 4;                   // u32
inline constexpr std::size_t position = 8;                // u64
inline constexpr std::size_t base = 16;                   // u64
inline constexpr std::size_t boot = 24;                   // u64
inline constexpr std::size_t extent = 32;  // u64: records in the lower half, their bytes in the upper
inline constexpr std::size_t sum = 40;     // u64
inline constexpr std::size_t crc = 48;     // u32: of bytes [0,48)
}  // namespace open_mark_layout

/// Packs messages; nothing of them is ever copied again. One thread. While a batch is open, nobody else may
/// write behind the segment's end.
class OpenBatch {
 public:
  [[nodiscard]] bool is_open() const { return start_ != nullptr; }
  /// Opens a batch at `start`, which lies at `position` of its segment; `slots`: the segment's first page.
  /// It may grow to `bytes_max`, header included, and `records_max`.
  void begin(std::span<std::byte> room, std::byte* page, std::uint64_t position, const SegmentHeader& header,
             BootId boot, Offset base, Timestamp now, std::uint32_t records_max);
  [[nodiscard]] bool fits(std::size_t payload_bytes) const {
    return record_bytes(payload_bytes) <= bytes_max_ - bytes_ && count_ < records_max_;
  }
  /// Adds a message that fits. When it returns, the message survives the process.
  void add(ByteView payload);
  [[nodiscard]] Timestamp opened() const { return opened_; }
  [[nodiscard]] std::uint32_t count() const { return count_; }
  [[nodiscard]] Offset next_offset() const { return base_ + count_; }
  /// Completes the header: the batch, stamped. No batch is open then.
  std::span<std::byte> finish();

 private:
  std::byte* start_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t bytes_max_ = 0;
  std::uint32_t count_ = 0;
  std::uint32_t records_max_ = 0;
  std::array<std::byte*, 2> slots_{};
  std::uint32_t seed_ = 0;
  RecordSum sum_;
  Offset base_;
  Timestamp opened_;
};

/// How far ahead of a record the segment's memory is fetched, in bytes. A segment that is written again has
/// left the caches, and a store that must wait for its line holds up all those behind it: from 2 to 8 KiB a
/// message of 128 B takes a third less time than without (docs/benchmarks.md, suite `log`).
inline constexpr std::size_t fetched_ahead_bytes = 4096;

/// Asks for the lines of `bytes` from `at` on, which need not be memory.
#if defined(__GNUC__)
[[gnu::always_inline]]
inline void fetch_lines(const std::byte* at, std::size_t bytes) {
  constexpr std::size_t line_bytes = 64;
  for (std::size_t done = 0; done < bytes; done += line_bytes) __builtin_prefetch(at + done, 0, 2);
}
#else
inline void fetch_lines(const std::byte*, std::size_t) {}
#endif

// What is in here is most of what a single message costs.
#if defined(__GNUC__)
[[gnu::always_inline]]
#endif
inline void OpenBatch::add(ByteView payload) {
  using namespace open_mark_layout;
  assert(is_open() && fits(payload.size()));
  std::byte* const to = start_ + bytes_;
  const std::size_t bytes = record_bytes(payload.size());
  fetch_lines(to + fetched_ahead_bytes, bytes);
  store_little_endian(to, static_cast<std::uint32_t>(payload.size()));
  sum_.add_copying(to + sizeof(std::uint32_t), payload);
  bytes_ += bytes;
  ++count_;
  const std::uint64_t extent_now = count_ | (bytes_ - batch_layout::header_bytes) << 32;
  const std::uint64_t sum_now = sum_.value();
  // The process may end between any two stores: the record must be there before the mark says so.
  std::atomic_signal_fence(std::memory_order_release);
  std::byte* const mark = slots_[count_ % 2];
  store_little_endian(mark + extent, extent_now);
  store_little_endian(mark + sum, sum_now);
  store_little_endian(mark + crc, crc32c_of_words(extent_now, sum_now, seed_));
  std::atomic_signal_fence(std::memory_order_release);
}

/// Makes a batch of one message in `room`, which has exactly its size: copied and summed in one pass. What is
/// left is for the log to stamp.
void make_batch_of_one(std::span<std::byte> room, ByteView payload);

/// What a segment's first page says of an open batch.
struct OpenBatchMark {
  std::uint64_t position = 0;
  Offset base;
  std::uint32_t count = 0;
  std::uint32_t bytes = 0;  ///< of the records, without the header
  std::uint64_t sum = 0;
};

/// The newest valid mark of this boot.
std::optional<OpenBatchMark> decode_open_mark(const SegmentPage& page, const SegmentHeader& header,
                                              BootId boot);

/// Completes the header of a batch that `mark` tells of and its writer never finished: `batch` is the
/// header's 64 bytes and the records. False if they are not what the mark says.
bool complete_open_batch(std::span<std::byte> batch, const OpenBatchMark& mark, const SegmentHeader& header);

}  // namespace lightq::log
