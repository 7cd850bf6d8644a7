/// Executes control requests on recurring schedules. Layer: control.
#include "control/commands/schedule_commands.hpp"

#include <memory>
#include <utility>

#include "control/commands/exchange.hpp"

namespace lightq::broker {

void ScheduleCommands::execute(protocol::SetSchedule request, const Answer& answer) {
  const Exchange exchange{"set_schedule", answer};
  const auto settings = std::make_shared<const protocol::ScheduleSettings>(std::move(request.settings));
  permissions_.permit_topic(
      request.topic, Permissions::to_manage({}), std::move(request.user), request.as_admin, answer,
      exchange.permitted([=, this, topic = request.topic, name = request.name](const Asker& asker) {
        schedules_.set(asker, topic, name, *settings, exchange.ok());
      }));
}

/// Without a topic every user may ask. The list has the topics that the user may manage.
void ScheduleCommands::execute(protocol::ListSchedules request, const Answer& answer) {
  const Exchange exchange{"list_schedules", answer};
  const SchedulesWanted wanted{.topic = request.topic,
                               .name = std::move(request.name),
                               .after = std::move(request.after),
                               .limit = static_cast<std::size_t>(request.limit),
                               .times = static_cast<std::size_t>(request.times)};
  const auto list = exchange.permitted([=, this](const Asker& asker) {
    schedules_.list(asker, wanted, exchange.reply<ScheduleList>([answer](ScheduleList found) {
      answer.worked(found.work_bytes);
      return std::move(found.page);
    }));
  });
  if (!request.topic) return permissions_.permit_user(std::move(request.user), answer, list);
  permissions_.permit_topic(*request.topic, Permissions::to_manage({}), std::move(request.user),
                            request.as_admin, answer, list);
}

template <typename Asked, typename Act>
void ScheduleCommands::act_on_schedule(std::string_view cmd, Asked request, Act act, const Answer& answer) {
  const Exchange exchange{cmd, answer};
  permissions_.permit_topic(
      request.topic, Permissions::to_manage({}), std::move(request.user), request.as_admin, answer,
      exchange.permitted([=, this, topic = request.topic, name = request.name](const Asker&) {
        act(schedules_, topic, name, exchange.ok());
      }));
}

void ScheduleCommands::execute(protocol::PauseSchedule request, const Answer& answer) {
  const auto pause = [](ScheduleOperations& schedules, const auto& topic, const auto& name,
                        const auto& done) { schedules.set_paused(topic, name, true, done); };
  act_on_schedule("pause_schedule", std::move(request), pause, answer);
}

void ScheduleCommands::execute(protocol::ResumeSchedule request, const Answer& answer) {
  const auto resume = [](ScheduleOperations& schedules, const auto& topic, const auto& name,
                         const auto& done) { schedules.set_paused(topic, name, false, done); };
  act_on_schedule("resume_schedule", std::move(request), resume, answer);
}

void ScheduleCommands::execute(protocol::RemoveSchedule request, const Answer& answer) {
  const auto remove = [](ScheduleOperations& schedules, const auto& topic, const auto& name,
                         const auto& done) { schedules.remove(topic, name, done); };
  act_on_schedule("remove_schedule", std::move(request), remove, answer);
}

}  // namespace lightq::broker
