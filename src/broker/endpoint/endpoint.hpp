/// A bound address where producers' messages enter or consumers' leave: a listening socket and its
/// connections. Layer: endpoint.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "broker/endpoint/connection.hpp"
#include "broker/endpoint/endpoint_record.hpp"
#include "broker/endpoint/gate.hpp"
#include "broker/endpoint/listener.hpp"
#include "broker/endpoint/reactor_context.hpp"

namespace lightq::broker {

class Endpoint;

/// What an endpoint needs of its topic's host. The reactor's thread.
class EndpointHost {
 public:
  virtual ~EndpointHost() = default;
  /// A connection for an accepted peer: an inlet or an outlet, by the endpoint's role.
  virtual std::unique_ptr<Connection> make_connection(Endpoint& endpoint, UniqueFd descriptor) = 0;
  /// Before a connection goes: takes it out of delivery.
  virtual void connection_ending(Endpoint& endpoint, Connection& connection, const std::string& why) = 0;
  /// Nobody has been connected for the idle time, or the one who left has gone. Called from a timer or at the
  /// end of a connection: the host destroys the endpoint later.
  virtual void endpoint_done(Endpoint& endpoint, const std::string& why) = 0;
  virtual void accept_failed(Endpoint& endpoint) = 0;
  /// Connections are turned away, for there are as many as there may be. Told once in a while.
  virtual void endpoint_full(Endpoint& endpoint) = 0;
};

/// The reactor's thread.
class Endpoint final : public Connection::Owner, public Listener::Owner {
 public:
  /// `context` and `host` outlive it.
  Endpoint(ReactorContext& context, EndpointHost& host, EndpointRecord record, ListeningSocket socket,
           std::string bind_uri, const Gate& gate);
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;
  ~Endpoint() override;

  /// Begins to accept. False: the socket could not be watched.
  bool start();

  [[nodiscard]] const EndpointRecord& record() const { return record_; }
  /// The address as clients are told it.
  [[nodiscard]] const std::string& bind_uri() const { return bind_uri_; }
  /// Completed handshakes whose peer is still there.
  [[nodiscard]] std::size_t connected() const;
  /// Why a connection of the user would be turned away now: limit_reached, and counted. Nothing: it would
  /// not.
  [[nodiscard]] std::optional<Error> no_place_for(std::uint64_t user) const;
  /// Another join was answered with this endpoint: it gets its whole idle time again.
  void touch();
  /// Accepts nobody any more, and is done once the last connection is gone.
  void leave();
  [[nodiscard]] bool leaving() const { return leaving_; }
  /// Somebody is connected, or has been.
  [[nodiscard]] bool was_used() const { return was_used_; }
  /// It is there again, and who was connected to it may come back.
  void expect_back();
  /// What its port is listened on for.
  [[nodiscard]] PortUse use() const {
    return {record_.topic, record_.role, record_.connection_type, !gate_.is_open()};
  }
  void stop_accepting();
  /// Ends every connection, and accepts nobody any more.
  void shut();
  /// Ends the connections of those who may not be here any more.
  void end_unpermitted();
  void for_each_connection(const std::function<void(Connection&)>& call);

 private:
  void connection_opened(Connection& connection) override;
  void connection_closed(Connection& connection, const std::string& why) override;
  [[nodiscard]] const Gate* gate() const override { return &gate_; }
  [[nodiscard]] std::chrono::milliseconds handshake_time() const override {
    return context_.settings.strangers.handshake_time;
  }
  [[nodiscard]] bool has_room() override;
  [[nodiscard]] bool has_room_for(const TicketHolder& holder) override;
  [[nodiscard]] bool lets_in_raw();
  /// As whom it counts, once its handshake is through.
  [[nodiscard]] std::uint64_t sharer_of(const Connection& connection) const;
  void handshake_late() override { count(context_.settings.limits_reached, Limit::handshake_ms); }
  [[nodiscard]] bool crowded() override { return context_.accepts.crowded(EventLoop::Clock::now()); }
  [[nodiscard]] BufferBudget* buffers() override { return &context_.buffers; }
  void accepted(UniqueFd descriptor) override;
  void accept_failed() override {
    context_.handshakes.make_room();
    host_.accept_failed(*this);
  }
  void arm_idle_timer();

  ReactorContext& context_;
  EndpointHost& host_;
  const EndpointRecord record_;
  Listener listener_;
  const std::string bind_uri_;
  const Gate gate_;
  std::unordered_map<Connection*, std::unique_ptr<Connection>> connections_;
  std::size_t open_ = 0;                                    // of connections_, handshake completed
  std::unordered_map<std::uint64_t, std::size_t> open_of_;  // of these, by user; those that have any
  bool leaving_ = false;
  bool was_used_ = false;
  bool shut_ = false;
  EventLoop::TimerId idle_timer_ = 0;
  EventLoop::Clock::time_point said_full_{};
};

}  // namespace lightq::broker
