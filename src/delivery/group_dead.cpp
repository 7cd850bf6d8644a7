/// Commands on dead messages, and their transfer. Layer: delivery.
#include "delivery/group_dead.hpp"

#include <algorithm>

#include "delivery/group_messages.hpp"
#include "delivery/state/counted_ranges.hpp"

namespace lightq::broker {

namespace {

// The most parts of dead messages that one call visits: about a millisecond's work.
constexpr std::size_t parts_of_call = 256;

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

DeadPiece GroupDead::count(const DeadFilter& filter, Offset from) const {
  DeadPiece piece;
  std::vector<OffsetRange> found;
  piece.next = messages().find(filter, from, parts_of_call, true, found);
  for (const OffsetRange& range : found) piece.messages += distance(range.begin, range.end);
  return piece;
}

/// Removes dead messages, and adds them to `removed`.
DeadPiece GroupDead::take(const DeadFilter& filter, Offset from, std::vector<OffsetRange>& removed) {
  DeadPiece piece;
  piece.next = messages().find(filter, from, parts_of_call, true, removed);
  for (const OffsetRange& range : removed) piece.messages += distance(range.begin, range.end);
  if (piece.messages != 0)
    messages_.redelivery().change_dead([&](DeadMessages& dead) { dead.remove(removed); });
  return piece;
}

DeadPiece GroupDead::retry(const DeadFilter& filter, Offset from) {
  std::vector<OffsetRange> removed;
  const DeadPiece piece = take(filter, from, removed);
  CountedRanges ready;
  for (const OffsetRange& range : removed) ready.push_back({range, 0});
  messages_.redelivery().add(ready);
  return piece;
}

DeadPiece GroupDead::purge(const DeadFilter& filter, Offset from) {
  std::vector<OffsetRange> removed;
  return take(filter, from, removed);
}

// --- Transfer ---

std::size_t GroupDead::begin(std::size_t most) {
  std::size_t under_way = messages().outbox().under_way();
  if (messages().outbox().empty() || under_way >= most) return under_way;
  messages_.redelivery().change_dead([&](DeadMessages& dead) { under_way = dead.begin(most); });
  return under_way;
}

std::vector<Transfer> GroupDead::under_way() const {
  const Outbox& outbox = messages().outbox();
  std::vector<Transfer> transfers;
  for (std::size_t i = 0; i < outbox.under_way(); ++i)
    transfers.push_back({outbox.first_number() + i, messages().at(outbox.messages()[i])});
  return transfers;
}

/// Returns true if the first message under way has this number in this incarnation.
bool GroupDead::is_first(std::uint64_t incarnation, std::uint64_t number) const {
  const Outbox& outbox = messages().outbox();
  return outbox.under_way() != 0 && outbox.incarnation() == incarnation && outbox.first_number() == number;
}

bool GroupDead::done(std::uint64_t incarnation, std::uint64_t number) {
  if (!is_first(incarnation, number)) return false;
  messages_.redelivery().change_dead([](DeadMessages& dead) { dead.done(); });
  return true;
}

bool GroupDead::give_up(std::uint64_t incarnation, std::uint64_t number) {
  if (!is_first(incarnation, number)) return false;
  messages_.redelivery().change_dead([](DeadMessages& dead) { dead.give_up(); });
  return true;
}

void GroupDead::renew() {
  if (messages().outbox().under_way() != 0 || messages().outbox().incarnation() == 0) return;
  messages_.redelivery().change_dead([](DeadMessages& dead) { dead.renew(); });
}

}  // namespace lightq::broker
