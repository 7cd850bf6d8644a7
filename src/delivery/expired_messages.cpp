/// Ends the messages of a group that have expired. Layer: delivery.
#include "delivery/expired_messages.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>

#include "admission/turn_work.hpp"
#include "delivery/group_deaths.hpp"
#include "delivery/group_messages.hpp"

namespace lightq::broker {

namespace {
// The most parts of waiting messages that expire in one call, and the most parts, and messages of a part,
// that die ahead of the group: about a millisecond's work.
constexpr std::size_t ended_parts_max = 512;
constexpr std::size_t buried_parts_max = 64;
// The most such calls at once, before the log's first messages are given up.
constexpr int end_before_max = 32;
constexpr std::uint64_t buried_max = 4096;
}  // namespace

bool ExpiredMessages::tend() {
  const GroupExpiry& expiry = messages_.expiry();
  if (!expiry.keeps() && expiry.index() != nullptr) {
    const ExpiryIndex::Part part = expiry.index()->part_at(messages_.next());
    if (part.expired) messages_.reader().pass_expired(part.end);
  }
  const bool more = !messages_.expiry().expiring().empty() && end_waiting();
  return bury_kept() || more;
}

void ExpiredMessages::end(const CountedRanges& ranges) {
  if (ranges.empty()) return;
  GroupExpiry& expiry = messages_.expiry();
  if (expiry.keeps()) {
    expiry.count(deaths_.die(ranges, DeathCause::expired, {}, messages_.clocks().wall));
    return;
  }
  expiry.count(messages_of(ranges));
  for (const CountedRange& each : ranges) {
    expiry.runs().add(each.range);
    deaths_.forget_failures(each.range);
  }
}

void ExpiredMessages::end_before(Offset first) {
  const log::OffsetSet& expiring = messages_.expiry().expiring();
  for (int calls = 0; calls < end_before_max; ++calls) {
    if (expiring.empty() || first <= expiring.first() || !end_waiting()) return;
  }
}

bool ExpiredMessages::any_in(const CountedRanges& ranges) const {
  return std::ranges::any_of(
      ranges, [&](const CountedRange& each) { return messages_.expiry().in(each.range) != 0; });
}

CountedRanges ExpiredMessages::end_some_of(const CountedRanges& ranges) {
  CountedRanges others;
  CountedRanges expired;
  for (const CountedRange& each : ranges) {
    for (OffsetRange part = each.range; part.begin < each.range.end; part = {part.end, each.range.end}) {
      const ExpiryIndex::Part known = part_at(part.begin);
      part.end = std::min(part.end, known.end);
      TurnWork::add(TurnWork::range_passed);
      (known.expired ? expired : others).push_back({part, each.deliveries});
    }
  }
  end(expired);
  return others;
}

/// Returns the part of the messages at `offset` of which all end by their expiry, or none. Requires: the
/// topic has an index.
ExpiryIndex::Part ExpiredMessages::part_at(Offset offset) const {
  ExpiryIndex::Part part = messages_.expiry().index()->part_at(offset);
  const DeadMessages* const dead = messages_.redelivery().dead();
  if (!part.expired || dead == nullptr) return part;
  const auto run = dead->protected_messages().first_behind(offset);
  if (!run || part.end <= run->begin) return part;
  return offset < run->begin ? ExpiryIndex::Part{run->begin, true}
                             : ExpiryIndex::Part{std::min(part.end, run->end), false};
}

void ExpiredMessages::protect(std::span<const OffsetRange> ranges) {
  if (ranges.empty()) return;
  // The messages themselves may be in no set at this moment.
  const Offset committed = std::min(messages_.committed(), ranges.front().begin);
  messages_.redelivery().change_dead([&](DeadMessages& dead) {
    for (const OffsetRange& range : ranges) dead.protect(range, committed);
  });
  for (const OffsetRange& range : ranges) messages_.expiry().expiring().remove(range);
}

/// Ends messages that wait and have expired. Returns true if there may be more.
bool ExpiredMessages::end_waiting() {
  log::OffsetSet& expiring = messages_.expiry().expiring();
  CountedRanges ended;
  std::optional<Offset> next;
  messages_.redelivery().change_waiting([&](WaitingMessages& waiting) {
    next = waiting.take(expiring, expiring.first(), ended_parts_max, ended);
  });
  if (next) {
    expiring.remove({Offset{0}, *next});
  } else {
    expiring.clear();
  }
  end(ended);
  return !expiring.empty();
}

/// Makes messages dead that have expired ahead of the group, if it keeps them: until so many wait that the
/// group pauses. Returns true if there may be more.
bool ExpiredMessages::bury_kept() {
  if (!messages_.expiry().keeps() || messages_.expiry().index() == nullptr) return false;
  for (std::size_t parts = 0; parts < buried_parts_max; ++parts) {
    if (deaths_.is_outbox_full()) return false;
    const OffsetRange range = take_kept();
    if (range.begin >= range.end) return false;
    deaths_.die({{range, 0}}, DeathCause::expired, {}, messages_.clocks().wall);
  }
  return true;
}

/// Returns the next expired messages that the group keeps and that are not dead yet. The ones before them
/// become ready, as if they had been delivered and released; the position moves behind them. Returns an empty
/// range if there are none, or if the redelivery queue is full.
OffsetRange ExpiredMessages::take_kept() {
  RecordReader& reader = messages_.reader();
  const OffsetRange none{reader.offset(), reader.offset()};
  const auto run = messages_.expiry().index()->expired().first_behind(reader.offset());
  if (!run) return none;
  OffsetRange taken{std::max(reader.offset(), run->begin), {}};
  taken.end = std::min(run->end, taken.begin + buried_max);
  if (reader.offset() < taken.begin) {
    if (messages_.redelivery().is_full()) return none;
    messages_.redelivery().add({reader.offset(), taken.begin}, 0);
    reader.move_to(taken.begin);
  }
  reader.pass_expired(taken.end);
  return taken;
}

bool ExpiredMessages::wait_for_room() const {
  const GroupExpiry& expiry = messages_.expiry();
  return expiry.keeps() && messages_.redelivery().is_full() && expiry.from(messages_.next()) != 0 &&
         !deaths_.is_outbox_full();
}

std::uint64_t ExpiredMessages::counted() const {
  const GroupExpiry& expiry = messages_.expiry();
  return expiry.counted() + messages_.reader().expired() + expiry.from(messages_.next());
}

}  // namespace lightq::broker
