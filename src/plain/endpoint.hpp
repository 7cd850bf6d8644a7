/// A bound address through which producers' messages enter or consumers' messages leave: a listening socket
/// and its connections. Layer: plain.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "access/connection_authorizer.hpp"
#include "admission/quota.hpp"
#include "net/listener.hpp"
#include "topic/endpoint_record.hpp"
#include "topic/reactor_context.hpp"
#include "zmtp/zmtp_connection.hpp"

namespace lightq::broker {

class Endpoint;

/// The services of a topic that an endpoint uses. Thread: the reactor's.
class EndpointHost {
 public:
  virtual ~EndpointHost() = default;
  /// Makes the connection of an accepted peer: an inlet or an outlet, by the endpoint's role.
  virtual std::unique_ptr<ZmtpConnection> make_connection(Endpoint& endpoint, UniqueFd descriptor) = 0;
  /// Called before a connection ends. Removes the connection from delivery.
  virtual void connection_ending(Endpoint& endpoint, ZmtpConnection& connection, const std::string& why) = 0;
  /// Called when no peer was connected for the idle time, or when the last connection of a leaving endpoint
  /// has ended. Called from a timer or at the end of a connection: the host destroys the endpoint later.
  virtual void endpoint_done(Endpoint& endpoint, const std::string& why) = 0;
  virtual void accept_failed(Endpoint& endpoint) = 0;
  /// Called when connections are refused because the endpoint's limit is reached, at most once in
  /// said_again_after.
  virtual void endpoint_full(Endpoint& endpoint) = 0;
};

/// Owns a listening socket and the connections that it has accepted. Counts open connections by user, and
/// ends when it was unused for the idle time. Thread: the reactor's.
class Endpoint final : public ZmtpConnection::Owner, public Listener::Owner {
 public:
  /// Lifetime: `context` and `host` outlive the endpoint.
  Endpoint(ReactorContext& context, EndpointHost& host, EndpointRecord record, ListeningSocket socket,
           std::string bind_uri, const ConnectionAuthorizer& authorizer);
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;
  ~Endpoint() override;

  /// Starts to accept connections. Returns false if the loop could not watch the socket.
  bool start();

  [[nodiscard]] const EndpointRecord& record() const { return record_; }
  /// The address that clients receive.
  [[nodiscard]] const std::string& bind_uri() const { return bind_uri_; }
  /// Returns the number of connections with a completed handshake that the peer has not closed.
  [[nodiscard]] std::size_t connected() const;
  /// Returns the error limit_reached, and counts a refusal, if a connection of the user would be refused now.
  /// Returns nothing if it would be accepted.
  [[nodiscard]] std::optional<Error> no_place_for(std::uint64_t user) const;
  /// Called when another join was answered with this endpoint. Restarts its idle time if nobody is connected.
  void touch();
  /// Accepts no more connections. The endpoint is done when the last connection has ended, or after the idle
  /// time.
  void leave();
  [[nodiscard]] bool leaving() const { return leaving_; }
  /// Returns true if a peer is or was connected, or if the endpoint was opened again after a start.
  [[nodiscard]] bool was_used() const { return was_used_; }
  /// Called when the endpoint was opened again or a peer has connected: counts it as used, because its
  /// clients may reconnect.
  void expect_back();
  /// Returns the use of the endpoint's port, by which PortBook chooses and releases ports.
  [[nodiscard]] PortUse use() const {
    return {record_.topic, record_.role, record_.connection_type, !authorizer_.is_open()};
  }
  void stop_accepting();
  /// Ends every connection, and accepts no more.
  void shut();
  /// Ends the connections of users who have lost the right to be connected.
  void end_unpermitted();
  void for_each_connection(const std::function<void(ZmtpConnection&)>& call);

 private:
  void connection_opened(Connection& connection) override;
  void connection_closed(Connection& connection, const std::string& why) override;
  [[nodiscard]] const ConnectionAuthorizer* authorizer() const override { return &authorizer_; }
  [[nodiscard]] std::chrono::milliseconds handshake_time() const override {
    return context_.settings.unauthenticated.handshake_time;
  }
  [[nodiscard]] bool has_room() override;
  [[nodiscard]] bool has_room_for(const TicketHolder& holder) override;
  [[nodiscard]] bool lets_in_raw();
  /// Returns the user for whom an open connection counts. A raw consumer counts as an unauthenticated client.
  [[nodiscard]] std::uint64_t sharer_of(const ZmtpConnection& connection) const;
  void handshake_late() override { count(context_.settings.limits_reached, Limit::handshake_ms); }
  [[nodiscard]] bool crowded() override { return context_.accepts.crowded(EventLoop::Clock::now()); }
  [[nodiscard]] BufferBudget* buffers() override { return &context_.buffers; }
  bool accepted(UniqueFd descriptor) override;
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
  const ConnectionAuthorizer authorizer_;
  std::unordered_map<Connection*, std::unique_ptr<ZmtpConnection>> connections_;
  Quota<std::uint64_t> open_;  // connections with a completed handshake, by user
  bool leaving_ = false;
  bool was_used_ = false;
  bool shut_ = false;
  EventLoop::TimerId idle_timer_ = 0;
  EventLoop::Clock::time_point said_full_{};
};

}  // namespace lightq::broker
