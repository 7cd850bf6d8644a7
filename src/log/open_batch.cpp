/// The batch that single messages are packed into. docs/log_format.md, "Open batch". Layer: log.
#include "log/open_batch.hpp"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstring>

#include <lightq/base/bytes.hpp>
#include <lightq/base/crc32c.hpp>

#include "log/seeded_bug.hpp"

namespace lightq::log {

namespace {

constexpr std::uint32_t mark_magic = 0x4E45504F;  // "OPEN"
constexpr std::size_t mark_at_epoch = 4;          // u32
constexpr std::size_t mark_at_position = 8;       // u64
constexpr std::size_t mark_at_base = 16;          // u64
constexpr std::size_t mark_at_boot = 24;          // u64
constexpr std::size_t mark_at_extent = 32;        // u64: records in the lower half, their bytes in the upper
constexpr std::size_t mark_at_sum = 40;           // u64
constexpr std::size_t mark_at_crc = 48;           // u32: of bytes [0,48)
constexpr std::size_t mark_fixed_bytes = mark_at_extent;

constexpr std::uint64_t lane_bytes = 8;
constexpr std::size_t block_bytes = 4 * lane_bytes;

std::uint64_t extent_of(std::uint32_t count, std::uint64_t bytes) {
  return count | bytes << 32;
}

// Four lanes in registers: what an array would keep in memory from block to block.
struct Lanes {
  std::uint64_t a, b, c, d;

  void mix(std::uint64_t first, std::uint64_t second, std::uint64_t third, std::uint64_t fourth) {
    a = std::rotl(a + first, 23);
    b = std::rotl(b + second, 23);
    c = std::rotl(c + third, 23);
    d = std::rotl(d + fourth, 23);
  }
  void mix(const std::byte* block) {
    mix(load_little_endian<std::uint64_t>(block), load_little_endian<std::uint64_t>(block + lane_bytes),
        load_little_endian<std::uint64_t>(block + 2 * lane_bytes),
        load_little_endian<std::uint64_t>(block + 3 * lane_bytes));
  }
  // The bytes are read once for both.
  void mix_copying(std::byte* to, const std::byte* block) {
    const auto first = load_little_endian<std::uint64_t>(block);
    const auto second = load_little_endian<std::uint64_t>(block + lane_bytes);
    const auto third = load_little_endian<std::uint64_t>(block + 2 * lane_bytes);
    const auto fourth = load_little_endian<std::uint64_t>(block + 3 * lane_bytes);
    store_little_endian(to, first);
    store_little_endian(to + lane_bytes, second);
    store_little_endian(to + 2 * lane_bytes, third);
    store_little_endian(to + 3 * lane_bytes, fourth);
    mix(first, second, third, fourth);
  }
  // Zeros behind what is no whole block.
  void mix_last(const std::byte* at, std::size_t bytes) {
    std::array<std::byte, block_bytes> last{};
    std::memcpy(last.data(), at, bytes);
    mix(last.data());
  }
};

}  // namespace

void RecordSum::add(ByteView payload) {
  Lanes lanes{std::rotl(lanes_[0] + payload.size(), 23), lanes_[1], lanes_[2], lanes_[3]};
  const std::byte* at = payload.data();
  std::size_t left = payload.size();
  for (; left >= block_bytes; at += block_bytes, left -= block_bytes) lanes.mix(at);
  if (left != 0) lanes.mix_last(at, left);
  lanes_ = {lanes.a, lanes.b, lanes.c, lanes.d};
}

void RecordSum::add_copying(std::byte* to, ByteView payload) {
  Lanes lanes{std::rotl(lanes_[0] + payload.size(), 23), lanes_[1], lanes_[2], lanes_[3]};
  const std::byte* at = payload.data();
  std::size_t left = payload.size();
  for (; left >= block_bytes; at += block_bytes, to += block_bytes, left -= block_bytes) {
    lanes.mix_copying(to, at);
  }
  if (left != 0) {
    std::memcpy(to, at, left);
    lanes.mix_last(at, left);
  }
  lanes_ = {lanes.a, lanes.b, lanes.c, lanes.d};
}

// Everything of the header that does not depend on the records is written now: a reader beside the writer
// looks at the time before the batch is finished, and the bytes must not change under it.
void OpenBatch::begin(std::span<std::byte> room, std::byte* page, std::uint64_t position,
                      const SegmentHeader& header, BootId boot, Offset base, Timestamp now,
                      std::uint32_t records_max) {
  assert(!is_open() && room.size() > batch_layout::header_bytes);
  start_ = room.data();
  bytes_ = batch_layout::header_bytes;
  bytes_max_ = std::min<std::size_t>(room.size(), UINT32_MAX);
  count_ = 0;
  records_max_ = records_max;
  sum_ = {};
  base_ = base;
  opened_ = now;
  std::fill_n(start_, batch_layout::header_bytes, std::byte{0});
  store_little_endian(start_ + batch_layout::version, batch_layout::version_value);
  store_little_endian(start_ + batch_layout::base_offset, base.value);
  store_little_endian(start_ + batch_layout::append_time_us, now.us);
  store_little_endian(start_ + batch_layout::segment_epoch, header.epoch);
  std::array<std::byte, open_slot_bytes> mark{};
  store_little_endian(mark.data(), mark_magic);
  store_little_endian(mark.data() + mark_at_epoch, header.epoch);
  store_little_endian(mark.data() + mark_at_position, position);
  store_little_endian(mark.data() + mark_at_base, base.value);
  store_little_endian(mark.data() + mark_at_boot, boot.value);
  seed_ = crc32c(ByteView(mark).first(mark_fixed_bytes));
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
    slots_[slot] = page + open_slot_positions[slot];
    std::memcpy(slots_[slot], mark.data(), mark.size());
  }
}

