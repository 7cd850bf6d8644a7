/// All operations of the broker, which the control socket calls. Layer: control.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "access/authenticator.hpp"
#include "base/log_sink.hpp"
#include "control/catalogue/catalogue.hpp"
#include "control/catalogue/commit_queue.hpp"
#include "control/commands/data_plane.hpp"
#include "control/commands/data_plane_recorder.hpp"
#include "control/commands/delayed_operations.hpp"
#include "control/commands/endpoint_operations.hpp"
#include "control/commands/group_operations.hpp"
#include "control/commands/new_passwords.hpp"
#include "control/commands/operation_settings.hpp"
#include "control/commands/ready_topics.hpp"
#include "control/commands/schedule_operations.hpp"
#include "control/commands/stats_operations.hpp"
#include "control/commands/topic_operations.hpp"
#include "control/commands/trace_operations.hpp"
#include "control/commands/user_operations.hpp"
#include "control/rights/asker_rights.hpp"
#include "net/event_loop.hpp"

namespace lightq::broker {

/// Owns the operations and the state that they share. An operation checks no password: its caller asks
/// Permissions first, and passes the Asker on. Each operation calls its `done` exactly once, immediately or
/// later, but never if the loop ends first. Thread: the control thread. Lifetime: the parts must outlive it.
class Operations {
 public:
  struct Parts {
    EventLoop& loop;
    Catalogue& catalogue;
    Authenticator& authenticator;
    const AskerRights& rights;  ///< Permissions::rights
    DataPlane& data_plane;
    LogSink& sink;
  };

  Operations(Parts parts, OperationSettings settings);
  Operations(const Operations&) = delete;
  Operations& operator=(const Operations&) = delete;

  /// Passes all users and topics of the catalogue to the data plane, then calls `done`.
  void bring_up(std::function<void()> done);

  /// Changes the limits of new topics, users and rights. Those that exist stay.
  void change_limits(const CreationLimits& limits);
  /// Replaces the templates. Topics that exist stay.
  void change_templates(TopicTemplates templates) { settings_.templates = std::move(templates); }

  /// Sets the CURVE key that later replies to `join` name.
  void change_server_key(std::string key) { settings_.server_key = std::move(key); }

  [[nodiscard]] TopicOperations& topics() { return topics_; }
  [[nodiscard]] EndpointOperations& endpoints() { return endpoints_; }
  [[nodiscard]] GroupOperations& groups() { return groups_; }
  [[nodiscard]] DelayedOperations& delayed() { return delayed_; }
  [[nodiscard]] ScheduleOperations& schedules() { return schedules_; }
  [[nodiscard]] UserOperations& users() { return users_; }
  [[nodiscard]] StatsOperations& stats() { return stats_; }
  [[nodiscard]] TraceOperations& traces() { return traces_; }
  /// Returns the observer that the data plane reports to.
  [[nodiscard]] DataPlaneObserver& observer() { return recorder_; }

 private:
  OperationSettings settings_;
  CommitQueue commits_;
  ReadyTopics ready_;
  NewPasswords passwords_;
  TopicOperations topics_;
  EndpointOperations endpoints_;
  GroupOperations groups_;
  DelayedOperations delayed_;
  ScheduleOperations schedules_;
  UserOperations users_;
  StatsOperations stats_;
  TraceOperations traces_;
  DataPlaneRecorder recorder_;
};

}  // namespace lightq::broker
