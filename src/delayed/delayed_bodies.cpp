/// Reads the content of delayed messages from a schedule's log. Layer: delayed.
#include "delayed/delayed_bodies.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <variant>

#include "delayed/schedule_record.hpp"

namespace lightq::broker {

namespace {
void walk(const std::byte* start, std::size_t& position) {
  position += record_bytes(load_little_endian<std::uint32_t>(start + position));
}
}  // namespace

void DelayedBodies::write(std::byte* to, std::uint32_t messages) const {
  const std::size_t each = record_bytes(bytes);
  if (stride == each) {  // they are such records already
    std::memcpy(to, records, messages * each);
    return;
  }
  const std::byte* from = records + sizeof(std::uint32_t);
  for (; messages != 0; --messages, from += stride, to += each) {
    store_little_endian(to, bytes);
    if (bytes != 0) std::memcpy(to + sizeof(std::uint32_t), from, bytes);
  }
}

/// Returns a record at or before `index`, and less than `step` records before it.
LogBodies::Record LogBodies::nearest(const BatchView& batch, std::uint32_t index) {
  const std::uint64_t base = batch.base_offset().value;
  if (batch_ == base && last_.index <= index) {
    const std::uint32_t ahead = index - last_.index;
    if (ahead <= equal_) return {index, last_.position + ahead * stride_};
    if (ahead < step) return last_;
  }
  if (index < step) return {};
  auto found = positions_.find(base);
  if (found == positions_.end()) {
    if (positions_max <= positions_kept_) {
      positions_.clear();
      positions_kept_ = 0;
    }
    std::vector<std::uint32_t> positions;
    positions.reserve(batch.record_count() / step + 1);
    std::size_t position = batch_layout::header_bytes;
    for (std::uint32_t at = 0; at < batch.record_count(); ++at) {
      if (at % step == 0) positions.push_back(static_cast<std::uint32_t>(position));
      walk(batch.bytes().data(), position);
    }
    positions_kept_ += positions.size();
    found = positions_.emplace(base, std::move(positions)).first;
  }
  return {index / step * step, found->second[index / step]};
}

/// Returns the message of a record.
ByteView LogBodies::record_of(const BatchView& batch, std::uint32_t index) {
  last_ = nearest(batch, index);
  equal_ = 0;
  batch_ = batch.base_offset().value;
  const std::byte* const start = batch.bytes().data();
  for (; last_.index < index; ++last_.index) walk(start, last_.position);
  return {start + last_.position + sizeof(std::uint32_t),
          load_little_endian<std::uint32_t>(start + last_.position)};
}

DelayedBodies LogBodies::read(std::uint64_t place, std::uint32_t count) {
  at_.offset = {place};
  const log::ReadResult read = log_.read(at_);
  if (read.outcome == log::ReadOutcome::unavailable || read.outcome == log::ReadOutcome::pending)
    return {.outcome = DelayedBody::Outcome::unavailable};
  if (read.outcome != log::ReadOutcome::batch || read.batch.is_compressed()) return {};
  const BatchView& batch = read.batch;
  const auto index = static_cast<std::uint32_t>(place - batch.base_offset().value);
  const ByteView record = record_of(batch, index);
  DelayedBodies bodies{.outcome = DelayedBody::Outcome::found};
  ByteView message;
  if (batch.producer_id() != 0) {
    message = without_due(batch.kinds(), record);
    bodies.kinds = without_due(batch.kinds());
    bodies.arrived = batch.append_time();
    bodies.count = std::min(count, batch.record_count() - index);
  } else {
    const auto decoded = decode_schedule_record(record);
    const auto* const copy = decoded.record ? std::get_if<CopyRecord>(&*decoded.record) : nullptr;
    if (copy == nullptr) return {};
    message = copy->message;
    bodies.kinds = copy->kinds;
    bodies.arrived = {copy->arrived_us};
  }
  bodies.stride = record_bytes(record.size());
  bodies.bytes = static_cast<std::uint32_t>(message.size());
  bodies.records = message.data() - sizeof(std::uint32_t);
  equal_ = bodies.count;
  stride_ = bodies.stride;
  return bodies;
}

std::uint64_t MemoryBodies::add(const WaitingRun& run, AttributeKinds kinds, Timestamp arrived) {
  const std::size_t bytes = sizeof(Kept) + run.count * record_bytes(run.bytes);
  auto* const kept =
      new (::operator new(bytes)) Kept{arrived, run.number, run.bytes, run.count, run.count, kinds};
  return reinterpret_cast<std::uintptr_t>(kept);
}

bool MemoryBodies::drop(std::uint64_t place, std::uint32_t count) {
  Kept* const kept = at(place);
  kept->left -= count;
  if (kept->left != 0) return false;
  ::operator delete(kept);
  return true;
}

DelayedBodies MemoryBodies::read(const WaitingRun& run) {
  Kept* const kept = at(run.place);
  return {.outcome = DelayedBody::Outcome::found,
          .kinds = kept->kinds,
          .arrived = kept->arrived,
          .records = kept->records() + (run.number - kept->number) * kept->stride(),
          .stride = kept->stride(),
          .bytes = kept->bytes,
          .count = run.count};
}

}  // namespace lightq::broker