void OpenBatch::add(ByteView payload) {
  assert(is_open() && fits(payload.size()));
  std::byte* to = start_ + bytes_;
  store_little_endian(to, static_cast<std::uint32_t>(payload.size()));
  sum_.add_copying(to + sizeof(std::uint32_t), payload);
  bytes_ += record_bytes(payload.size());
  ++count_;
  const std::uint64_t extent = extent_of(count_, bytes_ - batch_layout::header_bytes);
  const std::uint64_t sum = sum_.value();
  // The process may end between any two stores: the record must be there before the mark says so.
  std::atomic_signal_fence(std::memory_order_release);
  std::byte* mark = slots_[count_ % 2];
  store_little_endian(mark + mark_at_extent, extent);
  store_little_endian(mark + mark_at_sum, sum);
  store_little_endian(mark + mark_at_crc, crc32c_of_words(extent, sum, seed_));
  std::atomic_signal_fence(std::memory_order_release);
}

std::span<std::byte> OpenBatch::finish() {
  assert(is_open() && count_ != 0);
  const std::span<std::byte> batch(start_, bytes_);
  start_ = nullptr;
  bytes_max_ = bytes_ = 0;
  store_little_endian(batch.data() + batch_layout::total_bytes, static_cast<std::uint32_t>(batch.size()));
  store_little_endian(batch.data() + batch_layout::record_count, count_);
  store_little_endian(batch.data() + batch_layout::body_crc, batch_body_crc(batch));
  store_little_endian(batch.data() + batch_layout::magic, batch_layout::magic_value);
  store_little_endian(batch.data() + batch_layout::header_crc, batch_header_crc(batch.data()));
  return batch;
}

void make_batch_of_one(std::span<std::byte> room, ByteView payload) {
  using namespace batch_layout;
  assert(room.size() == header_bytes + record_bytes(payload.size()));
  std::byte* batch = room.data();
  std::fill_n(batch, header_bytes, std::byte{0});
  store_little_endian(batch + version, version_value);
  store_little_endian(batch + total_bytes, static_cast<std::uint32_t>(room.size()));
  store_little_endian(batch + record_count, std::uint32_t{1});
  store_little_endian(batch + header_bytes, static_cast<std::uint32_t>(payload.size()));
  std::uint32_t crc = crc32c({batch + version, base_offset - version});
  crc = crc32c({batch + producer_id, segment_epoch - producer_id}, crc);
  crc = crc32c({batch + header_bytes, sizeof(std::uint32_t)}, crc);
  crc = crc32c_copy(batch + header_bytes + sizeof(std::uint32_t), payload, crc);
  store_little_endian(batch + body_crc, crc);
  store_little_endian(batch + magic, magic_value);
}

std::optional<OpenBatchMark> decode_open_mark(const SegmentPage& page, const SegmentHeader& header,
                                              BootId boot) {
  std::optional<OpenBatchMark> newest;
  for (const std::size_t position : open_slot_positions) {
    const std::byte* slot = page.data() + position;
    const auto extent = load_little_endian<std::uint64_t>(slot + mark_at_extent);
    const bool sound = load_little_endian<std::uint32_t>(slot) == mark_magic && boot != BootId{} &&
                       load_little_endian<std::uint64_t>(slot + mark_at_boot) == boot.value &&
                       load_little_endian<std::uint32_t>(slot + mark_at_epoch) == header.epoch &&
                       load_little_endian<std::uint32_t>(slot + mark_at_crc) == crc32c({slot, mark_at_crc}) &&
                       static_cast<std::uint32_t>(extent) != 0;
    if (!sound) continue;
    const OpenBatchMark mark{load_little_endian<std::uint64_t>(slot + mark_at_position),
                             {load_little_endian<std::uint64_t>(slot + mark_at_base)},
                             static_cast<std::uint32_t>(extent),
                             static_cast<std::uint32_t>(extent >> 32),
                             load_little_endian<std::uint64_t>(slot + mark_at_sum)};
    const bool later = !newest || newest->position < mark.position ||
                       (newest->position == mark.position && newest->count < mark.count);
    if (later) newest = mark;
  }
  return newest;
}

bool complete_open_batch(std::span<std::byte> batch, const OpenBatchMark& mark, const SegmentHeader& header) {
  using namespace batch_layout;
  RecordSum sum;
  std::size_t at = header_bytes;
  for (std::uint32_t record = 0; record < mark.count; ++record) {
    if (batch.size() - at < record_bytes(0)) return false;
    const std::size_t bytes = load_little_endian<std::uint32_t>(batch.data() + at);
    if (batch.size() - at < record_bytes(bytes)) return false;
    sum.add(batch.subspan(at + sizeof(std::uint32_t), bytes));
    at += record_bytes(bytes);
  }
  const bool sound = sum.value() == mark.sum || seeded(SeededBug::open_mark_sum_unchecked);
  if (at != batch.size() || !sound) return false;
  const Timestamp time{load_little_endian<std::int64_t>(batch.data() + append_time_us)};
  std::fill_n(batch.data(), header_bytes, std::byte{0});
  store_little_endian(batch.data() + magic, magic_value);
  store_little_endian(batch.data() + version, version_value);
  store_little_endian(batch.data() + total_bytes, static_cast<std::uint32_t>(batch.size()));
  store_little_endian(batch.data() + record_count, mark.count);
  store_little_endian(batch.data() + body_crc, batch_body_crc(batch));
  stamp_batch(batch, mark.base, time, header.epoch);
  return true;
}

}  // namespace lightq::log
