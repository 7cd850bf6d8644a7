/// Applies the settings of a group to returned messages. Layer: delivery.
#include "delivery/group_failures.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include <lightq/base/random.hpp>

#include "admission/turn_work.hpp"
#include "delivery/group_messages.hpp"
#include "delivery/state/due_times.hpp"

namespace lightq::broker {

namespace {

// The most parts of waiting messages that expire in one call, and the most parts, and messages of a part,
// that die ahead of the group: about a millisecond's work.
constexpr std::size_t expired_parts_max = 512;
constexpr std::size_t buried_parts_max = 64;
constexpr std::uint64_t buried_max = 4096;

std::uint64_t messages_of(const CountedRanges& ranges) {
  std::uint64_t messages = 0;
  for (const CountedRange& each : ranges) messages += distance(each.range.begin, each.range.end);
  return messages;
}

}  // namespace

// --- Settings ---

bool GroupFailures::set(const GroupSetup& setup) {
  target_ = setup.dead_letter_topic;
  const bool keeps = setup.settings.dead_letter_expired && !setup.settings.dead_letter_topic.empty();
  messages_.expiry().set_keeps(keeps);
  messages_.reader().set_stops_at_expired(keeps);
  if (setup.settings != rules_.settings()) {
    const AttemptRules before = std::exchange(rules_, AttemptRules(setup.settings));
    messages_.set_attempts_max(setup.settings.max_attempts);
    RedeliveryQueue& queue = messages_.redelivery();
    queue.change_waiting([&](WaitingMessages& waiting) { waiting.set_alone_from(rules_.alone_from()); });
    if (before.dead_from() != rules_.dead_from()) begin_walk();
  }
  return park_without_target();
}

bool GroupFailures::park_without_target() {
  RedeliveryQueue& queue = messages_.redelivery();
  if (!settings().dead_letter_topic.empty() || !queue.has_dead()) return false;
  bool has_parked = false;
  queue.change_dead([&](DeadMessages& dead) { has_parked = dead.park_waiting(); });
  return has_parked;
}

void GroupFailures::begin_walk() {
  if (!messages_.redelivery().waiting().empty()) walk_ = Offset{0};
}

void GroupFailures::walk(SteadyTime now) {
  if (!walk_) return;
  CountedRanges dying;
  messages_.redelivery().change_waiting(
      [&](WaitingMessages& waiting) { walk_ = waiting.sort_again(*walk_, rules_.dead_from(), dying); });
  die(dying, DeathCause::attempts, {}, wall_time_of(now));
}

// --- Returns ---

Timestamp GroupFailures::wall_time_of(SteadyTime now) const {
  const ClockReading& clocks = messages_.clocks();
  return now == SteadyTime{} || clocks.wall == Timestamp{} ? clocks.wall : clocks.wall_time_of(now);
}

void GroupFailures::count(ReturnCause cause, bool revoked, std::uint64_t messages) {
  switch (cause) {
    case ReturnCause::released:
    case ReturnCause::unstarted: (revoked ? counters_.revoked : counters_.released) += messages; break;
    case ReturnCause::untaken: break;
    case ReturnCause::rejected: counters_.failed += messages; break;
    case ReturnCause::timed_out: counters_.timed_out += messages; break;
    case ReturnCause::lost: counters_.lost_with_session += messages; break;
  }
}

void GroupFailures::put_back(const CountedRanges& ranges, const Return& how) {
  if (ranges.empty()) return;
  count(how.cause, how.revoked, messages_of(ranges));
  if (rules_.are_default()) return put_in_queue(ranges, how);
  if (is_failure(how.cause) && rules_.limits_attempts()) note_failures(ranges, how.now);
  CountedRanges dying;
  CountedRanges at_once;
  std::map<std::uint32_t, CountedRanges> waiting;  // by attempts
  const bool backs_off = is_failure(how.cause) && how.delay_ms == 0 && !settings().backoff_ms.empty();
  for (const CountedRange& each : ranges) {
    if (rules_.is_dead(each.deliveries)) {
      dying.push_back(each);
    } else if (backs_off) {
      waiting[std::min<std::uint32_t>(each.deliveries, protocol::GroupSettings::backoff_steps_max)].push_back(
          each);
    } else {
      at_once.push_back(each);
    }
  }
  put_in_queue(at_once, how);
  for (const auto& [attempts, failed] : waiting) {
    const auto wait = rules_.backoff(attempts, random_number<std::uint32_t>());
    Return later = how;
    later.delay_ms = static_cast<std::uint32_t>(wait.count());
    put_in_queue(failed, later);
  }
  die(dying, DeathCause::attempts, {}, wall_time_of(how.now));
}

/// Makes messages ready, at once or after `how.delay_ms`. Those that have expired end instead.
void GroupFailures::put_in_queue(const CountedRanges& ranges, const Return& how) {
  const ExpiryIndex* const expiry = messages_.expiry().index();
  const auto has_expired = [&](const CountedRange& each) {
    return expiry->expired().count_in(each.range) != 0;
  };
  if (expiry == nullptr || std::ranges::none_of(ranges, has_expired))
    return put_unexpired_in_queue(ranges, how);
  CountedRanges kept;
  CountedRanges expired;
  for (const CountedRange& each : ranges) {
    for (OffsetRange part = each.range; part.begin < each.range.end; part = {part.end, each.range.end}) {
      const ExpiryIndex::Part known = part_at(part.begin);
      part.end = std::min(part.end, known.end);
      TurnWork::add(TurnWork::range_passed);
      (known.expired ? expired : kept).push_back({part, each.deliveries});
    }
  }
  expire(expired);
  put_unexpired_in_queue(kept, how);
}

void GroupFailures::put_unexpired_in_queue(const CountedRanges& ranges, const Return& how) {
  if (ranges.empty()) return;
  RedeliveryQueue& queue = messages_.redelivery();
  if (how.delay_ms == 0) {
    queue.add(ranges);
  } else {
    queue.add_delayed(ranges, DueTimes::after(how.now, how.delay_ms));
  }
  if (!how.several || !rules_.limits_attempts()) return;
  queue.change_waiting([&](WaitingMessages& waiting) {
    for (const CountedRange& each : ranges) waiting.set_single(each.range);
  });
}

void GroupFailures::note_failures(const CountedRanges& ranges, SteadyTime now) {
  const Timestamp time = wall_time_of(now);
  const Offset committed = messages_.committed();
  messages_.redelivery().change_dead([&](DeadMessages& dead) {
    if (!dead.has_record_room()) return;
    dead.first_failures().remove({Offset{0}, std::min(committed, ranges.front().range.begin)});
    for (const CountedRange& each : ranges) dead.first_failures().add(each.range, time);
  });
}

void GroupFailures::forget_failures(OffsetRange range) {
  RedeliveryQueue& queue = messages_.redelivery();
  if (queue.dead() == nullptr || queue.dead()->first_failures().empty()) return;
  queue.change_dead([&](DeadMessages& dead) { dead.first_failures().remove(range); });
}

// --- Expiry ---

void GroupFailures::expire(const CountedRanges& ranges) {
  if (ranges.empty()) return;
  messages_.expiry().count(messages_of(ranges));
  if (messages_.expiry().keeps()) return die(ranges, DeathCause::expired, {}, messages_.clocks().wall);
  for (const CountedRange& each : ranges) forget_failures(each.range);
}

/// Returns the part of the messages at `offset` of which all end by their expiry, or none. Requires: the
/// topic has an index.
ExpiryIndex::Part GroupFailures::part_at(Offset offset) const {
  ExpiryIndex::Part part = messages_.expiry().index()->part_at(offset);
  const DeadMessages* const dead = messages_.redelivery().dead();
  if (!part.expired || dead == nullptr) return part;
  const auto run = dead->protected_messages().first_behind(offset);
  if (!run || part.end <= run->begin) return part;
  return offset < run->begin ? ExpiryIndex::Part{run->begin, true}
                             : ExpiryIndex::Part{std::min(part.end, run->end), false};
}

void GroupFailures::protect(std::span<const OffsetRange> ranges) {
  if (ranges.empty()) return;
  // The messages themselves may be in no set at this moment.
  const Offset committed = std::min(messages_.committed(), ranges.front().begin);
  messages_.redelivery().change_dead([&](DeadMessages& dead) {
    for (const OffsetRange& range : ranges) dead.protect(range, committed);
  });
  for (const OffsetRange& range : ranges) messages_.expiry().expiring().remove(range);
}

bool GroupFailures::tend_expired() {
  const GroupExpiry& expiry = messages_.expiry();
  if (!expiry.keeps() && expiry.index() != nullptr) {
    const ExpiryIndex::Part part = expiry.index()->part_at(messages_.next());
    if (part.expired) messages_.reader().pass_expired(part.end);
  }
  const bool more = !messages_.expiry().expiring().empty() && expire_waiting();
  return bury_kept() || more;
}

/// Ends messages that wait and have expired. Returns true if there may be more.
bool GroupFailures::expire_waiting() {
  log::OffsetSet& expiring = messages_.expiry().expiring();
  CountedRanges ended;
  std::optional<Offset> next;
  messages_.redelivery().change_waiting([&](WaitingMessages& waiting) {
    next = waiting.take(expiring, expiring.first(), expired_parts_max, ended);
  });
  if (next) {
    expiring.remove({Offset{0}, *next});
  } else {
    expiring.clear();
  }
  expire(ended);
  return !expiring.empty();
}

/// Makes messages dead that have expired ahead of the group, if it keeps them: until so many wait that the
/// group pauses. Returns true if there may be more.
bool GroupFailures::bury_kept() {
  if (!messages_.expiry().keeps() || messages_.expiry().index() == nullptr) return false;
  for (std::size_t parts = 0; parts < buried_parts_max; ++parts) {
    if (is_outbox_full()) return false;
    const OffsetRange range = take_kept();
    if (range.begin >= range.end) return false;
    die({{range, 0}}, DeathCause::expired, {}, messages_.clocks().wall);
  }
  return true;
}

/// Returns the next expired messages that the group keeps and that are not dead yet. The ones before them
/// become ready, as if they had been delivered and released; the position moves behind them. Returns an empty
/// range if there are none, or if the redelivery queue is full.
OffsetRange GroupFailures::take_kept() {
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

// --- Death ---

void GroupFailures::bury(const CountedRanges& ranges, const std::string& reason, Timestamp wall) {
  count(ReturnCause::rejected, false, messages_of(ranges));
  die(ranges, DeathCause::rejected, reason, wall);
}

void GroupFailures::die(const CountedRanges& ranges, DeathCause cause, const std::string& reason,
                        Timestamp time) {
  if (ranges.empty()) return;
  counters_.dead += messages_of(ranges);
  if (cause == DeathCause::expired) dead_expired_ += messages_of(ranges);
  RedeliveryQueue& queue = messages_.redelivery();
  const DeadState state = settings().dead_letter_topic.empty() ? DeadState::parked : DeadState::dead_waiting;
  CountedRanges gone;
  queue.change_dead([&](DeadMessages& dead) {
    for (const CountedRange& each : ranges) {
      queue.waiting().split(
          each.range,
          [&](OffsetRange part) { dead.add(part, {cause, each.deliveries, time, reason}, state); },
          [&](OffsetRange part) { gone.push_back({part, each.deliveries}); });
    }
  });
  if (!gone.empty()) queue.add(gone);  // counts messages that the log no longer has as lost
}

bool GroupFailures::is_outbox_full() const {
  // Expired messages ahead do not count. While the queue is full they cannot die, and only deliveries empty
  // it.
  const DeadMessages* const dead = messages_.redelivery().dead();
  return dead != nullptr && dead->waiting().size() > settings().dead_waiting_max;
}

bool GroupFailures::waits_for_room() const {
  const GroupExpiry& expiry = messages_.expiry();
  return expiry.keeps() && messages_.redelivery().is_full() && expiry.from(messages_.next()) != 0 &&
         !is_outbox_full();
}

FloodBrake::Recent GroupFailures::recent(Timestamp now) const {
  return brake_.recent(messages_.clocks().steady_time_of(now), counters().ended(),
                       counters_.dead - dead_expired_);
}

GroupCounters GroupFailures::counters() const {
  GroupCounters counters = counters_;
  counters.acknowledged = standing_.acknowledged;
  counters.expired =
      messages_.expiry().counted() + messages_.reader().expired() + messages_.expiry().from(messages_.next());
  return counters;
}

}  // namespace lightq::broker
