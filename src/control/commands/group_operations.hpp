/// The operations on consumer groups. Layer: control.
#pragma once

#include <cstdint>
#include <string>

#include <lightq/base/types.hpp>

#include "control/commands/data_plane.hpp"
#include "control/commands/done.hpp"
#include "control/commands/ready_topics.hpp"

namespace lightq::broker {

/// Deletes, pauses and purges the groups of a topic. The asker's permission was checked before each call.
/// Thread: the control thread. Lifetime: the references must outlive it.
class GroupOperations {
 public:
  GroupOperations(DataPlane& data_plane, const ReadyTopics& ready) : data_plane_(data_plane), ready_(ready) {}

  /// Errors: those of ReadyTopics::find; group_not_found, group_in_use.
  void remove(const TopicName& topic, const std::string& group, const Done<void>& done);
  /// Stops or resumes delivery to the group. Errors: those of ReadyTopics::find_with_messages;
  /// group_not_found.
  void set_paused(const TopicName& topic, const std::string& group, bool paused, const Done<void>& done);
  /// Skips all stored messages for the group, and returns their number. Errors: as of set_paused.
  void purge(const TopicName& topic, const std::string& group, const Done<std::uint64_t>& done);

 private:
  DataPlane& data_plane_;
  const ReadyTopics& ready_;
};

}  // namespace lightq::broker
