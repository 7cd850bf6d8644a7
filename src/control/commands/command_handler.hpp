/// Executes control requests: asks for permission, calls the operation and sends the reply. Layer: control.
#pragma once

#include <functional>
#include <string_view>
#include <utility>

#include <lightq/base/result.hpp>
#include <lightq/protocol/control.hpp>

#include "control/answer.hpp"
#include "control/commands/operations.hpp"
#include "control/commands/schedule_commands.hpp"
#include "control/rights/permissions.hpp"

namespace lightq::broker {

/// Executes requests. It has one function for each command: Permissions checks the asker, and
/// Operations do the work. Thread: everything on the control loop's thread. Lifetime: both must
/// outlive it.
class CommandHandler {
 public:
  CommandHandler(Permissions& permissions, Operations& operations)
      : permissions_(permissions), operations_(operations), schedules_(permissions, operations.schedules()) {}

  /// Executes a request. Calls `answer` exactly once, immediately or later, but never if the loop ends first.
  void handle(protocol::Request request, const Answer& answer);

  /// Reads the settings again, and returns what has changed.
  using Reload = std::function<Result<protocol::ReloadReply>()>;
  /// Sets the function that executes `reload`, which is not supported without it.
  void set_reload(Reload reload) { reload_ = std::move(reload); }

  /// Makes every later request fail with `shutting_down`.
  void stop_accepting() { stopping_ = true; }

 private:
  void execute(protocol::CreateTopic request, const Answer& answer);
  void execute(protocol::DeleteTopic request, const Answer& answer);
  void execute(protocol::SetTopic request, const Answer& answer);
  void execute(protocol::ListTopics request, const Answer& answer);
  void execute(protocol::Join request, const Answer& answer);
  void execute(protocol::Leave request, const Answer& answer);
  void execute(protocol::Stats request, const Answer& answer);
  void execute(protocol::StatsAll request, const Answer& answer);
  void execute(protocol::DeleteGroup request, const Answer& answer);
  void execute(protocol::Pause request, const Answer& answer);
  void execute(protocol::Resume request, const Answer& answer);
  void execute(protocol::Purge request, const Answer& answer);
  void execute(protocol::SetGroup request, const Answer& answer);
  void execute(protocol::SeekGroup request, const Answer& answer);
  void execute(protocol::Trace request, const Answer& answer);
  void execute(protocol::ListDead request, const Answer& answer);
  void execute(protocol::RetryDead request, const Answer& answer);
  void execute(protocol::PurgeDead request, const Answer& answer);
  void execute(protocol::ListDelayed request, const Answer& answer);
  void execute(protocol::CancelDelayed request, const Answer& answer);
  void execute(protocol::HurryDelayed request, const Answer& answer);
  void execute(protocol::RescheduleDelayed request, const Answer& answer);
  void execute(protocol::CreateUser request, const Answer& answer);
  void execute(protocol::DeleteUser request, const Answer& answer);
  void execute(protocol::SetPassword request, const Answer& answer);
  void execute(protocol::GrantRights request, const Answer& answer);
  void execute(protocol::RevokeRights request, const Answer& answer);
  void execute(protocol::ListUsers request, const Answer& answer);
  void execute(protocol::Reload request, const Answer& answer);
  void execute(protocol::Ping request, const Answer& answer);
  void execute(protocol::Version request, const Answer& answer);

  void set_topic_password(protocol::SetPassword request, const Answer& answer);
  template <typename Asked>
  void set_paused(std::string_view cmd, Asked request, bool paused, const Answer& answer);
  template <typename Asked>
  void act_on_dead(std::string_view cmd, Asked request, DeadWish::What what, const Answer& answer);
  template <typename Asked>
  void act_on_delayed(std::string_view cmd, Asked request, DelayedWish::What what, const Answer& answer);

  Permissions& permissions_;
  Operations& operations_;
  ScheduleCommands schedules_;
  Reload reload_;
  bool stopping_ = false;
};

}  // namespace lightq::broker
