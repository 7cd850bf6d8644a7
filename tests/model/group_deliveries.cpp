/// The model's groups follow deliveries.
#include <algorithm>

#include "model/model_group.hpp"

namespace lightq::model {

using namespace broker;
using Dead = GroupMessage::Dead;

/// Messages that were returned come before new ones, the lowest first.
void ModelGroup::check_order(std::uint64_t first, std::uint32_t delivery) const {
  const auto now = parts_.now();
  const bool takes_alone = max() != 0 && delivery > alone_from();
  for (const auto& [offset, message] : open) {
    if (offset >= first || offset >= next) return;
    if (message.holder != 0 || message.dead != Dead::no || message.may_return) continue;
    if (parts_.is_dropped(offset)) continue;
    if (now < message.ready_by || is_alone(message) != takes_alone || may_expire(offset, message)) continue;
    throw Disagreement(
        of(offset) + std::to_string(message.attempts) + " attempts, message " + std::to_string(first) +
        " was delivered before it, delivery " + std::to_string(delivery) + ", next " + std::to_string(next) +
        (message.is_single ? ", single" : "") + ", content " + std::to_string(parts_.number_at(offset)));
  }
}

void ModelGroup::set_deadline(GroupMessage& message, std::uint32_t ms) const {
  if (ms == 0) return;
  message.until = parts_.now() + milliseconds(ms);
  message.until_latest = message.until + milliseconds(ms > 10'000 ? ms / 1000 : 0);
}

/// Follows a slice that a consumer gets.
void ModelGroup::delivered(const Told& told) {
  ModelMember* const member = member_of(told.client);
  const OffsetRange range = told.ranges.front();
  const std::uint64_t first = range.begin.value;
  demand(member != nullptr && member->is_admitted, [&] { return of(first) + "its consumer is not there"; });
  demand(!member->is_silent, [&] { return of(first) + "its consumer cannot take any"; });
  demand(!is_paused, [&] { return of(first) + "delivered in a pause"; });
  const std::uint64_t count = distance(range.begin, range.end);
  demand(count <= member->credit, [&] { return of(first) + "more than the credit"; });
  demand(told.fault.empty(), [&] { return of(first) + "it has " + told.fault; });
  member->credit -= count;
  if (member->leases) {
    demand(told.hand_out >= member->last_hand_out,
           [&] { return of(first) + "the hand-out number descends"; });
    member->last_hand_out = told.hand_out;
  }
  check_place(range, told.delivery);
  const bool takes_alone = max() != 0 && told.delivery > alone_from();
  if (!member->leases) check_alone(*member, first, takes_alone);
  parts_.count("deliveries", count);
  if (told.delivery > 1) parts_.count("deliveries again", count);
  if (takes_alone) parts_.count("deliveries of suspects", 1);
  for (std::uint64_t at = first; at < range.end.value; ++at) {
    check_delivered(told, at, takes_alone);
    deliver(*member, told, at, takes_alone);
  }
}

/// Messages come in the order of their offsets, first those that were returned.
void ModelGroup::check_place(OffsetRange range, std::uint32_t delivery) {
  const std::uint64_t first = range.begin.value;
  if (first < next) {
    check_order(first, delivery);
    next = std::max(next, range.end.value);  // it passed these, and they count as returned
    return;
  }
  check_order(next, delivery);
  auto newest = open.lower_bound(next);
  while (newest != open.end() && newest->first < first &&
         (may_expire(newest->first, newest->second) || parts_.is_dropped(newest->first)))
    ++newest;
  demand(newest != open.end(), [&] { return of(first) + "delivered although it is done"; });
  demand(newest->first == first,
         [&] { return of(first) + "delivered before " + std::to_string(newest->first) + ", which is new"; });
  next = range.end.value;
}

/// A consumer without leases that has a suspect has no other message.
void ModelGroup::check_alone(const ModelMember& member, std::uint64_t first, bool takes_alone) const {
  for (const auto& [offset, message] : open) {
    if (message.holder != member.client->number) continue;
    demand(!takes_alone, [&] { return of(first) + "its consumer has others, and it must be alone"; });
    demand(!message.is_alone, [&] { return of(offset) + "it is not alone any more"; });
  }
}

void ModelGroup::check_delivered(const Told& told, std::uint64_t at, bool takes_alone) {
  const OffsetRange range = told.ranges.front();
  if (!open.contains(at)) {
    demand(parts_.was_given_back(at), [&] { return of(at) + "delivered although it is done"; });
    give_back(at);
  }
  if (open.at(at).dead != Dead::no && !open.at(at).has_letter && parts_.was_given_back(at)) retry_dead(at);
  const GroupMessage& message = open.at(at);
  demand(message.holder == 0, [&] { return of(at) + "two consumers have it"; });
  demand(message.dead == Dead::no, [&] { return of(at) + "delivered although it is dead"; });
  demand(!must_expire(at, message), [&] { return of(at) + "delivered although it has expired"; });
  if (parts_.has_expired(at)) parts_.count("deliveries of expired messages that were given back", 1);
  demand(message.waits_until <= parts_.now(), [&] { return of(at) + "delivered early"; });
  demand(told.delivery == message.attempts + 1, [&] {
    return of(at) + "delivery " + std::to_string(told.delivery) + " after " +
           std::to_string(message.attempts) + " failures";
  });
  demand((!takes_alone && !message.is_single) || distance(range.begin, range.end) == 1,
         [&] { return of(at) + "not in a slice of one"; });
  const std::uint64_t number = told.numbers[at - range.begin.value];
  demand(number == parts_.number_at(at), [&] {
    return of(at) + "it has content " + std::to_string(number) + ", not " +
           std::to_string(parts_.number_at(at));
  });
  if (message.is_single && !takes_alone) parts_.count("deliveries in a slice of one", 1);
}

void ModelGroup::deliver(ModelMember& member, const Told& told, std::uint64_t at, bool takes_alone) {
  GroupMessage& message = change(at);
  if (member.leases) {
    const auto last = member.hand_outs.find(at);
    demand(last == member.hand_outs.end() || last->second < told.hand_out,
           [&] { return of(at) + "another hand-out with the same number"; });
    member.hand_outs[at] = told.hand_out;
  }
  member.overdue.erase(at);
  message.may_return = message.is_single = false;
  message.is_alone = takes_alone;
  message.holder = told.client;
  message.hand_out = told.hand_out;
  message.is_started =
      !member.leases || (told.delivery == 1 && told.hand_out == member.window_hand_out &&
                         member.window.begin <= Offset{at} && Offset{at} < member.window.end);
  message.until = message.until_latest = never;
  if (message.is_started) set_deadline(message, member.timeout_ms);
  if (!member.automatic) return;
  ++counters.acknowledged;
  open.erase(at);
}

void ModelGroup::told(const Told& told) {
  switch (told.what) {
    case Told::What::delivered: return delivered(told);
    case Told::What::revoked: return revoked(told);
    case Told::What::pulled: return pulled(told);
    case Told::What::late:
    case Told::What::admitted:
    case Told::What::ended: return;
  }
}

}  // namespace lightq::model
