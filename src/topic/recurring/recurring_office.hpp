/// The recurring schedules of one reactor's topics. Layer: topic.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "recurring/recurring_schedule.hpp"
#include "topic/recurring/schedule_firings.hpp"
#include "topic/recurring/schedule_state.hpp"
#include "topic/runtime/topic_runtime.hpp"

namespace lightq::broker {

/// Owns a ScheduleFirings for each schedule that is not paused. Topics without schedules cost nothing here.
/// The Reactor owns it. Thread: the reactor's.
class RecurringOffice final {
 public:
  /// Lifetime: `context` outlives the office.
  explicit RecurringOffice(ReactorContext& context) : context_(context) {}
  RecurringOffice(const RecurringOffice&) = delete;
  RecurringOffice& operator=(const RecurringOffice&) = delete;
  ~RecurringOffice() = default;

  /// Begins the schedules of a topic's definition: firings before now were missed. Called after the topic was
  /// opened.
  void begin(TopicRuntime& topic);
  /// Begins a schedule, or replaces the one of this name. Paused, it only ends that one.
  void put(TopicRuntime& topic, const std::string& name, const RecurringSchedule& schedule);
  /// Ends a schedule, if there is one of this name.
  void remove(TopicId topic, const std::string& name);
  /// Returns the states of the topic's schedules that are not paused, by name.
  [[nodiscard]] std::vector<ScheduleState> states(TopicId topic) const;
  /// Ends the topic's schedules. Called before the topic is destroyed.
  void forget(TopicId topic);
  /// Ends all schedules.
  void stop() { schedules_.clear(); }

 private:
  using Key = std::pair<TopicId, std::string>;
  void begin(TopicRuntime& topic, const std::string& name, const RecurringSchedule& schedule,
             ScheduleFirings::Begins begins);

  ReactorContext& context_;
  std::map<Key, std::unique_ptr<ScheduleFirings>> schedules_;
};

}  // namespace lightq::broker
