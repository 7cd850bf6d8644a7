/// The sessions of one reactor's topics: the sockets they connect to, and who may. Layer: session.
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

#include "broker/endpoint/listener.hpp"
#include "broker/endpoint/reactor_context.hpp"
#include "broker/session/session_connection.hpp"

namespace lightq::broker {

/// One address a transport and carrier of frames, opened at the first join and then there as long as the
/// broker. The reactor's thread, but for the constructor and the destructor, which run when that one does
/// not.
class SessionServer final : public Connection::Owner, private SessionConnection::Host {
 public:
  /// A session's way in.
  struct Joined {
    std::string bind_uri;
    protocol::Ticket ticket;
  };
  using FindTopic = std::function<HostedTopic*(TopicId)>;

  /// `context` outlives it. `name`: of this reactor, for its socket file.
  SessionServer(ReactorContext& context, FindTopic find_topic, const SessionSettings& settings,
                std::string name);
  SessionServer(const SessionServer&) = delete;
  SessionServer& operator=(const SessionServer&) = delete;
  ~SessionServer() override;

  /// Where to connect to, and the ticket for it. Errors: io_error, address_in_use,
  /// invalid_argument (the path of the socket file is too long).
  Result<Joined> join(const Grant& grant, protocol::Transport transport, SessionCarrier carrier);
  /// Says goodbye to everybody, and accepts nobody any more.
  void begin_stop();

 private:
  using Way = std::pair<protocol::Transport, SessionCarrier>;
  /// A listening socket.
  struct Door final : public Listener::Owner {
    Door(SessionServer& of, ListeningSocket socket, SessionCarrier of_frames, std::string uri,
         std::string socket_path)
        : server(of),
          carrier(of_frames),
          bind_uri(std::move(uri)),
          path(std::move(socket_path)),
          listener(of.context_.loop, std::move(socket), *this, of.context_.accepts) {}
    void accepted(UniqueFd descriptor) override { server.accepted(std::move(descriptor), carrier); }
    void accept_failed() override;
    SessionServer& server;
    const SessionCarrier carrier;
    const std::string bind_uri;
    const std::string path;  // of a Unix socket's file
    Listener listener;
  };

  Result<Door*> door(Way way);
  void accepted(UniqueFd descriptor, SessionCarrier carrier);
  void connection_opened(Connection& /*connection*/) override {}
  void connection_closed(Connection& connection, const std::string& why) override;
  [[nodiscard]] const Gate* gate() const override { return nullptr; }
  std::optional<Grant> grant_of(std::string_view ticket) override;
  HostedTopic* find_topic(TopicId topic) override { return find_topic_(topic); }
  void session_opened(SessionConnection& session) override;
  [[nodiscard]] std::uint64_t message_bytes_max() const override {
    return context_.settings.message_bytes_max;
  }
  [[nodiscard]] const SessionSettings& session_settings() const override { return settings_; }

  ReactorContext& context_;
  const FindTopic find_topic_;
  const SessionSettings settings_;
  const std::string name_;
  std::map<Way, std::unique_ptr<Door>> doors_;
  std::unordered_map<Connection*, std::unique_ptr<SessionConnection>> sessions_;
  std::uint64_t next_session_ = 1;
  bool stopping_ = false;
};

}  // namespace lightq::broker
