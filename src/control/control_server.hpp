/// The control socket: sends exactly one reply to each request. Layer: control.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <lightq/base/result.hpp>
#include <lightq/protocol/control.hpp>

#include "access/connection_authorizer.hpp"
#include "admission/eviction_queue.hpp"
#include "admission/unauthenticated_limits.hpp"
#include "base/log_sink.hpp"
#include "control/answer.hpp"
#include "control/client_bounds.hpp"
#include "control/control_connection.hpp"
#include "control/control_limits.hpp"
#include "net/event_loop.hpp"
#include "net/handshake_queue.hpp"
#include "net/listener.hpp"

namespace lightq::broker {

/// A ZeroMQ ROUTER for REQ clients (with the empty delimiter) and DEALER clients (with or without it). Every
/// message receives a reply, and no message ends the server. The server stops reading from a client that
/// leaves 64 KiB of replies unread. If unread replies take too much memory, the client with most of them is
/// closed. A reply to a disconnected client is dropped. Thread: everything on the loop's thread.
class ControlServer final : public Listener::Owner,
                            public ZmtpConnection::Owner,
                            public ControlConnection::Requests {
 public:
  using Answer = broker::Answer;
  using Handle = std::function<void(protocol::Request, Answer)>;

  /// The request rates per source and per connection, and the clock. Tests replace the clock.
  struct Pace {
    std::size_t requests_per_second = limits::requests_per_second_default;
    std::size_t requests_free = limits::requests_per_second_free;  ///< for each connection
    std::function<Tokens::Time()> now = EventLoop::Clock::now;
  };

  /// Binds the control socket. `uri`: tcp://HOST:PORT (HOST a name, an address, or * for all; port 0: any
  /// free one) or ipc://PATH. The address is taken from this call on; `handle` is called for each request
  /// after `accept`. May wait for a name server. Errors: address_in_use, invalid_argument (no such address),
  /// io_error.
  static Result<std::unique_ptr<ControlServer>> open(EventLoop& loop, LogSink& sink, const std::string& uri,
                                                     Handle handle,
                                                     const UnauthenticatedLimits& unauthenticated = {},
                                                     Pace pace = default_pace(),
                                                     const ControlLimits& control_limits = {});
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;
  ~ControlServer() override;

  /// Returns the bound address in numeric form, with the actual port.
  [[nodiscard]] const std::string& bound_uri() const { return bound_uri_; }
  /// Returns the number of requests refused since the start because their source asked too much.
  [[nodiscard]] std::uint64_t throttled() const { return throttled_; }
  /// Returns the number of connections.
  [[nodiscard]] std::size_t connections() const { return clients_.size(); }
  /// Returns the number of unauthenticated connections that were evicted to make room for others.
  [[nodiscard]] std::uint64_t evicted() const { return handshakes_.evicted(); }
  /// Counts refusals in `counts`, which must outlive this object. Requires: `accept` was not called.
  void count_in(LimitCounts& counts) {
    counts_ = &counts;
    accepts_.count_in(counts);
    second_accepts_.count_in(counts);
  }
  /// Returns true if every reply so far has been passed to the operating system.
  [[nodiscard]] bool all_sent() const;
  /// Sets which peers may connect, and whether connections are encrypted. Once `accept` was called, only the
  /// peers that may connect can change; connected peers stay.
  void guard(const ConnectionAuthorizer& authorizer) { authorizer_ = authorizer; }
  /// Changes the limits that can change while the server runs: the rate, the number of connections, and the
  /// unread replies. They apply from the next request on.
  void change_limits(const ControlLimits& control_limits, std::size_t requests_per_second);
  /// Listens on a second socket. Its connections are accepted independently of those of the first.
  /// Requires: `accept` was not called.
  void listen_also(ListeningSocket socket);
  /// Begins to accept connections and to read requests.
  Result<void> accept();

 private:
  static Pace default_pace() { return {}; }
  ControlServer(EventLoop& loop, LogSink& sink, Handle handle, ListeningSocket socket, std::string bound_uri,
                const UnauthenticatedLimits& unauthenticated, Pace pace, const ControlLimits& control_limits);
  bool accepted(UniqueFd descriptor) override;
  void accept_failed() override;
  void connection_opened(Connection& connection) override;
  void connection_closed(Connection& connection, const std::string& why) override;
  [[nodiscard]] const ConnectionAuthorizer* authorizer() const override {
    return authorizer_.curve() == nullptr ? nullptr : &authorizer_;
  }
  [[nodiscard]] std::chrono::milliseconds handshake_time() const override { return handshake_time_; }
  void handshake_late() override { limit_reached(Limit::handshake_ms); }
  [[nodiscard]] bool crowded() override { return accepts_.crowded(EventLoop::Clock::now()); }
  void limit_reached(Limit limit) override { count(counts_, limit); }
  [[nodiscard]] bool is_within_rate(ControlConnection& client);
  [[nodiscard]] std::optional<Error> fault_of(const ControlConnection::Envelope& from,
                                              const ControlConnection::Message& message) const;
  void count_unparsed(const Error& error, std::string_view body);
  void requested(const ControlConnection::Envelope& from, const ControlConnection::Message& message) override;
  void unread_changed(ControlConnection& client, std::size_t before) override;
  void give_up(ControlConnection& client, Limit reached);
  void make_known(ControlConnection& client, const std::string& owner);
  /// Closes the client with most unread bytes, of one source or of all (null). Returns false if no client of
  /// this server has any.
  bool give_up_least_reading(const std::string* source);
  /// A request that is being handled.
  class Course;
  friend class Course;
  /// Returns the reason why the source may make no further request now; nothing if it may.
  [[nodiscard]] std::optional<Error> too_many_under_way(const std::string& source) const;
  std::optional<Error> asked_by(Course& course, const AskerId& asker);
  void dispatch(const ControlConnection::Envelope& from, const RequestSource& source,
                protocol::Request request);
  void request_ended(std::uint64_t client);
  void note_use(const ControlConnection& client);
  [[nodiscard]] std::optional<Error> too_much_answered(Course& course, const std::string& owner);
  /// Sends a reply and returns its length in bytes.
  std::size_t answer(const ControlConnection::Envelope& to, const protocol::Reply& reply);

  EventLoop& loop_;
  LogSink& sink_;
  const Handle handle_;
  const Pace pace_;
  ControlLimits limits_;
  ClientBounds bounds_;
  const std::string bound_uri_;
  ConnectionAuthorizer authorizer_;
  const std::chrono::milliseconds handshake_time_;
  AcceptBudget accepts_;
  AcceptBudget second_accepts_;
  Listener listener_;
  std::optional<Listener> second_listener_;
  std::vector<std::byte> scratch_;
  HandshakeQueue handshakes_;  // connections without a permitted request
  // Connections over which a request was permitted, by the user that it was last permitted, or by source if
  // there was no user. A connection whose replies are all sent is evicted before one with unread replies, and
  // one with a request under way never.
  EvictionQueue<std::string> known_;
  std::unordered_map<std::uint64_t, std::unique_ptr<ControlConnection>> clients_;
  std::uint64_t next_client_ = 1;
  std::uint64_t throttled_ = 0;
  LimitCounts* counts_ = nullptr;
};

}  // namespace lightq::broker
