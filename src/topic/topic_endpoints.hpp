/// The two interfaces between a topic and its plain endpoints. A topic calls its endpoints through
/// TopicEndpoints, which EndpointSet in src/plain implements. Producers' endpoints call PlainProducerHost.
/// Layer: topic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <lightq/base/batch.hpp>
#include <lightq/base/result.hpp>
#include <lightq/protocol/control.hpp>

#include "access/ticket.hpp"
#include "admission/endpoint_shares.hpp"
#include "delivery/topic.hpp"
#include "log/saved_state/cursor_file.hpp"
#include "topic/endpoint_record.hpp"
#include "topic/leaver.hpp"
#include "topic/reactor_context.hpp"

namespace lightq::broker {

/// The services of a topic that an inlet uses. Thread: the reactor's.
class PlainProducerHost {
 public:
  virtual ~PlainProducerHost() = default;
  /// Returns false if nothing may be read from producers now.
  [[nodiscard]] virtual bool accepting() const = 0;
  virtual PublishOutcome publish(BatchBuilder& batch) = 0;
  /// Called when the batches of one input have been published: dispatches them.
  virtual void published() = 0;
  virtual void count_refused(std::uint64_t messages) = 0;
  [[nodiscard]] virtual std::uint64_t message_bytes_max() const = 0;
  [[nodiscard]] virtual std::size_t batch_bytes_target() const = 0;
  /// The batch that is being packed. All inlets of a thread share it; it is empty between two inputs.
  virtual BatchBuilder& batch() = 0;
  /// Called when the inlet has stopped reading, until the host calls resume.
  virtual void inlet_held() = 0;
};

/// Called by a topic's endpoints when there may be messages to dispatch, or space for producers. Thread: the
/// reactor's.
class EndpointsListener {
 public:
  virtual ~EndpointsListener() = default;
  virtual void consumers_changed() = 0;
  virtual void consumers_writable() = 0;
};

/// The result of a join.
struct OpenedEndpoint {
  EndpointRecord record;
  std::string bind_uri;
  bool is_new = false;
  std::optional<protocol::Ticket> ticket;  ///< the ticket to connect with; none for raw consumers
};

/// A topic's plain endpoints. The topic owns them. Thread: the reactor's.
class TopicEndpoints {
 public:
  TopicEndpoints() = default;
  TopicEndpoints(const TopicEndpoints&) = delete;
  TopicEndpoints& operator=(const TopicEndpoints&) = delete;
  virtual ~TopicEndpoints() = default;

  /// Opens an endpoint, or returns the producers' shared one. `holder`: the user of the ticket that is
  /// issued. `connection_type`: `socket` (raw consumers) only with `pull`, and only if the topic asks for no
  /// ticket and, over TCP, the broker does not encrypt (else not_supported). Errors: limit_reached,
  /// not_supported, io_error.
  virtual Result<OpenedEndpoint> join(protocol::JoinType type, protocol::Transport transport,
                                      protocol::ConnectionType connection_type,
                                      const TicketHolder& holder) = 0;
  /// Opens an endpoint from the catalogue again, at its old port if that is free. `from`: a subscriber's
  /// stored position. After an error the endpoint and its cursor are kept, and it is opened as soon as
  /// possible.
  virtual Result<void> reopen(const EndpointRecord& record, std::optional<Offset> from) = 0;
  /// Closes an endpoint. Returns the number of messages that were sent to its consumers. Returns 0 for the
  /// producers' shared endpoint, which stays open until it is unused. Errors: endpoint_not_found, also for an
  /// endpoint that `by` may not close.
  virtual Result<std::uint64_t> leave(const std::string& bind_uri, const Leaver& by) = 0;

  /// Resumes waiting producers, as many as find space. Returns true if all of them did.
  virtual bool resume_inlets() = 0;
  /// Sends a PONG to waiting producers that check the broker by ZeroMQ heartbeats. `all`: also to those that
  /// have sent no PING yet. Ends the connections of producers that have disconnected and left nothing to
  /// read.
  virtual void tend_held(bool all) = 0;
  /// Ends the connections of users who have lost the right to be connected.
  virtual void end_unpermitted() = 0;
  /// Closes all endpoints. Releases their ports (PortBook::release). `tell`: reports each endpoint as closed.
  virtual void close_all(bool tell) = 0;
  /// Closes the endpoint that was evicted from this place, unless a peer has connected meanwhile.
  virtual void make_room(const EndpointShares::Place& lost) = 0;
  virtual void stop_accepting() = 0;
  /// Returns true if no dispatched message waits in this process.
  [[nodiscard]] virtual bool all_sent() = 0;
  virtual void release_idle_memory() = 0;

  /// Adds the counts and the subscribers' addresses to `stats`.
  virtual void add_stats(protocol::TopicStats& stats) = 0;
  /// Returns the cursors of subscribers, with the names that they are stored under
  /// (`subscriber_cursor_name`).
  [[nodiscard]] virtual std::vector<log::NamedCursor> subscriber_cursors() const = 0;
  static std::string subscriber_cursor_name(std::uint64_t endpoint_id) {
    return "sub:" + std::to_string(endpoint_id);
  }
};

/// Makes the endpoints of a topic. Lifetime: all arguments outlive the endpoints.
using MakeEndpoints = std::function<std::unique_ptr<TopicEndpoints>(
    ReactorContext& context, Topic& topic, PlainProducerHost& inlet_host, EndpointsListener& listener)>;

}  // namespace lightq::broker
