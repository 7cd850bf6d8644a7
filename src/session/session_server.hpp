/// The sessions of one reactor's topics: their listeners, and the checks of their tickets. Layer: session.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include <lightq/protocol/control.hpp>

#include "access/connection_authorizer.hpp"
#include "admission/quota.hpp"
#include "net/listener.hpp"
#include "session/session_connection.hpp"
#include "topic/reactor_context.hpp"

namespace lightq::broker {

/// Owns a reactor's sessions and one listener for each transport and carrier. A listener is opened at its
/// first join, or earlier by open_doors(), and stays as long as the broker runs.
/// Thread: the reactor's. The constructor and destructor run while that thread does not.
class SessionServer final : public ZmtpConnection::Owner, private SessionConnection::Host {
 public:
  /// The address and credentials with which a client connects.
  struct Joined {
    std::string bind_uri;
    protocol::Ticket ticket;
    std::optional<protocol::Tls> tls;  ///< nothing: not encrypted
  };
  using FindTopic = std::function<TopicRuntime*(TopicId)>;

  /// `name` is the reactor's, for the name of its socket file. Lifetime: `context` outlives the server.
  SessionServer(ReactorContext& context, FindTopic find_topic, const SessionSettings& settings,
                std::string name);
  SessionServer(const SessionServer&) = delete;
  SessionServer& operator=(const SessionServer&) = delete;
  ~SessionServer() override;

  /// Returns the address to connect to, and a ticket for `holder`. Errors: io_error, address_in_use,
  /// invalid_argument (the path of the socket file is too long).
  Result<Joined> join(const Grant& grant, protocol::Transport transport, SessionCarrier carrier,
                      const TicketHolder& holder);
  /// Opens the listeners over TCP, so that a later join does not depend on a free port. A listener that
  /// cannot be opened now is opened at a join.
  void open_doors();
  /// Ends channels and tickets that are no longer permitted, in the sessions that have shown tickets of the
  /// user. Called after the user's rights have changed.
  void look_at_rights_of(std::uint64_t user);
  /// Ends channels and tickets that are no longer permitted, in the sessions that have shown tickets for the
  /// topic. Called after the rights of the topic's own user have changed.
  void look_at_rights_on(TopicId topic);
  /// Says goodbye to all sessions, and accepts no more.
  void begin_stop();

 private:
  using Way = std::pair<protocol::Transport, SessionCarrier>;
  /// A listening socket.
  struct SessionListener final : public Listener::Owner {
    SessionListener(SessionServer& of, ListeningSocket socket, SessionCarrier of_frames,
                    const TlsContext* encryption, std::string uri)
        : server(of),
          carrier(of_frames),
          tls(encryption),
          bind_uri(std::move(uri)),
          listener(of.context_.loop, std::move(socket), *this, of.context_.accepts) {}
    bool accepted(UniqueFd descriptor) override {
      return !server.begin_session(std::move(descriptor), carrier, tls);
    }
    void accept_failed() override;
    SessionServer& server;
    const SessionCarrier carrier;
    const TlsContext* const tls;  // null: not encrypted
    const std::string bind_uri;
    Listener listener;
  };

  Result<SessionListener*> open_listener(Way way);
  [[nodiscard]] const TlsContext* encryption_of(Way way) const;
  [[nodiscard]] const TopicName* name_of(TopicId topic) const;
  bool begin_session(UniqueFd descriptor, SessionCarrier carrier, const TlsContext* tls);
  void connection_opened(Connection& /*connection*/) override {}
  void connection_closed(Connection& connection, const std::string& why) override;
  /// Returns the authorization for ZeroMQ handshakes, which admits any key: the ticket is in the session's
  /// first frame.
  [[nodiscard]] const ConnectionAuthorizer* authorizer() const override {
    return authorizer_.curve() == nullptr ? nullptr : &authorizer_;
  }
  [[nodiscard]] std::chrono::milliseconds handshake_time() const override {
    return context_.settings.unauthenticated.handshake_time;
  }
  std::optional<Permit> permit_of(std::string_view ticket) override;
  [[nodiscard]] bool is_good(const Permit& permit, const TopicRuntime& topic,
                             const GroupScope& scope) const override;
  [[nodiscard]] bool may_manage(const Permit& permit, const TopicRuntime& topic,
                                const GroupScope& scope) const override;
  [[nodiscard]] bool permits(const Permit& permit, const TopicName& name, const TopicRuntime* topic,
                             const GroupScope& scope) const;
  TopicRuntime* find_topic(TopicId topic) override { return find_topic_(topic); }
  std::string topic_name(TopicId topic) override {
    const TopicName* const name = name_of(topic);
    return name == nullptr ? std::string() : std::string(name->text());
  }
  [[nodiscard]] BufferBudget* buffers() override { return &context_.buffers; }
  void handshake_late() override { limit_reached(Limit::handshake_ms); }
  [[nodiscard]] bool crowded() override { return context_.accepts.crowded(EventLoop::Clock::now()); }
  std::string_view admit(std::uint64_t user) override;
  TurnQueue* turns() override { return &context_.turns; }
  void limit_reached(Limit limit) override { count(context_.settings.limits_reached, limit); }
  std::string_view admit_also(std::uint64_t user) override;
  [[nodiscard]] std::string_view take_place(std::uint64_t user, std::size_t taken);
  void give_back(const SessionConnection& session);
  void session_opened(SessionConnection& session) override;
  [[nodiscard]] std::uint64_t message_bytes_max() const override {
    return context_.settings.message_bytes_max;
  }
  [[nodiscard]] const SessionSettings& session_settings() const override { return settings_; }

  ReactorContext& context_;
  const FindTopic find_topic_;
  const SessionSettings settings_;
  const std::string name_;
  ConnectionAuthorizer authorizer_;  // for sessions over ZeroMQ
  std::map<Way, std::unique_ptr<SessionListener>> listeners_;
  std::unordered_map<Connection*, std::unique_ptr<SessionConnection>> sessions_;
  Quota<std::uint64_t> admitted_of_;  // sessions by user; one counts for each of its users
  std::size_t admitted_ = 0;          // those of sessions_ that are admitted
  std::uint64_t next_session_ = 1;
  bool stopping_ = false;
};

}  // namespace lightq::broker
