/// Executes control requests on recurring schedules. Layer: control.
#pragma once

#include <string_view>

#include <lightq/protocol/control.hpp>

#include "control/answer.hpp"
#include "control/commands/schedule_operations.hpp"
#include "control/rights/permissions.hpp"

namespace lightq::broker {

/// The part of CommandHandler for requests on schedules. Each function calls `answer` exactly once,
/// immediately or later, but never if the loop ends first. Thread: the control loop's. Lifetime: the
/// permissions and the operations must outlive it.
class ScheduleCommands {
 public:
  ScheduleCommands(Permissions& permissions, ScheduleOperations& schedules)
      : permissions_(permissions), schedules_(schedules) {}

  void execute(protocol::SetSchedule request, const Answer& answer);
  void execute(protocol::ListSchedules request, const Answer& answer);
  void execute(protocol::PauseSchedule request, const Answer& answer);
  void execute(protocol::ResumeSchedule request, const Answer& answer);
  void execute(protocol::RemoveSchedule request, const Answer& answer);

 private:
  template <typename Asked, typename Act>
  void act_on_schedule(std::string_view cmd, Asked request, Act act, const Answer& answer);

  Permissions& permissions_;
  ScheduleOperations& schedules_;
};

}  // namespace lightq::broker
