/// A topic's endpoints: joins, leaves, and which connection serves which cursor. Layer: endpoint.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <lightq/protocol/control.hpp>

#include "broker/delivery/topic.hpp"
#include "broker/endpoint/endpoint.hpp"
#include "broker/endpoint/endpoint_shares.hpp"
#include "broker/endpoint/inlet.hpp"
#include "broker/endpoint/leaver.hpp"
#include "broker/endpoint/outlet_connection.hpp"
#include "broker/endpoint/reactor_context.hpp"
#include "broker/endpoint/unopened_endpoints.hpp"
#include "log/cursor_file.hpp"

namespace lightq::broker {

/// A join's outcome.
struct OpenedEndpoint {
  EndpointRecord record;
  std::string bind_uri;
  bool is_new = false;
  std::optional<protocol::Ticket> ticket;  ///< to enter by; not of raw consumers
};

/// Producers of a topic and transport share one endpoint; each `pull` or `sub` join has its own
/// (docs/adr/0004). The reactor's thread.
class EndpointSet final : public EndpointHost, public OutletHost {
 public:
  /// Told when there may be something to hand out, or room for producers.
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void consumers_changed() = 0;
    virtual void consumers_writable() = 0;
  };

  EndpointSet(ReactorContext& context, Topic& topic, InletHost& inlet_host, Listener& listener)
      : context_(context), topic_(topic), inlet_host_(inlet_host), listener_(listener) {}
  ~EndpointSet() override;

  /// `holder`: whose the ticket is to be. `connection_type`: `socket`, which is for raw consumers, only with
  /// `pull`, and where no ticket is asked for (else not_supported).
  Result<OpenedEndpoint> join(protocol::JoinType type, protocol::Transport transport,
                              protocol::ConnectionType connection_type = protocol::ConnectionType::zmq,
                              const TicketHolder& holder = {});
  /// Opens a remembered endpoint again, at its old port if that is free. `from`: a subscriber's stored
  /// position. After an error the endpoint and its cursor are kept, and it is opened as soon as that works.
  Result<void> reopen(const EndpointRecord& record, std::optional<Offset> from);
  /// Answers how many messages the endpoint's consumers were handed. Error: endpoint_not_found, also of one
  /// that `by` may not close.
  Result<std::uint64_t> leave(const std::string& bind_uri, const Leaver& by);

  /// Lets held producers go on, as many as find room. True if all did.
  bool resume_inlets();
  /// Tells held producers that ask (ZeroMQ heartbeats) that the broker is alive; `all`: also those that have
  /// not been seen to ask. Ends those that have gone and left nothing.
  void tend_held(bool all);
  /// Ends the connections of those who may not be here any more.
  void end_unpermitted();
  /// Closes everything; the ports rest. `tell`: report each as closed.
  void close_all(bool tell);
  /// Closes the endpoint that has lost this place to another, unless somebody has connected meanwhile.
  void make_room(const EndpointShares::Place& lost);
  void stop_accepting();
  /// Nothing that consumers were handed waits in this process.
  [[nodiscard]] bool all_sent();
  void release_idle_memory();

  /// Adds the counts and the subscribers' addresses.
  void add_stats(protocol::TopicStats& stats);
  /// Cursors of subscribers, by the names they are stored under (`subscriber_cursor_name`).
  [[nodiscard]] std::vector<log::NamedCursor> subscriber_cursors() const;
  static std::string subscriber_cursor_name(std::uint64_t endpoint_id) {
    return "sub:" + std::to_string(endpoint_id);
  }

 private:
  struct Entry {
    std::unique_ptr<Endpoint> endpoint;
    Subscriber* subscriber = nullptr;      // sub: keeps its cursor while nobody is connected
    std::uint64_t handed_to_the_gone = 0;  // messages sent to consumers that have disconnected
  };
  struct Consumer {
    Endpoint* endpoint = nullptr;
    Subscriber* subscriber = nullptr;  // sub, while attached
  };

  std::unique_ptr<Connection> make_connection(Endpoint& endpoint, UniqueFd descriptor) override;
  std::unique_ptr<OutletConnection> make_outlet(Endpoint& endpoint, UniqueFd descriptor);
  void connection_ending(Endpoint& endpoint, Connection& connection, const std::string& why) override;
  void endpoint_done(Endpoint& endpoint, const std::string& why) override;
  void accept_failed(Endpoint& endpoint) override;
  void endpoint_full(Endpoint& endpoint) override;
  void consumer_ready(OutletConnection& outlet) override;
  void consumer_unready(OutletConnection& outlet) override;
  void consumer_writable() override { listener_.consumers_writable(); }

  [[nodiscard]] OpenedEndpoint opened(const Endpoint& endpoint, bool is_new,
                                      const TicketHolder& holder) const;
  Result<ListeningSocket> listen(EndpointRecord& record, bool again, const Gate& gate);
  [[nodiscard]] std::optional<Error> no_place_for(std::uint64_t user) const;
  [[nodiscard]] std::optional<Error> no_connection_for(const TicketHolder& holder,
                                                       const Endpoint* shared) const;
  /// `joined_by`: whose join it is; nothing: it was there before and opens again.
  Result<Entry*> open(const EndpointRecord& record, std::optional<TicketHolder> joined_by);
  Result<void> open_again(const UnopenedEndpoints::One& unopened);
  Result<std::uint64_t> leave_unopened(const std::string& bind_uri, const Leaver& by);
  void close_unopened(const UnopenedEndpoints::One& unopened, bool tell);
  [[nodiscard]] Gate gate_for(EndpointRole role) const;
  Result<Entry*> start(EndpointRecord record, bool again, const Gate& gate);
  [[nodiscard]] EndpointShares::Place place_of(const EndpointRecord& record, std::uint64_t user) const;
  std::optional<Error> take_place(const EndpointRecord& record, std::optional<TicketHolder> joined_by,
                                  const Gate& gate);
  void give_place_back(std::uint64_t id);
  void say_refused(Limit limit, const Error& why);
  [[nodiscard]] std::string bind_uri_of(const EndpointRecord& record) const;
  [[nodiscard]] std::string ipc_path_of(const EndpointRecord& record) const;
  [[nodiscard]] std::string name_of(const Endpoint& endpoint) const;
  void close(std::uint64_t id, bool tell);
  void consumer_gone(OutletConnection& outlet);
  void release_subscriber(Consumer& consumer);
  [[nodiscard]] bool owns_place(const EndpointRecord& record, std::uint64_t user) const;

  ReactorContext& context_;
  Topic& topic_;
  InletHost& inlet_host_;
  Listener& listener_;
  std::map<std::uint64_t, Entry> entries_;  // by endpoint id
  UnopenedEndpoints unopened_{context_.loop, [this](const auto& unopened) { return open_again(unopened); }};
  std::unordered_map<OutletConnection*, Consumer> consumers_;
  std::size_t resume_turn_ = 0;
  std::uint64_t refused_connections_ = 0;
};

}  // namespace lightq::broker
