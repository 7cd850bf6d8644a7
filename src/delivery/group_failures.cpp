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
  deaths_.die(dying, DeathCause::attempts, {}, wall_time_of(now));
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
  if (is_failure(how.cause) && rules_.limits_attempts()) deaths_.note_failures(ranges, wall_time_of(how.now));
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
  deaths_.die(dying, DeathCause::attempts, {}, wall_time_of(how.now));
}

/// Makes messages ready, at once or after `how.delay_ms`. Those that have expired end instead.
void GroupFailures::put_in_queue(const CountedRanges& ranges, const Return& how) {
  if (expired_.any_in(ranges)) return put_unexpired_in_queue(expired_.end_some_of(ranges), how);
  put_unexpired_in_queue(ranges, how);
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

// --- Death ---

void GroupFailures::bury(const CountedRanges& ranges, const std::string& reason, Timestamp wall) {
  count(ReturnCause::rejected, false, messages_of(ranges));
  deaths_.die(ranges, DeathCause::rejected, reason, wall);
}

FloodBrake::Recent GroupFailures::recent(Timestamp now) const {
  return brake_.recent(messages_.clocks().steady_time_of(now), counters().ended(),
                       deaths_.died() - deaths_.died_expired());
}

GroupCounters GroupFailures::counters() const {
  GroupCounters counters = counters_;
  counters.acknowledged = standing_.acknowledged;
  counters.dead = deaths_.died();
  counters.expired = expired_.counted();
  return counters;
}

}  // namespace lightq::broker
