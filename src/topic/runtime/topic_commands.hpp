/// Commands of the control socket on a topic: deleting and pausing groups, purging. Layer: topic.
#pragma once

#include <string>

#include <lightq/base/result.hpp>

#include "delivery/topic.hpp"
#include "topic/runtime/cursor_saves.hpp"
#include "topic/runtime/topic_activity.hpp"
#include "topic/runtime/topic_purges.hpp"
#include "topic/runtime/waiting_producers.hpp"

namespace lightq::broker {

/// Executes commands, and answers them when their effect survives a kill of the broker.
/// TopicRuntime owns it; the reactor calls it for the control thread. Thread: the reactor's.
class TopicCommands {
 public:
  using Answered = CursorSaves::Answered;

  /// Lifetime: all parameters outlive this.
  TopicCommands(Topic& topic, CursorSaves& cursors, TopicPurges& purges, WaitingProducers& held,
                TopicActivity& activity)
      : topic_(topic), cursors_(cursors), purges_(purges), held_(held), activity_(activity) {}

  /// Deletes the group. Calls `answered`, perhaps within this call, when the deletion survives a kill of the
  /// broker. Errors: group_not_found, group_in_use, shutting_down. After io_error or no_space the group stays
  /// deleted only until the broker ends.
  void delete_group(const std::string& group, const Answered& answered);
  /// Pauses or resumes dispatch to all consumers of the topic.
  void set_paused(bool paused);
  /// Pauses or resumes dispatch to one group. Calls `answered`, perhaps within this call, when the change
  /// survives a kill of the broker. Errors: group_not_found, shutting_down. After io_error or no_space the
  /// change lasts only until the broker ends.
  void set_group_paused(const std::string& group, bool paused, const Answered& answered);
  /// Moves the group past all stored messages. Calls `answered`, perhaps within this call, when that survives
  /// a kill of the broker. The result is the number of messages that the group had not processed. Errors:
  /// group_not_found, shutting_down. After io_error or no_space the change lasts only until the broker ends.
  void purge_group(const std::string& group, const Answered& answered);
  /// Moves every group and subscriber past all stored messages, and drops the messages: see
  /// TopicPurges::begin.
  void purge(const Answered& answered) { purges_.begin(answered); }

 private:
  [[nodiscard]] Result<ConsumerGroup*> group_of(const std::string& name);

  Topic& topic_;
  CursorSaves& cursors_;
  TopicPurges& purges_;
  WaitingProducers& held_;
  TopicActivity& activity_;
};

}  // namespace lightq::broker
