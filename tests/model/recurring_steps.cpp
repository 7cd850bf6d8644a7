/// Operations on recurring schedules, and what the broker does with them.
#include <algorithm>
#include <utility>

#include "model/steps.hpp"

namespace lightq::model {

using namespace broker;

namespace {
constexpr std::uint64_t incarnation_base = 0x5EED'0000'0000;
constexpr std::int64_t recurring_late_ms_max = 2'500;  // until its producer is known durably
}  // namespace

void Steps::change_recurring() {
  const std::string name = random_.one_in(2) ? "s0" : "s1";
  const auto known = recurring_.find(name);
  if (known == recurring_.end()) return create_recurring(name);
  ModelRecurring& schedule = known->second;
  const std::uint64_t choice = random_.below(10);
  if (choice == 0) {
    note("schedule " + name + " is removed");
    broker_.catalogue().schedules.erase(name);
    broker_.recurring().remove(BrokerUnderTest::orders_id, name);
    recurring_.erase(known);
    ++tally_["schedules removed"];
    return;
  }
  if (choice < 5) {
    schedule.is_paused = !schedule.is_paused;
    note("schedule " + name + (schedule.is_paused ? " is paused" : " is resumed"));
    ++tally_[schedule.is_paused ? "schedules paused" : "schedules resumed"];
  } else {
    ++schedule.version;
    ++tally_["schedules changed"];
  }
  put_recurring(name);
}

void Steps::create_recurring(const std::string& name) {
  ModelRecurring schedule;
  schedule.number = 2 * next_schedule_++ + (name == "s1" ? 1 : 0);
  if (has_ttl()) schedule.version = Content::versions_with_ttl;
  recurring_[name] = schedule;
  ++tally_["schedules created"];
  put_recurring(name);
}

/// Stores the schedule from now on, with new settings unless only its pause has changed.
void Steps::put_recurring(const std::string& name) {
  ModelRecurring& schedule = recurring_.at(name);
  auto& stored = broker_.catalogue().schedules[name];
  const std::uint64_t incarnation = incarnation_base + schedule.number;
  const Content content = Content::firing(schedule.number, schedule.version, 0);
  const bool is_changed = stored.incarnation != incarnation || stored.settings.payload != content.payload();
  if (is_changed) {
    constexpr std::uint64_t every[] = {1, 1, 2, 3};
    schedule.every = every[random_.below(std::size(every))];
    schedule.phase = random_.below(schedule.every);
    schedule.is_once = is_durable() && random_.one_in(2);
    stored.incarnation = incarnation;
    stored.settings = {
        .cron = schedule.every == 1
                    ? "* * * * *"
                    : std::to_string(schedule.phase) + "-59/" + std::to_string(schedule.every) + " * * * *",
        .missed = schedule.is_once ? protocol::MissedFirings::once : protocol::MissedFirings::skip,
        .key = content.key(),
        .payload = content.payload()};
    if (const std::string header = content.header(); !header.empty())
      stored.settings.headers.push_back({"number", header});
    if (content.ttl_ms() != 0)
      stored.settings.headers.push_back({"lightq-ttl-ms", std::to_string(content.ttl_ms())});
    note("schedule " + name + " is set: " + stored.settings.cron + (schedule.is_once ? ", once" : ""));
  }
  stored.since = broker_.wall();
  stored.paused = schedule.is_paused;
  schedule.since_us = stored.since.us;
  schedule.started_us = schedule.started_least_us = ModelRecurring::no_time;
  schedule.due_since_ms = -1;
  broker_.recurring().put(broker_.orders(), name, stored);
}

void World::observe_recurring() {
  for (auto& [name, schedule] : recurring_) {
    const auto due = schedule.due(broker_.wall().us);
    if (!due) {
      schedule.due_since_ms = -1;
    } else if (schedule.due_since_ms < 0) {
      schedule.due_since_ms = broker_.ticked_ms();
    }
  }
}

/// A message that is due is in the log, or the schedule says why it waits.
void World::check_recurring() {
  std::map<std::string, ScheduleState> states;
  for (auto& state : broker_.recurring().states(BrokerUnderTest::orders_id))
    states[state.name] = std::move(state);
  for (const auto& [name, schedule] : recurring_) {
    const auto state = states.find(name);
    demand((state == states.end()) == schedule.is_paused,
           [&] { return "schedule " + name + (schedule.is_paused ? " is not paused" : " does not run"); });
    if (schedule.is_paused || broker_.is_dead()) continue;
    const bool waits = !state->second.waiting_by.empty();
    if (waits) ++tally_["steps with recurring messages that wait"];
    const bool is_late =
        schedule.due_since_ms >= 0 && recurring_late_ms_max < broker_.ticked_ms() - schedule.due_since_ms;
    demand(!is_late || waits, [&] { return "schedule " + name + ": a message is due and not published"; });
  }
  demand(states.size() <= recurring_.size(), "a schedule that was removed runs");
}

/// The log knows the last message of each schedule.
void World::recover_recurring() {
  for (auto& [name, schedule] : recurring_) {
    std::optional<std::uint64_t> last;
    for (const std::uint64_t number : log_) {
      const Content content{number};
      if (!content.is_firing() || content.base() != number || content.schedule() != schedule.number) continue;
      last = std::max(last.value_or(0), content.minute());
    }
    schedule.started(broker_.wall().us, last);
    if (schedule.is_once && schedule.due(broker_.wall().us)) ++tally_["recurring messages missed: once"];
    if (!schedule.is_once &&
        schedule.last_within(schedule.done_us(ModelRecurring::no_time), broker_.wall().us))
      ++tally_["recurring messages missed: skip"];
  }
}

}  // namespace lightq::model
