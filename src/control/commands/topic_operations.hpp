/// The operations on topics. Layer: control.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <lightq/protocol/control.hpp>

#include "base/log_sink.hpp"
#include "control/catalogue/catalogue.hpp"
#include "control/catalogue/commit_queue.hpp"
#include "control/commands/data_plane.hpp"
#include "control/commands/done.hpp"
#include "control/commands/new_passwords.hpp"
#include "control/commands/operation_settings.hpp"
#include "control/commands/ready_topics.hpp"
#include "control/commands/topic_quota.hpp"
#include "control/rights/asker.hpp"
#include "control/rights/asker_rights.hpp"

namespace lightq::broker {

/// The topic that TopicOperations::create makes.
struct NewTopic {
  TopicName name;
  protocol::TopicSettings settings;
  protocol::Credentials user;  ///< the topic's own user; both fields empty: it has none
  /// The settings that are given; nothing: all of them. A template or a default sets the others.
  std::optional<protocol::GivenSettings> given = {};
};

/// The topics that an asker may see.
struct TopicList {
  std::vector<protocol::TopicListing> topics;  ///< ordered by name
  /// The work of finding them, as the length of a reply that takes as long to write.
  std::uint64_t work_bytes = 0;
  std::string continue_after = {};  ///< the last name of a page that others follow; else empty
};

/// Creates, changes, deletes, lists, pauses and purges topics, and starts them at the broker's start. The
/// asker's permission was checked before each call. Thread: the control thread. Lifetime: the parts must
/// outlive it.
class TopicOperations {
 public:
  struct Parts {
    Catalogue& catalogue;
    CommitQueue& commits;
    DataPlane& data_plane;
    LogSink& sink;
    ReadyTopics& ready;
    const AskerRights& rights;
    NewPasswords& passwords;
    const OperationSettings& settings;
  };

  explicit TopicOperations(Parts parts) : parts_(parts), quota_(parts.catalogue, parts.settings) {}

  /// Passes every topic of the catalogue to the data plane, then calls `done`. A topic that cannot be started
  /// is reported to the sink. Requests for it receive the reason as an error, and it can be deleted.
  void bring_up(std::function<void()> done);

  /// Creates a topic. `done` is called when it is durable and runs, with its settings. Errors:
  /// topic_already_exists, user_already_exists, invalid_request, limit_reached, busy, unauthorized_access
  /// (the asker lost the right meanwhile), and those of the catalogue and the data plane.
  void create(const Asker& asker, NewTopic topic, const Done<protocol::CreatedTopic>& done);
  /// Deletes a topic with its messages. Errors: topic_not_found, and those of the catalogue and the data
  /// plane.
  void remove(const TopicName& name, const Done<void>& done);
  /// Returns the topics that the asker may see.
  [[nodiscard]] TopicList list(const Asker& asker) const;
  /// Returns a page of the topics that the asker may see, with the settings of their groups. It begins behind
  /// `after`, and ends with the topic that reaches limits::stats_page_entries_max topics and groups.
  [[nodiscard]] TopicList list_with_groups(const Asker& asker, const std::optional<TopicName>& after) const;
  /// Returns the topic's id, for requests that use its messages. Errors: those of ReadyTopics::find.
  [[nodiscard]] Result<TopicId> find(const TopicName& name) const { return parts_.ready.find(name); }
  /// Stops or resumes delivery of the whole topic, durably. Errors: those of ReadyTopics::find_with_messages,
  /// the catalogue and the data plane.
  void set_paused(const TopicName& name, bool paused, const Done<void>& done);
  /// Changes settings of the topic, durably. Errors: as of set_paused; invalid_request (the topic's type does
  /// not have such a setting).
  void change(const TopicName& name, const protocol::TopicChange& change, const Done<void>& done);
  /// Drops all stored messages, and returns their number. Errors: those of ReadyTopics::find_with_messages
  /// and the data plane.
  void purge(const TopicName& name, const Done<std::uint64_t>& done);

 private:
  /// A topic that is being created.
  struct Creation {
    NewTopic topic;
    std::uint64_t maker = 0;  ///< the user that creates it; 0: an administrator
    Done<void> done;
  };

  [[nodiscard]] protocol::TopicListing listing_of(const std::string& name,
                                                  const protocol::TopicSettings& settings) const;
  void create_resolved(const Asker& asker, NewTopic topic, const Done<void>& done);
  [[nodiscard]] std::optional<Error> objection_to(const NewTopic& topic, std::uint64_t maker) const;
  [[nodiscard]] std::optional<Error> objection_to_user(const std::string& user_id) const;
  void create_enrolled(const Creation& creation, const Enrolment& enrolment);
  void create_with(const Creation& creation, std::uint64_t credential_id);
  void add_to_data_plane(const TopicDefinition& definition, const Done<void>& done);
  void undo_create(TopicId topic, const Error& error, const Done<void>& done);
  void remove_files(TopicId topic, Done<void> done);
  void set_owner(const TopicEntry& entry);
  void warn_of_open_topics();
  void bring_up_next();

  const Parts parts_;
  TopicQuota quota_;
  std::vector<TopicId> to_bring_up_;
  std::size_t being_brought_up_ = 0;
  std::function<void()> brought_up_;
};

}  // namespace lightq::broker
