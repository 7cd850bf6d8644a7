/// The messages of a group: their numbers, and snapshots of them. Layer: delivery.
#include "delivery/group_messages.hpp"

#include <algorithm>
#include <utility>

#include "admission/turn_work.hpp"

namespace lightq::broker {

void GroupMessages::seek(Offset offset) {
  // Each message counts once as expired, whether or not the group has passed it.
  const std::uint64_t ahead = expiry_.from(next());
  reader_.seek(offset);
  expiry_.count(ahead - expiry_.from(next()));
  expiry_.runs().forget_from(offset);  // what happens to these messages now is not known yet
  redelivery_.clear();
  unsent_.clear();
  if (collection_ != nullptr) collection_->in_flight.clear();
}

void GroupMessages::restore(const log::Unfinished& saved, const ClockReading& clocks) {
  clocks_ = clocks;
  reader_.seek(saved.next);
  redelivery_.restore(saved, clocks);
}

Offset GroupMessages::committed() const {
  Offset oldest = reader_.offset();
  if (const auto redelivery = redelivery_.first()) oldest = std::min(oldest, *redelivery);
  if (const auto outstanding = consumers_.standing.first()) oldest = std::min(oldest, *outstanding);
  for (const RecordSink* const consumer : consumers_.plain) {
    if (const auto unsent = consumer->first_unsent()) oldest = std::min(oldest, *unsent);
  }
  return oldest;
}

Offset active_from(const GroupMessages& messages, Offset first) {
  Offset from = std::max(messages.next(), first);
  const auto lower = [&](const std::optional<OffsetRange>& run) {
    if (run) from = std::min(from, std::max(run->begin, first));
  };
  const WaitingMessages& waiting = messages.redelivery().waiting();
  lower(waiting.ready().first_behind(first));
  lower(waiting.alone().first_behind(first));
  if (const auto outstanding = messages.consumers().standing.first(); outstanding && first <= *outstanding) {
    from = std::min(from, *outstanding);
  } else if (outstanding) {
    for (const auto& member : messages.consumers().members) {
      TurnWork::add(TurnWork::range_passed);
      if (const auto entry = member->outstanding().first_behind(first)) lower(entry->range);
    }
  }
  for (const RecordSink* const consumer : messages.consumers().plain) {
    const auto unsent = consumer->first_unsent();
    if (unsent && first <= *unsent) {
      from = std::min(from, *unsent);
    } else if (unsent) {
      for (const Offset each : consumer->unsent())
        if (first <= each) from = std::min(from, each);
    }
  }
  return from;
}

std::optional<OffsetRange> waiting_behind(const GroupMessages& messages, Offset offset) {
  std::optional<OffsetRange> first;
  const auto note = [&](const log::OffsetSet& set) {
    const auto run = set.first_behind(offset);
    if (run && (!first || run->begin < first->begin)) first = run;
  };
  note(messages.redelivery().waiting().delayed());
  if (messages.redelivery().has_dead()) {
    note(messages.redelivery().dead()->parked());
    note(messages.redelivery().dead()->waiting());
  }
  return first;
}

std::uint64_t waiting_in(const GroupMessages& messages, OffsetRange range) {
  const std::uint64_t dead =
      messages.redelivery().has_dead() ? messages.redelivery().dead()->messages_in(range) : 0;
  return messages.redelivery().waiting().delayed().count_in(range) + dead;
}

bool is_in_flight(const GroupMessages& messages, Offset message) {
  const auto in_flight = messages.consumers().standing.first();
  if (in_flight && *in_flight <= message) {
    for (const auto& member : messages.consumers().members) {
      TurnWork::add(TurnWork::range_passed);
      const auto entry = member->outstanding().first_behind(message);
      if (entry && entry->range.begin <= message) return true;
    }
  }
  return std::ranges::any_of(messages.consumers().plain, [&](const RecordSink* consumer) {
    const auto first = consumer->first_unsent();
    return first && *first <= message && std::ranges::count(consumer->unsent(), message) > 0;
  });
}

bool is_unfinished(const GroupMessages& messages, Offset message) {
  return messages.next() <= message || messages.redelivery().messages_in({message, message + 1}) != 0 ||
         is_in_flight(messages, message);
}

std::uint64_t GroupMessages::undelivered_in(OffsetRange range) const {
  const std::uint64_t returned = redelivery_.messages_in(range);
  const Offset from = std::max(range.begin, next());
  if (from >= range.end) return returned;
  const std::uint64_t expired = expiry_.keeps() ? 0 : expiry_.in({from, range.end});
  return returned + distance(from, range.end) - expired;
}

/// Remembers the number of deliveries of messages that a plain consumer has taken. The memory is at most
/// twice that of the unsent messages, or 4 KiB.
void GroupMessages::note_delivery(OffsetRange range, std::uint32_t delivery) {
  if (!unsent_.empty() && unsent() == distance(range.begin, range.end)) unsent_.clear();  // all was sent
  unsent_.set(range, delivery);
  if (unsent_.bytes() <= unsent_bytes_max_) return;
  DeliveryCounts kept;
  for (const RecordSink* const consumer : consumers_.plain) {
    for (const Offset offset : consumer->unsent()) kept.set({offset, offset + 1}, unsent_.of(offset));
  }
  unsent_ = std::move(kept);
  unsent_bytes_max_ = std::max(unsent_bytes_min, 2 * unsent_.bytes());
}

std::uint64_t GroupMessages::unsent() const {
  std::uint64_t messages = 0;
  for (const RecordSink* const consumer : consumers_.plain) messages += consumer->unsent_messages();
  return messages;
}

ReadLoss GroupMessages::loss() const {
  ReadLoss loss = reader_.loss();
  loss += redelivery_.loss();
  return loss;
}

std::vector<OffsetRange> GroupMessages::take_damage() {
  // Damage is part of the loss. A group mostly has none that is new.
  const std::uint64_t lost = reader_.lost() + redelivery_.lost();
  if (lost == std::exchange(damage_taken_, lost)) return {};
  auto damage = reader_.take_damage();
  const auto returned = redelivery_.take_damage();
  damage.insert(damage.end(), returned.begin(), returned.end());
  return damage;
}

// --- Snapshots ---

namespace {
/// Counts one visit. Returns false if none is left.
bool visit_one(std::size_t& ranges_left) {
  if (ranges_left == 0) return false;
  --ranges_left;
  TurnWork::add(TurnWork::range_passed);
  return true;
}
}  // namespace

std::optional<GroupSnapshot> GroupMessages::snapshot(std::size_t& ranges_left, const ClockReading& clocks) {
  if (collection_ == nullptr)
    collection_ = std::make_unique<Collection>(Collection{consumers_.standing.roll.members_joined});
  if (!collect_plain(ranges_left) || !collect_members(ranges_left)) return std::nullopt;
  const auto collected = std::move(collection_);
  return GroupSnapshot{
      committed(),
      next(),
      redelivery_.waiting(),
      std::move(collected->in_flight),
      clocks,
      redelivery_.dead() == nullptr ? nullptr : std::make_shared<DeadMessages>(*redelivery_.dead())};
}

void GroupMessages::collect_unsent(OffsetRange range) {
  for (OffsetRange part = range; part.begin < range.end; part = {part.end, range.end}) {
    part.end = unsent_.end_of_equal(part);
    collection_->in_flight.add(part, delivery_of_unsent(part.begin).counted());
  }
}

std::uint32_t GroupMessages::saved_count(const Delivery& delivery) const {
  const std::uint32_t counted = delivery.counted();
  return attempts_max_ == 0 ? counted : std::min(counted, attempts_max_ - 1);
}

bool GroupMessages::collect_plain(std::size_t& ranges_left) {
  for (std::size_t& at = collection_->plain_visited; at < consumers_.plain.size(); ++at) {
    if (!visit_one(ranges_left)) return false;
    const std::vector<Offset> unsent = consumers_.plain[at]->unsent();
    for (const Offset offset : unsent) collect_unsent({offset, offset + 1});
    ranges_left -= std::min(ranges_left, unsent.size());
    TurnWork::add(TurnWork::record_passed * unsent.size());
  }
  return true;
}

bool GroupMessages::collect_members(std::size_t& ranges_left) {
  const auto& members = consumers_.members;
  auto at = std::ranges::lower_bound(members, collection_->member, {}, &GroupMember::number);
  for (; at != members.end() && (*at)->number() < collection_->members_end; ++at) {
    // The member that was visited last may have left.
    if ((*at)->number() != std::exchange(collection_->member, (*at)->number())) collection_->visited_to = {};
    if (!collect_from(**at, ranges_left)) return false;
    collection_->member = (*at)->number() + 1;
    collection_->visited_to = {};
  }
  return true;
}

bool GroupMessages::collect_from(const GroupMember& member, std::size_t& ranges_left) {
  for (;;) {
    if (!visit_one(ranges_left)) return false;
    const auto entry = member.outstanding().first_behind(collection_->visited_to);
    if (!entry) return true;
    const Offset begin = std::max(entry->range.begin, collection_->visited_to);
    collection_->in_flight.add({begin, entry->range.end}, saved_count(entry->value));
    collection_->visited_to = entry->range.end;
  }
}

void GroupMessages::note_in_flight(const GroupMember& member, OffsetRange range) {
  while (range.begin < range.end) {
    const auto entry = member.outstanding().first_behind(range.begin);
    if (!entry || entry->range.begin >= range.end) return;
    const OffsetRange part{std::max(entry->range.begin, range.begin), std::min(entry->range.end, range.end)};
    collection_->in_flight.add(part, saved_count(entry->value));
    TurnWork::add(TurnWork::range_passed);
    range.begin = part.end;
  }
}

}  // namespace lightq::broker
