/// Reads the content of delayed messages from a schedule's log. Layer: delayed.
#include "delayed/delayed_bodies.hpp"

#include <cstring>
#include <new>
#include <utility>

#include "delayed/schedule_record.hpp"

namespace lightq::broker {

namespace {
void walk(const std::byte* start, std::size_t& position) {
  position += record_bytes(load_little_endian<std::uint32_t>(start + position));
}
}  // namespace

/// Returns a record at or before `index`, and less than `step` records before it.
LogBodies::Record LogBodies::nearest(const BatchView& batch, std::uint32_t index) {
  const std::uint64_t base = batch.base_offset().value;
  if (batch_ == base && last_.index <= index && index - last_.index < step) return last_;
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
  batch_ = batch.base_offset().value;
  const std::byte* const start = batch.bytes().data();
  for (; last_.index < index; ++last_.index) walk(start, last_.position);
  return {start + last_.position + sizeof(std::uint32_t),
          load_little_endian<std::uint32_t>(start + last_.position)};
}

DelayedBody LogBodies::read(std::uint64_t place) {
  at_.offset = {place};
  const log::ReadResult read = log_.read(at_);
  if (read.outcome == log::ReadOutcome::unavailable || read.outcome == log::ReadOutcome::pending)
    return {.outcome = DelayedBody::Outcome::unavailable};
  if (read.outcome != log::ReadOutcome::batch || read.batch.is_compressed()) return {};
  const BatchView& batch = read.batch;
  const auto index = static_cast<std::uint32_t>(place - batch.base_offset().value);
  const ByteView record = record_of(batch, index);
  if (batch.producer_id() != 0) {
    return {DelayedBody::Outcome::found, without_due(batch.kinds()), batch.append_time(),
            without_due(batch.kinds(), record)};
  }
  const auto decoded = decode_schedule_record(record);
  const auto* const copy = decoded.record ? std::get_if<CopyRecord>(&*decoded.record) : nullptr;
  if (copy == nullptr) return {};
  return {DelayedBody::Outcome::found, copy->kinds, {copy->arrived_us}, copy->message};
}

std::uint64_t MemoryBodies::add(AttributeKinds kinds, Timestamp arrived, ByteView message) {
  auto* const body = new (::operator new(sizeof(Body) + message.size()))
      Body{first_, nullptr, arrived, static_cast<std::uint32_t>(message.size()), kinds};
  if (!message.empty()) std::memcpy(static_cast<void*>(body + 1), message.data(), message.size());
  if (first_ != nullptr) first_->previous = body;
  first_ = body;
  return reinterpret_cast<std::uintptr_t>(body);
}

void MemoryBodies::drop(std::uint64_t place) {
  auto* const body = reinterpret_cast<Body*>(static_cast<std::uintptr_t>(place));
  (body->previous != nullptr ? body->previous->next : first_) = body->next;
  if (body->next != nullptr) body->next->previous = body->previous;
  ::operator delete(body);
}

}  // namespace lightq::broker
