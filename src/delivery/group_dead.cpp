/// Commands on dead messages, and their transfer. Layer: delivery.
#include "delivery/group_dead.hpp"

#include <algorithm>
#include <utility>

#include "delivery/group_failures.hpp"
#include "delivery/group_messages.hpp"
#include "delivery/state/counted_ranges.hpp"

namespace lightq::broker {

namespace {

// The most parts of dead messages that one call visits: about a millisecond's work.
constexpr std::size_t parts_of_call = 256;

std::uint64_t messages_in(std::span<const OffsetRange> ranges) {
  std::uint64_t messages = 0;
  for (const OffsetRange& range : ranges) messages += distance(range.begin, range.end);
  return messages;
}

}  // namespace

const DeadMessages& GroupDead::messages() const {
  static const DeadMessages none;
  const DeadMessages* const dead = messages_.redelivery().dead();
  return dead == nullptr ? none : *dead;
}

// --- Commands ---

DeadList GroupDead::list(const DeadFilter& filter, Offset from, std::size_t most) const {
  DeadList list;
  std::vector<OffsetRange> found;
  list.next = messages().find(filter, from, parts_of_call, false, found);
  for (const OffsetRange& range : found) {
    for (Offset at = range.begin; at < range.end; at = at + 1) {
      if (list.messages.size() == most) {
        list.next = at;
        return list;
      }
      list.messages.push_back(messages().at(at));
    }
  }
  return list;
}

std::vector<DeadMessage> GroupDead::list(std::span<const OffsetRange> found) const {
  std::vector<DeadMessage> list;
  for (const OffsetRange& range : found) {
    for (Offset at = range.begin; at < range.end; at = at + 1) list.push_back(messages().at(at));
  }
  return list;
}

DeadFound GroupDead::find(const DeadFilter& filter, Offset from, bool changing) const {
  DeadFound found;
  found.next = messages().find(filter, from, parts_of_call, changing, found.ranges);
  return found;
}

DeadPiece GroupDead::count(const DeadFilter& filter, Offset from) const {
  const DeadFound found = find(filter, from, true);
  return {.messages = messages_in(found.ranges), .next = found.next};
}

DeadPiece GroupDead::retry(const DeadFilter& filter, Offset from) {
  const DeadFound found = find(filter, from, true);
  retry(found.ranges);
  return {.messages = messages_in(found.ranges), .next = found.next};
}

void GroupDead::retry(std::span<const OffsetRange> found) {
  purge(found);
  failures_.expired().protect(found);
  CountedRanges ready;
  for (const OffsetRange& range : found) ready.push_back({range, 0});
  failures_.make_ready(ready);
}

void GroupDead::protect(OffsetRange range) {
  failures_.expired().protect({&range, 1});
}

void GroupDead::revive(const CountedRanges& messages) {
  failures_.make_ready(messages);
}

void GroupDead::end_expired_before(Offset first) {
  failures_.expired().end_before(first);
}

DeadPiece GroupDead::purge(const DeadFilter& filter, Offset from) {
  const DeadFound found = find(filter, from, true);
  purge(found.ranges);
  return {.messages = messages_in(found.ranges), .next = found.next};
}

void GroupDead::purge(std::span<const OffsetRange> found) {
  if (found.empty()) return;
  messages_.redelivery().change_dead([&](DeadMessages& dead) { dead.remove(found); });
}

// --- Transfer ---

std::size_t GroupDead::begin(std::size_t most, TopicId target, Offset end) {
  std::size_t under_way = messages().outbox().under_way().size();
  if (under_way == messages().outbox().messages().size() || under_way >= most) return under_way;
  messages_.redelivery().change_dead([&](DeadMessages& dead) { under_way = dead.begin(most, target, end); });
  return under_way;
}

std::vector<Transfer> GroupDead::under_way() const {
  const Outbox& outbox = messages().outbox();
  std::vector<Transfer> transfers;
  std::uint64_t number = outbox.first_number();
  for (const Offset message : outbox.under_way()) transfers.push_back({number++, messages().at(message)});
  return transfers;
}

/// Returns true if the first message under way has this number in this incarnation.
bool GroupDead::is_first(std::uint64_t incarnation, std::uint64_t number) const {
  const Outbox& outbox = messages().outbox();
  return !outbox.under_way().empty() && outbox.incarnation() == incarnation &&
         outbox.first_number() == number;
}

bool GroupDead::done(std::uint64_t incarnation, std::uint64_t number) {
  if (!is_first(incarnation, number)) return false;
  messages_.redelivery().change_dead([](DeadMessages& dead) { dead.done(); });
  return true;
}

bool GroupDead::lose(std::uint64_t incarnation, std::uint64_t number) {
  if (!done(incarnation, number)) return false;
  messages_.redelivery().count_lost(1);
  return true;
}

bool GroupDead::give_up(std::uint64_t incarnation, std::uint64_t number) {
  if (!is_first(incarnation, number)) return false;
  messages_.redelivery().change_dead([](DeadMessages& dead) { dead.give_up(); });
  renew();
  return true;
}

void GroupDead::renew() {
  if (messages().outbox().incarnation() != 0)
    messages_.redelivery().change_dead([](DeadMessages& dead) { dead.renew(); });
  failures_.park_without_target();
}

void GroupDead::park_without_target() {
  failures_.park_without_target();
}

void GroupDead::set_trouble(std::string why) {
  failures_.set_transfer_trouble(std::move(why));
}

}  // namespace lightq::broker
