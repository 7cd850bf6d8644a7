/// Begins and ends the recurring schedules of one reactor's topics. Layer: topic.
#include "topic/recurring/recurring_office.hpp"

namespace lightq::broker {

void RecurringOffice::begin(TopicRuntime& topic) {
  for (const auto& [name, schedule] : topic.definition().schedules)
    begin(topic, name, schedule, ScheduleFirings::Begins::at_start);
}

void RecurringOffice::put(TopicRuntime& topic, const std::string& name, const RecurringSchedule& schedule) {
  begin(topic, name, schedule, ScheduleFirings::Begins::running);
}

/// The former one of this name ends first, because both have the same producer.
void RecurringOffice::begin(TopicRuntime& topic, const std::string& name, const RecurringSchedule& schedule,
                            ScheduleFirings::Begins begins) {
  remove(topic.definition().id, name);
  if (schedule.paused) return;
  auto& firings = schedules_[{topic.definition().id, name}];
  firings = std::make_unique<ScheduleFirings>(context_, topic, name, schedule);
  firings->begin(begins);
}

void RecurringOffice::remove(TopicId topic, const std::string& name) {
  schedules_.erase({topic, name});
}

std::vector<ScheduleState> RecurringOffice::states(TopicId topic) const {
  std::vector<ScheduleState> states;
  for (auto at = schedules_.lower_bound({topic, {}}); at != schedules_.end() && at->first.first == topic;
       ++at)
    states.push_back(at->second->state());
  return states;
}

void RecurringOffice::forget(TopicId topic) {
  std::erase_if(schedules_, [topic](const auto& entry) { return entry.first.first == topic; });
}

}  // namespace lightq::broker
