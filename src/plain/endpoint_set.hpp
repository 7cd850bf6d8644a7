/// A topic's endpoints: joins, leaves, and the assignment of connections to cursors. Layer: plain.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <lightq/protocol/control.hpp>

#include "admission/endpoint_shares.hpp"
#include "delivery/topic.hpp"
#include "log/saved_state/cursor_file.hpp"
#include "plain/endpoint.hpp"
#include "plain/endpoint_addresses.hpp"
#include "plain/endpoint_places.hpp"
#include "plain/plain_consumer_connection.hpp"
#include "plain/plain_producer_connection.hpp"
#include "plain/unopened_endpoints.hpp"
#include "topic/reactor_context.hpp"
#include "topic/topic_endpoints.hpp"

namespace lightq::broker {

/// Owns a topic's endpoints, and the endpoints that could not be opened again. All producers of a transport
/// share one endpoint. Each `pull` or `sub` join has its own (docs/adr/0004). Thread: the reactor's.
class EndpointSet final : public TopicEndpoints, public EndpointHost, public PlainConsumerHost {
 public:
  EndpointSet(ReactorContext& context, Topic& topic, PlainProducerHost& inlet_host,
              EndpointsListener& listener)
      : context_(context), topic_(topic), inlet_host_(inlet_host), listener_(listener) {}
  ~EndpointSet() override;

  // Implements TopicEndpoints.
  Result<OpenedEndpoint> join(protocol::JoinType type, protocol::Transport transport,
                              protocol::ConnectionType connection_type = protocol::ConnectionType::zmq,
                              const TicketHolder& holder = {}) override;
  Result<void> reopen(const EndpointRecord& record, std::optional<Offset> from) override;
  Result<std::uint64_t> leave(const std::string& bind_uri, const Leaver& by) override;
  bool resume_inlets() override;
  void tend_held(bool all) override;
  void end_unpermitted() override;
  void close_all(bool tell) override;
  void make_room(const EndpointShares::Place& lost) override;
  void stop_accepting() override;
  [[nodiscard]] bool all_sent() override;
  void release_idle_memory() override;
  void add_stats(protocol::TopicStats& stats) override;
  [[nodiscard]] std::vector<log::NamedCursor> subscriber_cursors() const override;

 private:
  struct Entry {
    std::unique_ptr<Endpoint> endpoint;
    Subscriber* subscriber = nullptr;      // sub: keeps its cursor while no consumer is connected
    std::uint64_t handed_to_the_gone = 0;  // messages sent to consumers that have disconnected
  };
  struct Consumer {
    Endpoint* endpoint = nullptr;
    Subscriber* subscriber = nullptr;  // sub, while attached
  };

  std::unique_ptr<ZmtpConnection> make_connection(Endpoint& endpoint, UniqueFd descriptor) override;
  std::unique_ptr<PlainConsumerConnection> make_outlet(Endpoint& endpoint, UniqueFd descriptor);
  void connection_ending(Endpoint& endpoint, ZmtpConnection& connection, const std::string& why) override;
  void endpoint_done(Endpoint& endpoint, const std::string& why) override;
  void accept_failed(Endpoint& endpoint) override;
  void endpoint_full(Endpoint& endpoint) override;
  void consumer_ready(PlainConsumerConnection& outlet) override;
  void consumer_unready(PlainConsumerConnection& outlet) override;
  void consumer_writable() override { listener_.consumers_writable(); }

  [[nodiscard]] OpenedEndpoint opened(const Endpoint& endpoint, bool is_new,
                                      const TicketHolder& holder) const;
  [[nodiscard]] std::optional<Error> no_place_for(std::uint64_t user) const;
  [[nodiscard]] std::optional<Error> no_connection_for(const TicketHolder& holder,
                                                       const Endpoint* shared) const;
  /// `joined_by`: the user whose join opens it; nothing: it existed before and is opened again.
  Result<Entry*> open(const EndpointRecord& record, std::optional<TicketHolder> joined_by);
  Result<void> open_again(const UnopenedEndpoints::One& unopened);
  Result<std::uint64_t> leave_unopened(const std::string& bind_uri, const Leaver& by);
  void close_unopened(const UnopenedEndpoints::One& unopened, bool tell);
  [[nodiscard]] ConnectionAuthorizer gate_for(EndpointRole role) const;
  Result<Entry*> start(EndpointRecord record, bool again, const ConnectionAuthorizer& authorizer);
  void close(std::uint64_t id, bool tell);
  void consumer_gone(PlainConsumerConnection& outlet);
  void release_subscriber(Consumer& consumer);
  [[nodiscard]] bool owns_place(const EndpointRecord& record, std::uint64_t user) const;

  ReactorContext& context_;
  Topic& topic_;
  PlainProducerHost& inlet_host_;
  EndpointsListener& listener_;
  EndpointAddresses addresses_{context_, topic_.definition()};
  EndpointPlaces places_{context_, topic_.definition()};
  std::map<std::uint64_t, Entry> entries_;  // by endpoint id
  UnopenedEndpoints unopened_{context_.loop, [this](const auto& unopened) { return open_again(unopened); }};
  std::unordered_map<PlainConsumerConnection*, Consumer> consumers_;
  std::size_t resume_turn_ = 0;
  std::uint64_t refused_connections_ = 0;
};

/// Makes the endpoints of a topic: see MakeEndpoints.
inline std::unique_ptr<TopicEndpoints> make_endpoint_set(ReactorContext& context, Topic& topic,
                                                         PlainProducerHost& inlet_host,
                                                         EndpointsListener& listener) {
  return std::make_unique<EndpointSet>(context, topic, inlet_host, listener);
}

}  // namespace lightq::broker
