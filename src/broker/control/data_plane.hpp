/// What the control layer asks of the part of the broker that moves messages. Layer: control.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <lightq/base/result.hpp>
#include <lightq/protocol/control.hpp>

#include "broker/delivery/topic_definition.hpp"
#include "broker/endpoint/endpoint_record.hpp"
#include "broker/endpoint/leaver.hpp"
#include "broker/endpoint/ticket.hpp"
#include "broker/endpoint/user_access.hpp"

namespace lightq::broker {

/// What is asked of a join; of the credentials only whose they are.
struct JoinWish {
  protocol::JoinType type = protocol::JoinType::push;
  protocol::Transport transport = protocol::Transport::tcp;
  protocol::ConnectionType connection_type = protocol::ConnectionType::zmq;
  protocol::Delivery delivery = protocol::Delivery::plain;
  TicketHolder holder = {};
};

/// What a join opened (or found already open: all producers of a topic and transport share one).
struct JoinedEndpoint {
  EndpointRecord record;
  std::string bind_uri;                    ///< as a client reaches it (--advertise)
  bool is_new = false;                     ///< opened by this join, and to be remembered
  std::optional<protocol::Ticket> ticket;  ///< of all but raw consumers
  std::optional<protocol::Tls> tls = {};   ///< of sessions that are encrypted by TLS
};

/// Topics and endpoints, wherever they run. Every call is made on the control thread, returns at once, and
/// calls `done` exactly once, later, on the control thread (never from within the call). After
/// `stop_accepting` every call answers `shutting_down`.
class DataPlane {
 public:
  template <typename T>
  using Done = std::function<void(T)>;

  DataPlane() = default;
  DataPlane(const DataPlane&) = delete;
  DataPlane& operator=(const DataPlane&) = delete;
  virtual ~DataPlane() = default;

  /// Brings a topic to life. `endpoints`: those the catalogue remembers, opened again at their old ports.
  virtual void add_topic(const TopicDefinition& definition, const std::vector<EndpointRecord>& endpoints,
                         Done<Result<void>> done) = 0;
  /// Ends a topic: closes its endpoints, deletes its files; also those of one that add_topic could not open.
  virtual void remove_topic(TopicId topic, Done<Result<void>> done) = 0;
  /// `connection_type` is `socket` only of sessions, and of plain `pull`.
  virtual void join(TopicId topic, const JoinWish& wish, Done<Result<JoinedEndpoint>> done) = 0;
  /// Answers how many messages the endpoint had been handed (0 for a producer's); one that `by` may not close
  /// is not there.
  virtual void leave(TopicId topic, const std::string& bind_uri, const Leaver& by,
                     Done<Result<std::uint64_t>> done) = 0;
  virtual void delete_group(TopicId topic, const std::string& group, Done<Result<void>> done) = 0;
  /// Hands nothing out, or goes on: the group, or with `group` empty the topic. A group's pause is on the
  /// disk when it is answered, where groups are.
  virtual void set_paused(TopicId topic, const std::string& group, bool paused, Done<Result<void>> done) = 0;
  /// Passes over, or with `group` empty drops, all that is stored. Answers how many messages that were.
  virtual void purge(TopicId topic, const std::string& group, Done<Result<std::uint64_t>> done) = 0;
  /// Who may do what, from now on: answered when it is so everywhere, and what was open by rights that are
  /// gone is closed. In the order of the calls, also with those of add_topic and join.
  virtual void put_user(const UserAccess& user, Done<Result<void>> done) = 0;
  virtual void remove_user(std::uint64_t id, Done<Result<void>> done) = 0;
  /// Tickets of this holder permit everything with the topic, and no other topic's own user's do; 0: it has
  /// none.
  virtual void set_owner(TopicId topic, std::uint64_t holder, Done<Result<void>> done) = 0;
  virtual void topic_stats(TopicId topic, Done<Result<protocol::TopicStats>> done) = 0;
  /// Sums over all topics; fields that the data plane does not know (version, pid, auth_failures …) stay
  /// empty.
  virtual void broker_stats(Done<Result<protocol::BrokerStats>> done) = 0;
};

/// What the data plane tells on its own; called on the control thread.
class DataPlaneObserver {
 public:
  virtual ~DataPlaneObserver() = default;
  /// An endpoint closed (left, idle, or its port was taken at a restart): forget its record. Its port is not
  /// to be given to anybody else for 10 minutes; the data plane sees to that while it runs, the catalogue
  /// over a restart.
  virtual void endpoint_closed(const EndpointRecord& record) = 0;
  /// A remembered endpoint could not have its old port and runs on another, or an endpoint's record changed.
  virtual void endpoint_changed(const EndpointRecord& record) = 0;
  /// The topic's files are of this log, of which its definition says nothing; before add_topic is answered.
  virtual void log_found(TopicId topic, std::uint32_t log_id) = 0;
};

}  // namespace lightq::broker
