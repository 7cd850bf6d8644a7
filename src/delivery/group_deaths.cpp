/// Makes messages of a group dead, and records it. Layer: delivery.
#include "delivery/group_deaths.hpp"

#include <algorithm>

#include "delivery/group_messages.hpp"

namespace lightq::broker {

std::uint64_t GroupDeaths::die(const CountedRanges& ranges, DeathCause cause, const std::string& reason,
                               Timestamp time) {
  if (ranges.empty()) return 0;
  RedeliveryQueue& queue = messages_.redelivery();
  const bool parks = rules_.settings().dead_letter_topic.empty();
  const DeadState state = parks ? DeadState::parked : DeadState::dead_waiting;
  CountedRanges gone;
  queue.change_dead([&](DeadMessages& dead) {
    for (const CountedRange& each : ranges) {
      queue.waiting().split(
          each.range,
          [&](OffsetRange part) { dead.add(part, {cause, each.deliveries, time, reason}, state); },
          [&](OffsetRange part) { gone.push_back({part, each.deliveries}); });
    }
  });
  if (!gone.empty()) queue.count_lost(messages_of(gone));
  const std::uint64_t died = messages_of(ranges) - messages_of(gone);
  died_ += died;
  if (cause == DeathCause::expired) died_expired_ += died;
  return died;
}

void GroupDeaths::note_failures(const CountedRanges& ranges, Timestamp time) {
  const Offset committed = messages_.committed();
  messages_.redelivery().change_dead([&](DeadMessages& dead) {
    if (!dead.has_record_room()) return;
    dead.first_failures().remove({Offset{0}, std::min(committed, ranges.front().range.begin)});
    for (const CountedRange& each : ranges) dead.first_failures().add(each.range, time);
  });
}

void GroupDeaths::forget_failures(OffsetRange range) {
  RedeliveryQueue& queue = messages_.redelivery();
  if (queue.dead() == nullptr || queue.dead()->first_failures().empty()) return;
  queue.change_dead([&](DeadMessages& dead) { dead.first_failures().remove(range); });
}

/// Expired messages ahead of the group do not count: while the queue is full they cannot die, and only
/// deliveries empty it.
bool GroupDeaths::is_outbox_full() const {
  const DeadMessages* const dead = messages_.redelivery().dead();
  return dead != nullptr && dead->waiting().size() > rules_.settings().dead_waiting_max;
}

}  // namespace lightq::broker
