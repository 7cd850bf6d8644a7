/// The control layer's interface to the part of the broker that moves messages. Layer: control.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lightq/base/result.hpp>
#include <lightq/protocol/control.hpp>

#include "access/ticket.hpp"
#include "access/user_access.hpp"
#include "control/commands/done.hpp"
#include "delivery/topic_definition.hpp"
#include "topic/endpoint_record.hpp"
#include "topic/leaver.hpp"
#include "topic/reactor/stats_of_topics.hpp"
#include "topic/recurring/schedule_state.hpp"

namespace lightq::broker {

/// The parameters of a join. They contain the holder of the credentials, but not the credentials.
struct JoinWish {
  protocol::JoinType type = protocol::JoinType::push;
  protocol::Transport transport = protocol::Transport::tcp;
  protocol::ConnectionType connection_type = protocol::ConnectionType::zmq;
  protocol::Delivery delivery = protocol::Delivery::plain;
  TicketHolder holder = {};
};

/// The endpoint that a join opened or found open: all producers of a topic and transport share one endpoint.
struct JoinedEndpoint {
  EndpointRecord record;
  std::string bind_uri;                    ///< the address for clients (--advertise)
  bool is_new = false;                     ///< this join opened it, and its record must be stored
  std::optional<protocol::Ticket> ticket;  ///< set for all but raw consumers
  std::optional<protocol::Tls> tls = {};   ///< set for sessions that TLS encrypts
};

/// A page of a group's dead messages.
struct DeadListWish {
  protocol::DeadFilter filter = {};
  std::optional<std::uint64_t> after = {};  ///< begins behind this offset; nothing: with the first one
  std::size_t limit = 0;                    ///< at least 1
};

/// An operation on a group's dead messages.
struct DeadWish {
  enum class What { count, retry, purge };
  What what = What::retry;
  protocol::DeadFilter filter = {};
};

/// A page of a topic's delayed messages.
struct DelayedListWish {
  protocol::DelayedFilter filter = {};
  std::optional<protocol::DelayedPlace> after =
      {};                         ///< begins behind this place; nothing: with the first one
  std::size_t limit = 0;          ///< at least 1
  std::size_t payload_bytes = 0;  ///< of each payload, the first ones; 0: none
};

/// An operation on a topic's delayed messages.
struct DelayedWish {
  enum class What { count, cancel, hurry, reschedule };
  What what = What::count;
  protocol::DelayedFilter filter = {};
  /// reschedule: the new due time as a record has it, see due.hpp. A delay counts from the execution.
  std::int64_t due = 0;
};

/// The trace of a message, and the work that it was.
struct WorkedTrace {
  protocol::MessageTrace trace;
  std::uint64_t work_bytes = 0;  ///< as the length of a reply that takes as long to write
};

/// Topics and endpoints, which run on other threads. Thread: every call is made on the control thread and
/// returns immediately. `done` is called exactly once, later, on the control thread, never from within the
/// call. After `stop_accepting` every call fails with `shutting_down`.
class DataPlane {
 public:
  DataPlane() = default;
  DataPlane(const DataPlane&) = delete;
  DataPlane& operator=(const DataPlane&) = delete;
  virtual ~DataPlane() = default;

