/// Checks, stores and holds batches of delayed messages. Layer: topic.
#include "topic/delayed/schedule_publishing.hpp"

#include <algorithm>
#include <utility>

#include <lightq/base/due.hpp>

#include "admission/memory_reserve.hpp"

namespace lightq::broker {

namespace {
// An attempt on a full disk may be slow, and would mostly fail again.
constexpr std::int64_t disk_pause_us = 500'000;
constexpr std::size_t plain_keep_bytes = 1 * limits::MiB;
}  // namespace

const char* SchedulePublishing::fault_of(const BatchView& batch) const {
  if (!batch.kinds().has(AttributeKinds::dues))
    return "messages for the schedule need a due time: batch flag 8";
  const Timestamp now = parts_.owner.context.call_clock.now();
  for (auto record = batch.records(); !record.done(); record.next()) {
    if (is_due_too_far(record.attributes().due(), now))
      return "a message is due more than ten years (3,653 days) ahead";
  }
  return nullptr;
}

ProducerTable::Opened SchedulePublishing::open(ProducerIdentity wanted, SessionProducer& producer,
                                               ProducerTable::Opener opener) {
  opener.user = parts_.owner.owners.owner_for(opener.user);
  const auto opened = parts_.producers.open(wanted, producer, opener);
  mover_.wake();
  parts_.owner.activity.want_ticks();
  parts_.owner.activity.want_dispatch();  // to save and admit a new producer
  return opened;
}

void SchedulePublishing::detach(SessionProducer& producer) {
  parts_.producers.detach(producer);
  parts_.owner.activity.want_ticks();  // its last use is saved
}

/// Returns the batch with readable records. A compressed one is unpacked, because the schedule reads single
/// messages. Returns nothing if it cannot be unpacked, which a check before has excluded.
std::span<std::byte> SchedulePublishing::unpacked(const OfferedBatch& batch) {
  const BatchView view = BatchView::trusted(batch.bytes.data());
  if (!view.is_compressed()) return batch.bytes;
  const FallibleAllocations fallible;
  const auto plain = unpacker_.unpack(view);
  unpacker_.forget();
  if (!plain) return {};
  plain_.assign(plain->bytes().begin(), plain->bytes().end());
  store_little_endian(plain_.data() + batch_layout::body_crc, batch_body_crc(plain_));
  return plain_;
}

PublishOutcome SchedulePublishing::outcome_of(log::AppendOutcome outcome, std::uint32_t records) {
  held_by_disk_ = outcome == log::AppendOutcome::no_space || outcome == log::AppendOutcome::failed;
  if (outcome == log::AppendOutcome::appended) return PublishOutcome::accepted;
  if (outcome == log::AppendOutcome::too_large)
    return parts_.owner.topic.counted(PublishOutcome::refused, records);
  if (held_by_disk_) disk_failed_ = parts_.owner.context.call_clock.now();
  return DelayedRoom(parts_.owner.topic).none_for(records);
}

/// Stores a batch. `sequences`: null if it has none.
PublishOutcome SchedulePublishing::store_as(const OfferedBatch& batch, const Sequences* sequences) {
  Topic& topic = parts_.owner.topic;
  const Timestamp now = parts_.owner.context.call_clock.now();
  parts_.owner.activity.used_at(now);
  if (held_by_disk_ && disk_failed_ <= now && now.us - disk_failed_.us < disk_pause_us)
    return DelayedRoom(topic).none_for(batch.records);
  const std::span<std::byte> bytes = unpacked(batch);
  if (bytes.empty()) return PublishOutcome::refused;
  const std::uint64_t charge = BatchView::trusted(bytes.data()).message_bytes() +
                               batch.records * (Schedule::charge_of(0) - sizeof(std::int64_t));
  held_by_disk_ = false;
  if (!parts_.schedule.has_place_for(batch.records)) {
    count(parts_.owner.context.settings.limits_reached, Limit::delayed_messages_max, batch.records);
    return DelayedRoom(topic).none_for(batch.records);
  }
  const Offset first = topic.log().first_offset();
  const auto room = DelayedRoom(topic).make(charge, batch.records);
  // The dropped messages may have been what a group waited for.
  if (first < topic.log().first_offset()) parts_.owner.activity.want_dispatch();
  if (room != PublishOutcome::accepted) return room;
  const auto outcome = outcome_of(parts_.schedule.append(bytes, now).outcome, batch.records);
  if (outcome == PublishOutcome::accepted) {
    if (sequences != nullptr) parts_.known.stored(*sequences, now);
    parts_.known.appended(bytes.size());
    parts_.count_bytes();
    mover_.wake();
  }
  if (plain_keep_bytes < plain_.capacity()) plain_ = {};
  return outcome;
}

void SchedulePublishing::hold(SessionProducer& producer) {
  parts_.producers.note_held(producer);
  has_held_ = true;
  DelayedRoom(parts_.owner.topic).set_held(true);
  parts_.owner.activity.want_ticks();
}

bool SchedulePublishing::resume() {
  if (has_held_) has_held_ = !parts_.producers.resume();
  DelayedRoom(parts_.owner.topic).set_held(has_held_);
  return !has_held_;
}

void SchedulePublishing::published() {
  if (take_wanted_flush()) parts_.start_flush();
  parts_.owner.activity.want_ticks();
}

std::uint64_t SchedulePublishing::batch_bytes_max() const {
  return parts_.owner.publishing.batch_bytes_max();
}

}  // namespace lightq::broker
