/// Packs single messages into an open batch, and completes one that a process left. docs/log_format.md, "Open
/// batch". Layer: log.
#include "log/format/open_batch.hpp"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstring>

namespace lightq::log {

namespace {

constexpr std::size_t mark_fixed_bytes = open_mark_layout::extent;

}  // namespace

// Writes all header fields that do not depend on the records. A concurrent reader looks at the time before
// the batch is finished, so these bytes must not change later.
void OpenBatch::begin(std::span<std::byte> room, std::byte* page, std::uint64_t position,
                      const SegmentHeader& header, BootId boot, Offset base, Timestamp now,
                      std::uint32_t records_max) {
  assert(!is_open() && room.size() > batch_layout::header_bytes);
  start_ = room.data();
  at_ = start_ + batch_layout::header_bytes;
  end_ = start_ + std::min<std::size_t>(room.size(), UINT32_MAX);
  extent_ = 0;
  records_max_ = records_max;
  sum_ = {};
  base_ = base;
  opened_ = now;
  mask_ = header.batch_mask;
  std::fill_n(start_, batch_layout::header_bytes, std::byte{0});
  store_little_endian(start_ + batch_layout::version, batch_layout::version_value);
  store_little_endian(start_ + batch_layout::base_offset, base.value);
  store_little_endian(start_ + batch_layout::append_time_us, now.us);
  store_little_endian(start_ + batch_layout::segment_epoch, header.epoch);
  std::array<std::byte, open_slot_bytes> mark{};
  store_little_endian(mark.data() + open_mark_layout::magic, open_mark_layout::magic_value);
  store_little_endian(mark.data() + open_mark_layout::epoch, header.epoch);
  store_little_endian(mark.data() + open_mark_layout::position, position);
  store_little_endian(mark.data() + open_mark_layout::base, base.value);
  store_little_endian(mark.data() + open_mark_layout::boot, boot.value);
  seed_ = crc32c(ByteView(mark).first(mark_fixed_bytes));
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
    slots_[slot] = page + open_slot_positions[slot];
    std::memcpy(slots_[slot], mark.data(), mark.size());
  }
}

std::span<std::byte> OpenBatch::finish() {
  assert(is_open() && count() != 0);
  const std::span<std::byte> batch(start_, at_);
  start_ = at_ = end_ = nullptr;
  store_little_endian(batch.data() + batch_layout::total_bytes, static_cast<std::uint32_t>(batch.size()));
  store_little_endian(batch.data() + batch_layout::record_count, count());
  store_little_endian(batch.data() + batch_layout::body_crc, batch_body_crc(batch));
  store_little_endian(batch.data() + batch_layout::magic, batch_layout::magic_value);
  stamp_batch_header_crc(batch.data(), mask_);
  return batch;
}

void make_batch_of_one(std::span<std::byte> room, ByteView payload) {
  namespace layout = batch_layout;
  assert(room.size() == layout::header_bytes + record_bytes(payload.size()));
  std::byte* batch = room.data();
  std::fill_n(batch, layout::header_bytes, std::byte{0});
  store_little_endian(batch + layout::version, layout::version_value);
  store_little_endian(batch + layout::total_bytes, static_cast<std::uint32_t>(room.size()));
  store_little_endian(batch + layout::record_count, std::uint32_t{1});
  store_little_endian(batch + layout::header_bytes, static_cast<std::uint32_t>(payload.size()));
  std::uint32_t crc = crc32c({batch + layout::version, layout::base_offset - layout::version});
  crc = crc32c({batch + layout::producer_id, layout::segment_epoch - layout::producer_id}, crc);
  crc = crc32c({batch + layout::header_bytes, sizeof(std::uint32_t)}, crc);
  crc = crc32c_copy(batch + layout::header_bytes + sizeof(std::uint32_t), payload, crc);
  store_little_endian(batch + layout::body_crc, crc);
  store_little_endian(batch + layout::magic, layout::magic_value);
}

std::optional<OpenBatchMark> decode_open_mark(const SegmentPage& page, const SegmentHeader& header,
                                              BootId boot) {
  std::optional<OpenBatchMark> newest;
  for (const std::size_t position : open_slot_positions) {
    const std::byte* slot = page.data() + position;
    const auto extent = load_little_endian<std::uint64_t>(slot + open_mark_layout::extent);
    const bool sound =
        load_little_endian<std::uint32_t>(slot + open_mark_layout::magic) == open_mark_layout::magic_value &&
        boot != BootId{} && load_little_endian<std::uint64_t>(slot + open_mark_layout::boot) == boot.value &&
        load_little_endian<std::uint32_t>(slot + open_mark_layout::epoch) == header.epoch &&
        load_little_endian<std::uint32_t>(slot + open_mark_layout::crc) ==
            crc32c({slot, open_mark_layout::crc}) &&
        static_cast<std::uint32_t>(extent) != 0;
    if (!sound) continue;
    const OpenBatchMark mark{load_little_endian<std::uint64_t>(slot + open_mark_layout::position),
                             {load_little_endian<std::uint64_t>(slot + open_mark_layout::base)},
                             static_cast<std::uint32_t>(extent),
                             static_cast<std::uint32_t>(extent >> 32),
                             load_little_endian<std::uint64_t>(slot + open_mark_layout::sum)};
    const bool has_offsets = mark.count <= limits::batch_records_max &&
                             mark.base.value <= limits::offset_max &&
                             mark.count <= limits::offset_max - mark.base.value;
    if (!has_offsets) continue;  // no process writes such a mark
    const bool later = !newest || newest->position < mark.position ||
                       (newest->position == mark.position && newest->count < mark.count);
    if (later) newest = mark;
  }
  return newest;
}

bool complete_open_batch(std::span<std::byte> batch, const OpenBatchMark& mark, const SegmentHeader& header) {
  namespace layout = batch_layout;
  RecordSum sum;
  std::size_t at = layout::header_bytes;
  for (std::uint32_t record = 0; record < mark.count; ++record) {
    if (batch.size() - at < record_bytes(0)) return false;
    const std::size_t bytes = load_little_endian<std::uint32_t>(batch.data() + at);
    if (batch.size() - at < record_bytes(bytes)) return false;
    sum.add(batch.subspan(at + sizeof(std::uint32_t), bytes));
    at += record_bytes(bytes);
  }
  if (at != batch.size() || sum.value() != mark.sum) return false;
  const Timestamp time{load_little_endian<std::int64_t>(batch.data() + layout::append_time_us)};
  std::fill_n(batch.data(), layout::header_bytes, std::byte{0});
  store_little_endian(batch.data() + layout::magic, layout::magic_value);
  store_little_endian(batch.data() + layout::version, layout::version_value);
  store_little_endian(batch.data() + layout::total_bytes, static_cast<std::uint32_t>(batch.size()));
  store_little_endian(batch.data() + layout::record_count, mark.count);
  store_little_endian(batch.data() + layout::body_crc, batch_body_crc(batch));
  stamp_batch(batch, mark.base, time, header.epoch, header.batch_mask);
  return true;
}

}  // namespace lightq::log
