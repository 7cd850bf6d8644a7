/// The batch that single messages are packed into, in place at the end of a segment that is written through a
/// mapping. Byte by byte: docs/log_format.md, "Open batch". Layer: log.
#pragma once

#include <array>
#include <atomic>
#include <cassert>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include <lightq/base/batch.hpp>
#include <lightq/base/bytes.hpp>
#include <lightq/base/crc32c.hpp>

#include "log/record_sum.hpp"
#include "log/segment_format.hpp"

#if defined(__GNUC__)
#define LIGHTQ_ALWAYS_INLINE [[gnu::always_inline]] inline
#else
#define LIGHTQ_ALWAYS_INLINE inline
#endif

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
    return record_bytes(payload_bytes) <= static_cast<std::size_t>(end_ - at_) && count() < records_max_;
  }
  /// Adds a message that fits (else it is written beyond the batch's room). When it returns, the message
  /// survives the process.
  void add(ByteView payload);
#ifdef LIGHTQ_RECORD_SUM_WIDE
  /// The same in less time, where RecordSum::may_be_wide says so.
  LIGHTQ_AVX2_INLINE void add_wide(ByteView payload);
#endif
  [[nodiscard]] Timestamp opened() const { return opened_; }
  [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(extent_); }
  [[nodiscard]] Offset next_offset() const { return base_ + count(); }
  /// Completes the header: the batch, stamped. No batch is open then.
  std::span<std::byte> finish();

 private:
  /// Where a record's payload goes, and what the mark says when it is there.
  struct Added {
    std::byte* to;
    std::byte* mark;
    std::uint64_t extent;
    std::uint32_t seed;
  };
  Added begin_record(std::size_t payload_bytes);
  void end_record(const Added& added);

  std::byte* start_ = nullptr;
  std::byte* at_ = nullptr;   // where the next record goes
  std::byte* end_ = nullptr;  // of the room
  std::uint64_t extent_ = 0;  // as the mark has it
  std::uint32_t records_max_ = 0;
  std::uint32_t mask_ = 0;  // SegmentHeader::batch_mask
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
/// So much at a time, which is less work than line by line.
inline constexpr std::size_t fetched_at_once_bytes = 512;

/// Asks for the memory far ahead of [from, to), which need not be memory.
LIGHTQ_ALWAYS_INLINE void fetch_ahead_of(const std::byte* from, const std::byte* to) {
  constexpr std::uintptr_t line_bytes = 64;
  const auto piece_of = [](const std::byte* at) {
    return reinterpret_cast<std::uintptr_t>(at) / fetched_at_once_bytes;
  };
  for (std::uintptr_t piece = piece_of(from); piece < piece_of(to); ++piece) {
    const std::uintptr_t ahead = piece * fetched_at_once_bytes + fetched_ahead_bytes;
    for (std::uintptr_t done = 0; done < fetched_at_once_bytes; done += line_bytes)
      __builtin_prefetch(reinterpret_cast<const void*>(ahead + done), 0, 2);
  }
}

// What is in here is most of what a single message costs.
LIGHTQ_ALWAYS_INLINE OpenBatch::Added OpenBatch::begin_record(std::size_t payload_bytes) {
  std::byte* const to = at_;
  std::byte* const end = to + record_bytes(payload_bytes);
  const std::uint64_t extent = extent_ + (1 | std::uint64_t{record_bytes(payload_bytes)} << 32);
  const Added added{to + sizeof(std::uint32_t), slots_[extent % 2], extent, seed_};
  at_ = end;
  extent_ = extent;
  fetch_ahead_of(to, end);
  store_little_endian(to, static_cast<std::uint32_t>(payload_bytes));
  return added;
}

LIGHTQ_ALWAYS_INLINE void OpenBatch::end_record(const Added& added) {
  using namespace open_mark_layout;
  const std::uint64_t sum_now = sum_.value();
  // The process may end between any two stores: the record must be there before the mark says so.
  std::atomic_signal_fence(std::memory_order_release);
  store_little_endian(added.mark + extent, added.extent);
  store_little_endian(added.mark + sum, sum_now);
  store_little_endian(added.mark + crc, crc32c_of_words(added.extent, sum_now, added.seed));
  std::atomic_signal_fence(std::memory_order_release);
}

LIGHTQ_ALWAYS_INLINE void OpenBatch::add(ByteView payload) {
  const Added added = begin_record(payload.size());
  sum_.add_copying(added.to, payload);
  end_record(added);
}

#ifdef LIGHTQ_RECORD_SUM_WIDE
LIGHTQ_AVX2_INLINE void OpenBatch::add_wide(ByteView payload) {
  const Added added = begin_record(payload.size());
  sum_.add_copying_wide(added.to, payload);
  end_record(added);
}
#endif

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

#undef LIGHTQ_ALWAYS_INLINE
