/// Appends to one segment of a log, and fills it from what recovery finds. Layer: log.
#include "log/segment/segment_file.hpp"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstring>
#include <span>
#include <utility>

namespace lightq::log {

SegmentFile::SegmentFile(std::string path, const SegmentHeader& header, std::uint64_t usable_bytes,
                         std::shared_ptr<File> file)
    : header_(header),
      bytes_(std::move(path), usable_bytes, std::move(file)),
      end_{segment_header_bytes, header.first_offset} {
  synced_point = seal();
}

Result<void> SegmentFile::append(const BatchView& batch) {
  assert(!sealed && batch.base_offset() == end_.offset && has_room(batch.total_bytes()));
  Result<void> written;
  if (bytes_.writable() != nullptr) {
    std::memcpy(bytes_.writable()->data() + end_.position, batch.bytes().data(), batch.total_bytes());
  } else {
    fresh_.prepare(bytes_, end_.position, end_.position + batch.total_bytes());
    written = write_all(*bytes_.file(), batch.bytes(), end_.position);
  }
  if (!written) return written;
  append_in_place(batch);
  return {};
}

void SegmentFile::append_in_place(const BatchView& batch) {
  note_batch({end_.position, batch.total_bytes(), batch.base_offset(), batch.end_offset(),
              batch.append_time(), batch.segment_epoch(), header_.batch_mask});
}

std::span<std::byte> SegmentFile::room(std::uint64_t wanted) {
  return {bytes_.writable()->data() + end_.position, std::min(wanted, usable_bytes() - end_.position)};
}

void SegmentFile::begin(std::shared_ptr<WritableMapping> mapping, std::uint64_t new_from) {
  begun_here = true;
  bytes_.write_through(std::move(mapping));
  fresh_.begin_at(new_from);
}

void SegmentFile::publish_to(std::shared_ptr<SegmentNode> node) {
  node_ = std::move(node);
  if (bytes_.writable() != nullptr) node_->share(bytes_.writable());
  node_->publish(end_.position, end_.offset);
}

void SegmentFile::note_batch(const ScannedBatch& batch) {
  finder_.note_batch(batch);
  end_ = {batch.end_position(), batch.end};
  times_.note(batch.time);
  if (node_ == nullptr) return;
  node_->note_batch(batch.base, batch.position, batch.time);
  node_->publish(end_.position, end_.offset);
}

void SegmentFile::note_damage(const SegmentDamage& damage) {
  finder_.note_damage(damage);
  checked_from_ = std::max(checked_from_, damage.end);
  if (end_.position <= damage.begin) end_ = {damage.end, damage.next};
}

void SegmentFile::set_end(const SegmentSeal& seal) {
  end_ = {seal.end_position, seal.end_offset};
  times_.note(seal.newest);
  checked_from_ = seal.end_position;
  sealed = true;
  seal_written = seal.boot == BootId{};
  synced_position = seal_written ? seal.end_position : 0;
}

void SegmentFile::set_checkpoint(const SegmentCheckpoint& checkpoint, std::uint64_t next_sequence) {
  marks_.set_checkpoint(checkpoint, next_sequence);
  checked_from_ = checkpoint.end_position;
  end_ = {checkpoint.end_position, checkpoint.end_offset};
  times_.note(checkpoint.newest);
  if (checkpoint.boot == BootId{}) synced_point = seal();
}

void SegmentFile::set_unreadable(Offset end) {
  const SegmentDamage all{segment_header_bytes, std::max<std::uint64_t>(usable_bytes(), segment_header_bytes),
                          first_offset(), end};
  finder_.set_unreadable(all);
  end_ = {all.end, end};
  checked_from_ = all.end;
  times_.set_unknown();
  sealed = true;
  seal_written = true;  // there is nothing to seal, and the file must not be changed
  synced_position = all.end;
}

Result<void> SegmentFile::open_mapped(Storage& storage, SegmentViews* views) {
  if (auto opened = open_for_writing(storage); !opened) return opened;
  if (bytes_.writable() != nullptr) return {};
  if (auto mapped = bytes_.map_for_writing(views); !mapped) return mapped;
  if (node_ != nullptr && views != nullptr) views->share(*node_, bytes_.writable());
  return {};
}

void SegmentFile::release() {
  bytes_.unmap_for_reading();
  if (!synced() || (sealed && !seal_written)) {
    if (sealed) static_cast<void>(release_descriptor());
    return;
  }
  bytes_.close();
}

}  // namespace lightq::log
