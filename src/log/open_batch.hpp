/// The batch that single messages are packed into, in place at the end of a segment that is written through a
/// mapping. Byte by byte: docs/log_format.md, "Open batch". Layer: log.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <span>

#include <lightq/base/batch.hpp>

#include "log/segment_format.hpp"

namespace lightq::log {

/// Where the first page tells of the open batch: two slots in sectors of their own, written in turn.
inline constexpr std::array<std::size_t, 2> open_slot_positions = {1536, 2048};
inline constexpr std::size_t open_slot_bytes = 64;

/// An order-dependent sum of records, quick enough to be kept up for each: any change of one eight-byte word
/// changes it. What survives a power cut has CRCs; this guards memory that outlived its process.
class RecordSum {
 public:
  void add(ByteView payload);
  /// As add, and copies the record to `to`.
  void add_copying(std::byte* to, ByteView payload);
  [[nodiscard]] std::uint64_t value() const {
    return (lanes_[0] ^ std::rotl(lanes_[1], 16)) + std::rotl(lanes_[2] ^ std::rotl(lanes_[3], 16), 32);
  }

 private:
  std::array<std::uint64_t, 4> lanes_ = {0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9,
                                         0x27D4EB2F165667C5};
};

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