  /// Called at the start, before add_topic, with the ids and names of all topics of the catalogue. Others do
  /// not exist any more.
  virtual void expect_topics(const std::vector<std::pair<TopicId, std::string>>& topics) = 0;
  /// Starts a topic. `endpoints`: those that the catalogue has; they are opened again at their former ports.
  virtual void add_topic(const TopicDefinition& definition, const std::vector<EndpointRecord>& endpoints,
                         Done<void> done) = 0;
  /// Ends a topic: closes its endpoints and deletes its files. Also works for a topic that add_topic could
  /// not open.
  virtual void remove_topic(TopicId topic, Done<void> done) = 0;
  /// Opens an endpoint or session for a client. `connection_type` may be `socket` only for sessions and plain
  /// `pull`.
  virtual void join(TopicId topic, const JoinWish& wish, Done<JoinedEndpoint> done) = 0;
  /// Closes an endpoint. Returns the number of messages that were delivered to it (0 for a producer's). An
  /// endpoint that `by` may not close is reported as not existing.
  virtual void leave(TopicId topic, const std::string& bind_uri, const Leaver& by,
                     Done<std::uint64_t> done) = 0;
  virtual void delete_group(TopicId topic, const std::string& group, Done<void> done) = 0;
  /// Stops or resumes delivery to the group or, with `group` empty, of the topic. If groups are stored on
  /// disk, a group's pause is durable when `done` is called.
  virtual void set_paused(TopicId topic, const std::string& group, bool paused, Done<void> done) = 0;
  /// Changes the given settings of the topic. They apply at once, also to stored messages; messages that have
  /// expired stay so. Requires: a topic that keeps messages; one with files for settings of files.
  virtual void change_topic(TopicId topic, const protocol::TopicChange& change, Done<void> done) = 0;
  /// Moves the group to a place. With `preview` only finds the effect. If groups are stored on disk, the
  /// effect is durable when `done` is called. Errors: group_not_found; io_error (the place cannot be read
  /// now, or the group cannot be saved), no_space.
  virtual void seek_group(TopicId topic, const std::string& group, const protocol::GroupPlace& to,
                          bool preview, Done<protocol::GroupMove> done) = 0;
  /// Skips all stored messages for the group or, with `group` empty, drops them. Returns the number of
  /// messages.
  virtual void purge(TopicId topic, const std::string& group, Done<std::uint64_t> done) = 0;
  /// Sets the settings of a group of this name, whether it exists now or later. If that parks messages, and
  /// groups are stored on disk, the effect is durable when `done` is called.
  virtual void set_group(TopicId topic, const std::string& group, const GroupSetup& setup,
                         Done<void> done) = 0;
  /// Lists dead messages of the group or, with `group` empty, those in the dead-letter topic itself. Errors:
  /// group_not_found.
  virtual void list_dead(TopicId topic, const std::string& group, const DeadListWish& wish,
                         Done<protocol::DeadPage> done) = 0;
  /// Returns the trace of one message of a topic that stores messages. In-flight messages have the
  /// numbers of their consumers' users, and no names. `letter_topic` is the dead-letter topic of each group
  /// in which the message may have died. Errors: invalid_request (no such message yet), io_error.
  virtual void trace(TopicId topic, Offset offset, Done<WorkedTrace> done) = 0;
  /// Counts, retries or purges dead messages. If groups are stored on disk, the effect is durable when
  /// `done` is called. Errors: as for list_dead; io_error, no_space.
  virtual void act_on_dead(TopicId topic, const std::string& group, const DeadWish& wish,
                           Done<protocol::DeadCount> done) = 0;
  /// Counts, gives back or purges letters in the dead-letter topic itself. `may` returns true if the asker
  /// may manage the topic of this name; any thread may call it. If groups are stored on disk, the effect is
  /// durable when `done` is called. Errors: io_error, no_space, limit_reached; busy: letters under way are
  /// given back later.
  virtual void act_on_letters(TopicId topic, const DeadWish& wish,
                              std::function<bool(std::string_view topic)> may,
                              Done<protocol::DeadCount> done) = 0;
  /// Lists delayed messages of a topic that stores messages.
  virtual void list_delayed(TopicId topic, const DelayedListWish& wish, Done<protocol::DelayedPage> done) = 0;
  /// Counts, cancels, hurries or reschedules delayed messages of a topic that stores messages. If they are
  /// stored on disk, the effect is durable when `done` is called. Errors: io_error, no_space;
  /// invalid_request (the new due time is too far).
  virtual void act_on_delayed(TopicId topic, const DelayedWish& wish, Done<protocol::DelayedCount> done) = 0;
  /// Begins a recurring schedule of the topic, or replaces the one of this name.
  virtual void put_schedule(TopicId topic, const std::string& name, const RecurringSchedule& schedule,
                            Done<void> done) = 0;
  /// Ends a schedule, if there is one of this name.
  virtual void remove_schedule(TopicId topic, const std::string& name, Done<void> done) = 0;
  /// Returns the states of the topic's schedules that are not paused, by name.
  virtual void schedule_states(TopicId topic, Done<std::vector<ScheduleState>> done) = 0;
  /// Applies a user's rights. `done` is called when they are in force on every thread and connections that
  /// depend on removed rights are closed. Takes effect in the order of the calls, including those of
  /// add_topic and join.
  virtual void put_user(const UserAccess& user, Done<void> done) = 0;
  virtual void remove_user(std::uint64_t id, Done<void> done) = 0;
  /// Sets the holder whose tickets permit everything with the topic: its own user. Tickets of own users of
  /// other topics do not. 0: the topic has no own user.
  virtual void set_owner(TopicId topic, std::uint64_t holder, Done<void> done) = 0;
  /// Returns the statistics of a topic, with at most `members_max` members of its groups. The members have
  /// the numbers of their users, and no names.
  virtual void topic_stats(TopicId topic, std::uint64_t members_max, Done<protocol::TopicStats> done) = 0;
  /// Returns the statistics of many topics. Costs one message to each thread that has some of them, however
  /// many they are. Errors: shutting_down, also if the broker stops before all of them are read.
  virtual void stats_of(TopicsAsked asked, Done<TopicsStats> done) = 0;
  /// Returns sums over all topics. Fields that the data plane does not know (version, pid, auth_failures …)
  /// stay empty. Errors: as for stats_of.
  virtual void broker_stats(Done<protocol::BrokerStats> done) = 0;
};

/// Events that the data plane reports on its own. Thread: called on the control thread.
class DataPlaneObserver {
 public:
  virtual ~DataPlaneObserver() = default;
  /// An endpoint has closed (left, idle, or its port was taken at a restart): forget its record. Its port
  /// must not be given to another user for 10 minutes. The data plane ensures that while it runs, the
  /// catalogue across a restart.
  virtual void endpoint_closed(const EndpointRecord& record) = 0;
  /// An endpoint's record has changed, for example because its former port was taken and it runs on another.
  virtual void endpoint_changed(const EndpointRecord& record) = 0;
  /// The topic's files belong to this log, and its definition names none. Called before add_topic completes.
  virtual void log_found(TopicId topic, std::uint32_t log_id) = 0;
};

}  // namespace lightq::broker
