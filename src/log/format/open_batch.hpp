/// A batch that collects single messages in place, at the end of a segment that is written through a mapping.
/// Byte by byte: docs/log_format.md, "Open batch". Layer: log.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <span>

#include <lightq/base/batch.hpp>
#include <lightq/base/bytes.hpp>
#include <lightq/base/crc32c.hpp>

#include "log/format/record_sum.hpp"
#include "log/format/segment_format.hpp"

#if defined(__GNUC__)
#define LIGHTQ_ALWAYS_INLINE [[gnu::always_inline]] inline
#else
#define LIGHTQ_ALWAYS_INLINE inline
#endif

namespace lightq::log {

/// Positions of the open batch's two marks in the first page: slots in separate sectors, written in turn.
inline constexpr std::array<std::size_t, 2> open_slot_positions = {1536, 2048};
inline constexpr std::size_t open_slot_bytes = 64;

/// Positions in a mark, see docs/log_format.md.
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

/// Packs messages into a batch without copying them again. Thread: one at a time. Requires: while a batch is
/// open, nothing else writes behind the segment's end.
class OpenBatch {
 public:
  [[nodiscard]] bool is_open() const { return start_ != nullptr; }
  /// Opens a batch in `room`, which lies at `position` of its segment. `page` is the segment's first page, in
  /// the writable mapping. The batch may grow to the size of `room`, header included, and to `records_max`
  /// records.
  void begin(std::span<std::byte> room, std::byte* page, std::uint64_t position, const SegmentHeader& header,
             BootId boot, Offset base, Timestamp now, std::uint32_t records_max);
  [[nodiscard]] bool fits(std::size_t payload_bytes) const {
    return record_bytes(payload_bytes) <= static_cast<std::size_t>(end_ - at_) && count() < records_max_;
  }
  /// Adds a message. When it returns, the message survives the end of the process. Requires: the message
  /// fits, or it is written beyond `room`.
  void add(ByteView payload);
#ifdef LIGHTQ_RECORD_SUM_WIDE
  /// Adds a message as `add` does, in less time. Requires: RecordSum::may_be_wide returned true for its size.
  LIGHTQ_AVX2_INLINE void add_wide(ByteView payload);
#endif
  [[nodiscard]] Timestamp opened() const { return opened_; }
  [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(extent_); }
  [[nodiscard]] Offset next_offset() const { return base_ + count(); }
  /// Completes the header, closes the batch and returns it, stamped.
  std::span<std::byte> finish();

 private:
  /// The place for a record's payload, and the content of the mark once the payload is there.
  struct Added {
    std::byte* to;
    std::byte* mark;
    std::uint64_t extent;
    std::uint32_t seed;
  };
  Added begin_record(std::size_t payload_bytes);
  void end_record(const Added& added);

  std::byte* start_ = nullptr;
  std::byte* at_ = nullptr;   // position of the next record
  std::byte* end_ = nullptr;  // end of `room`
  std::uint64_t extent_ = 0;  // the mark's field of that name
  std::uint32_t records_max_ = 0;
  std::uint32_t mask_ = 0;  // SegmentHeader::batch_mask
  std::array<std::byte*, 2> slots_{};
  std::uint32_t seed_ = 0;
  RecordSum sum_;
  Offset base_;
  Timestamp opened_;
};

/// How far ahead of a record the segment's memory is prefetched, in bytes. A recycled segment is no longer in
/// the caches, and a store that waits for its cache line delays all later ones. With 2 to 8 KiB, a message of
/// 128 B takes a third less time than without prefetching (docs/benchmarks.md, suite `log`).
inline constexpr std::size_t fetched_ahead_bytes = 4096;
/// How many bytes one prefetch covers; pieces are cheaper than single lines.
inline constexpr std::size_t fetched_at_once_bytes = 512;

/// Prefetches the memory fetched_ahead_bytes after [from, to). The addresses need not be mapped.
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

// The functions from here on are most of the cost of a single message.
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
  // The process may end between any two stores, so the record must be written before the mark counts it.
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

/// Builds a batch of one message in `room`; copies and sums the payload in one pass. The log stamps the other
/// fields later. Requires: `room` has exactly the size of that batch.
void make_batch_of_one(std::span<std::byte> room, ByteView payload);

/// The content of an open batch's mark in a segment's first page.
struct OpenBatchMark {
  std::uint64_t position = 0;
  Offset base;
  std::uint32_t count = 0;
  std::uint32_t bytes = 0;  ///< of the records, without the header
  std::uint64_t sum = 0;
};

/// Returns the newest valid mark of this boot, or nothing.
std::optional<OpenBatchMark> decode_open_mark(const SegmentPage& page, const SegmentHeader& header,
                                              BootId boot);

/// Completes the header of a batch that has a mark and was not finished. Returns false if the records do not
/// match the mark. Requires: `batch` is the 64 bytes of the header and the records.
bool complete_open_batch(std::span<std::byte> batch, const OpenBatchMark& mark, const SegmentHeader& header);

}  // namespace lightq::log

#undef LIGHTQ_ALWAYS_INLINE
