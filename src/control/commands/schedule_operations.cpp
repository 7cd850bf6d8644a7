/// The operations on recurring schedules. Layer: control.
#include "control/commands/schedule_operations.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <lightq/base/random.hpp>

#include "admission/turn_work.hpp"
#include "control/catalogue/catalogue_schedules.hpp"
#include "recurring/firing_times.hpp"
#include "recurring/schedule_rules.hpp"

namespace lightq::broker {

namespace {

constexpr std::int64_t us_per_listed_ms = 1000;
// The work of finding the next time of a schedule, as the length of a reply that takes as long to write.
constexpr std::uint64_t next_time_work_bytes = 512;

Error unknown_schedule() {
  return {ErrorCode::schedule_not_found, "schedule not found"};
}

/// Returns a random number from 1 to 2^63 - 1: JSON has no larger ones.
std::uint64_t new_schedule_incarnation() {
  std::uint64_t number = 0;
  while (number == 0) number = random_number<std::uint64_t>() >> 1;
  return number;
}

std::vector<std::uint64_t> next_times(const RecurringSchedule& schedule, Timestamp now, std::size_t count) {
  std::vector<std::uint64_t> times;
  const auto rule = FiringTimes::of(schedule.settings.cron, schedule.settings.zone);
  if (!rule || schedule.paused) return times;
  for (auto next = rule->next_after(now); next && times.size() < count; next = rule->next_after(*next))
    times.push_back(static_cast<std::uint64_t>(next->us / us_per_listed_ms));
  return times;
}

void add_state(protocol::ScheduleListing& listing, const ScheduleState& state) {
  listing.fired = state.fired;
  if (state.last) listing.last_ms = static_cast<std::uint64_t>(state.last->us / us_per_listed_ms);
  listing.waiting_by = state.waiting_by;
}

}  // namespace

const RecurringSchedule* ScheduleOperations::find(TopicId topic, const std::string& name) const {
  const TopicEntry* const entry = parts_.catalogue.state().find(topic);
  if (entry == nullptr) return nullptr;
  const auto found = entry->definition.schedules.find(name);
  return found == entry->definition.schedules.end() ? nullptr : &found->second;
}

void ScheduleOperations::set(const Asker& asker, const TopicName& topic, const std::string& name,
                             const protocol::ScheduleSettings& settings, const Done<void>& done) {
  const auto id = parts_.ready.find(topic);
  if (!id) return done(id.error());
  if (!parts_.rights.produces(asker, topic.text()))
    return done(Error{ErrorCode::unauthorized_access, "this also needs the right to produce to the topic"});
  const TopicDefinition& definition = parts_.catalogue.state().find(id.value())->definition;
  if (const auto checked = check_schedule_name(name); !checked) return done(checked.error());
  if (const auto checked = check_schedule(settings, definition.settings.broker_type); !checked)
    return done(checked.error());
  const RecurringSchedule* const known = find(id.value(), name);
  if (known == nullptr && definition.schedules.size() >= limits::schedules_per_topic_max)
    return done(
        Error{ErrorCode::limit_reached,
              "the topic has " + std::to_string(definition.schedules.size()) + " schedules, the maximum"});
  if (known != nullptr && known->settings == settings) return done({});
  put(id.value(), name,
      {.settings = settings,
       .incarnation = known == nullptr ? new_schedule_incarnation() : known->incarnation,
       .since = parts_.settings.now(),
       .paused = known != nullptr && known->paused},
      done);
}

/// Records the schedule, and then begins it: so it survives a restart if it fires.
void ScheduleOperations::put(TopicId topic, const std::string& name, const RecurringSchedule& schedule,
                             const Done<void>& done) {
  if (const auto kept = put_schedule(parts_.catalogue, topic, name, schedule); !kept)
    return done(kept.error());
  parts_.commits.commit([=, this](const Result<void>& committed) {
    if (!committed) return done(committed.error());
    parts_.data_plane.put_schedule(topic, name, schedule, done);
  });
}

void ScheduleOperations::set_paused(const TopicName& topic, const std::string& name, bool paused,
                                    const Done<void>& done) {
  const auto id = parts_.ready.find(topic);
  if (!id) return done(id.error());
  const RecurringSchedule* const known = find(id.value(), name);
  if (known == nullptr) return done(unknown_schedule());
  if (known->paused == paused) return done({});
  RecurringSchedule changed = *known;
  changed.paused = paused;
  if (!paused) changed.since = parts_.settings.now();
  put(id.value(), name, changed, done);
}

void ScheduleOperations::remove(const TopicName& topic, const std::string& name, const Done<void>& done) {
  const auto id = parts_.ready.find(topic);
  if (!id) return done(id.error());
  if (find(id.value(), name) == nullptr) return done(unknown_schedule());
  if (const auto removed = remove_schedule(parts_.catalogue, id.value(), name); !removed)
    return done(removed.error());
  parts_.commits.commit([=, this, id = id.value()](const Result<void>& committed) {
    if (!committed) return done(committed.error());
    parts_.data_plane.remove_schedule(id, name, done);
  });
}

/// Adds the topic's schedules behind the name `behind` to the page. Returns false if the page is full before
/// all are added.
bool ScheduleOperations::add(ScheduleList& list, const TopicEntry& entry, const SchedulesWanted& wanted,
                             const std::string& behind) const {
  const auto& schedules = entry.definition.schedules;
  auto& listed = list.page.schedules;
  const Timestamp now = parts_.settings.now();
  for (auto at = schedules.upper_bound(behind); at != schedules.end(); ++at) {
    const auto& [name, schedule] = *at;
    if (!wanted.name.empty() && name != wanted.name) continue;
    if (listed.size() == wanted.limit) {
      list.page.continue_after = listed.back().topic + "/" + listed.back().name;
      return false;
    }
    protocol::ScheduleListing& listing = listed.emplace_back();
    listing.topic = entry.definition.name.text();
    listing.name = name;
    listing.settings = schedule.settings;
    listing.payload_bytes = schedule.settings.payload.size();
    if (wanted.name.empty()) listing.settings.payload.clear();
    listing.paused = schedule.paused;
    listing.next_ms = next_times(schedule, now, wanted.times);
    list.work_bytes += next_time_work_bytes * (1 + wanted.times);
  }
  return true;
}

void ScheduleOperations::list(const Asker& asker, const SchedulesWanted& wanted,
                              const Done<ScheduleList>& done) {
  if (!wanted.topic) return list_all(asker, wanted, done);
  const auto id = parts_.ready.find(*wanted.topic);
  if (!id) return done(id.error());
  ScheduleList list;
  const std::size_t slash = wanted.after.find('/');
  const std::string behind = slash == std::string::npos ? wanted.after : wanted.after.substr(slash + 1);
  add(list, *parts_.catalogue.state().find(id.value()), wanted, behind);
  if (!wanted.name.empty() && list.page.schedules.empty()) return done(unknown_schedule());
  TurnWork::add(list.work_bytes);
  if (list.page.schedules.empty()) return done(std::move(list));
  parts_.data_plane.schedule_states(
      id.value(), [list = std::move(list), done](const Result<std::vector<ScheduleState>>& states) mutable {
        if (!states) return done(states.error());
        for (auto& listing : list.page.schedules) {
          const auto found = std::ranges::find(*states, listing.name, &ScheduleState::name);
          if (found != states->end()) add_state(listing, *found);
        }
        done(std::move(list));
      });
}

void ScheduleOperations::list_all(const Asker& asker, const SchedulesWanted& wanted,
                                  const Done<ScheduleList>& done) const {
  const auto& topics = parts_.catalogue.state().topics();
  const std::size_t slash = wanted.after.find('/');
  const std::string after_topic = wanted.after.substr(0, slash);
  const std::string after_name = slash == std::string::npos ? "" : wanted.after.substr(slash + 1);
  const UserRecord* const user = parts_.rights.user_of(asker);
  ScheduleList list;
  for (auto next = topics.lower_bound(after_topic); next != topics.end(); ++next) {
    const auto& [name, entry] = *next;
    TurnWork::add(TurnWork::range_passed);
    if (entry.definition.schedules.empty()) continue;
    if (user != nullptr) list.work_bytes += user->rights.size() * pattern_work_bytes;
    if (!parts_.rights.manages(asker, name) || parts_.ready.is_starting(entry.definition.id)) continue;
    if (!add(list, entry, wanted, name == after_topic ? after_name : "")) break;
  }
  TurnWork::add(list.work_bytes);
  done(std::move(list));
}

}  // namespace lightq::broker
