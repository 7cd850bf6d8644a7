/// The operations on consumer groups. Layer: control.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <lightq/base/types.hpp>
#include <lightq/protocol/group_control.hpp>

#include "control/catalogue/catalogue.hpp"
#include "control/catalogue/commit_queue.hpp"
#include "control/commands/data_plane.hpp"
#include "control/commands/done.hpp"
#include "control/commands/operation_settings.hpp"
#include "control/commands/ready_topics.hpp"
#include "control/rights/asker.hpp"
#include "control/rights/asker_rights.hpp"

namespace lightq::broker {

/// Deletes, pauses and purges the groups of a topic, changes their settings, and acts on their dead messages.
/// The asker's permission was checked before each call. Thread: the control thread. Lifetime: the parts must
/// outlive it.
class GroupOperations {
 public:
  struct Parts {
    Catalogue& catalogue;
    CommitQueue& commits;
    DataPlane& data_plane;
    const ReadyTopics& ready;
    const AskerRights& rights;
    const OperationSettings& settings;
  };

  explicit GroupOperations(const Parts& parts) : parts_(parts) {}

  /// Deletes the group and its settings. A group that does not exist may have settings. Errors: those of
  /// ReadyTopics::find and of the catalogue; group_not_found, group_in_use.
  void remove(const TopicName& topic, const std::string& group, const Done<void>& done);
  /// Stops or resumes delivery to the group. Errors: those of ReadyTopics::find_with_messages;
  /// group_not_found.
  void set_paused(const TopicName& topic, const std::string& group, bool paused, const Done<void>& done);
  /// Skips all stored messages for the group, and returns their number. Errors: as of set_paused.
  void purge(const TopicName& topic, const std::string& group, const Done<std::uint64_t>& done);
  /// Moves the group, durably; with `preview` only finds the effect. Errors: as of set_paused; io_error,
  /// no_space.
  void seek(const TopicName& topic, const std::string& group, const protocol::GroupPlace& to, bool preview,
            const Done<protocol::GroupMove>& done);
  /// Changes settings of the group, durably. The group need not exist. A dead-letter topic that is named is
  /// bound by its id: a topic that is created later under its name receives nothing. Errors: those of
  /// ReadyTopics::find and of the catalogue; invalid_request, unauthorized_access (the asker may not produce
  /// to the dead-letter topic, whether or not it exists), topic_not_found (the dead-letter topic),
  /// limit_reached.
  void change(const Asker& asker, const TopicName& topic, const std::string& group,
              const protocol::GroupChange& change, const Done<void>& done);

  // Dead messages. Errors of all: those of ReadyTopics::find and the data plane; group_not_found.

  /// Lists dead messages behind `after`, at most `limit`.
  void list_dead(const TopicName& topic, const std::string& group, const DeadListWish& wish,
                 const Done<protocol::DeadPage>& done);
  /// Counts, retries or purges dead messages or, with `group` empty, letters of a dead-letter topic.
  void act_on_dead(const Asker& asker, const TopicName& topic, const std::string& group, const DeadWish& wish,
                   const Done<protocol::DeadCount>& done);

 private:
  [[nodiscard]] std::optional<Error> objection_to(const Asker& asker, const TopicEntry& topic,
                                                  const protocol::GroupChange& change) const;
  [[nodiscard]] std::optional<Error> objection_to_target(const Asker& asker, const TopicEntry& topic,
                                                         const std::string& target) const;
  [[nodiscard]] bool leads_to(TopicId from, TopicId to) const;
  void set(TopicId topic, const std::string& group, const GroupSetup& setup, const Done<void>& done);

  const Parts parts_;
};

}  // namespace lightq::broker
