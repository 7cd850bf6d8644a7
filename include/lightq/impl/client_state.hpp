/// The state that a client shares with its producers and consumers: how to send requests to the broker, and
/// how to join topics. Layer: client.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include <zmq.hpp>

#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>
#include <lightq/curve_identity.hpp>
#include <lightq/detail/exposure.hpp>
#include <lightq/detail/membership.hpp>
#include <lightq/detail/session_address.hpp>
#include <lightq/detail/transport_choice.hpp>
#include <lightq/impl/control_connection.hpp>
#include <lightq/impl/request_credentials.hpp>
#include <lightq/options.hpp>

namespace lightq::inline v1 {

namespace detail {

/// Errors: invalid_argument.
inline Result<TopicName> topic_name_of(std::string_view text) {
  if (std::optional<TopicName> name = TopicName::parse(text)) return std::move(*name);
  return Error{
      ErrorCode::invalid_argument,
      "'" + std::string(text) +
          "' is not a topic name: it must have 1 to 128 of A-Z a-z 0-9 . _ -, and not begin with . or -"};
}

}  // namespace detail

/// The keys of a client on its control connection and at data endpoints. Null: nothing is encrypted.
struct ClientIdentities {
  std::shared_ptr<const CurveIdentity> control;
  std::shared_ptr<const CurveIdentity> data;
};
/// Makes the identities that the options ask for; both are null without a server key. Errors: those of
/// CurveIdentity.
inline Result<ClientIdentities> client_identities_of(const ClientOptions& options) {
  if (options.server_key.empty()) return ClientIdentities{};
  auto made = CurveIdentity::make(options.server_key);
  if (!made) return made.error();
  if (options.client_key_file.empty()) return ClientIdentities{*made, *made};
  auto own = CurveIdentity::of_file(options.server_key, options.client_key_file);
  if (!own) return own.error();
  return ClientIdentities{std::move(*own), std::move(*made)};
}

/// The state that a client shares with its producers and consumers. Immutable once the client is connected,
/// except for the connection, which has its own lock. Thread: any.
struct ClientState {
  ClientState(std::shared_ptr<zmq::context_t> shared_context, std::string uri, ClientOptions chosen,
              ClientIdentities identities, bool is_exposed)
      : context(shared_context),
        connection(std::move(shared_context), std::move(uri), std::move(identities.control)),
        options(std::move(chosen)),
        identity(std::move(identities.data)),
        exposed(is_exposed) {}

  [[nodiscard]] bool asks_as_admin() const {
    return options.user.user_id.empty() && !options.admin.user_id.empty();
  }
  /// Returns the credentials for requests that do not concern one topic: those of the administrator, else
  /// those of the user.
  [[nodiscard]] const Credentials& manager() const {
    return options.admin.user_id.empty() ? options.user : options.admin;
  }
  [[nodiscard]] const Credentials& asker() const { return asks_as_admin() ? options.admin : options.user; }
  Result<EndpointAddress> join(const TopicName& topic, protocol::JoinType type, Transport transport) {
    protocol::Join request{asker(), topic, type, protocol::ConnectionType::zmq, transport, asks_as_admin()};
    if (identity != nullptr) request.client_key = curve_key_of_z85(identity->public_key());
    auto reply = ask_for<protocol::JoinReply>(request);
    if (!reply) return reply.error();
    if (Result<void> same = check_encrypted(*reply); !same) return same.error();
    if (identity == nullptr && reply->ticket)
      if (Result<void> kept = check_private(reply->bind_uri); !kept) return kept.error();
    return EndpointAddress{std::move(reply->bind_uri), std::move(reply->ticket), identity};
  }
  /// Checks that a join's reply names the broker's own key if this client encrypts: its data endpoints belong
  /// to the broker. Error: internal.
  [[nodiscard]] Result<void> check_encrypted(const protocol::JoinReply& reply) const {
    if (identity == nullptr || reply.server_key == identity->server_key()) return {};
    return Error{ErrorCode::internal,
                 "the broker at " + connection.uri() +
                     " encrypts, but its reply has no key or another key for its endpoint " + reply.bind_uri};
  }
  /// Checks that a ticket for `uri` may be sent unencrypted: `uri` is on this machine, or the options say
  /// `insecure`. Error: invalid_argument.
  [[nodiscard]] Result<void> check_private(const std::string& uri) const {
    if (options.insecure || stays_on_machine(uri)) return {};
    return exposed_error("the broker's endpoint at " + uri);
  }
  /// Returns the choice of transports for a session.
  [[nodiscard]] TransportChoice choice(std::optional<Transport> asked_for) const {
    return {asked_for, identity == nullptr && stays_on_machine(connection.uri())};
  }
  Result<SessionAddress> join_session(const TopicName& topic, protocol::JoinType type, ConnectionType over,
                                      TransportChoice& choice) {
    const Transport first = choice.next(std::chrono::steady_clock::now());
    Result<SessionAddress> joined = join_session(topic, type, over, first);
    if (first == Transport::tcp) return joined;
    if (joined ? choice.goes_on_with_tcp(joined->uri) : choice.goes_on_with_tcp(joined.error()))
      return join_session(topic, type, over, Transport::tcp);
    if (joined) joined->opened = choice.answered();
    return joined;
  }
  Result<SessionAddress> join_session(const TopicName& topic, protocol::JoinType type, ConnectionType over,
                                      Transport transport) {
    auto reply = ask_for<protocol::JoinReply>(
        protocol::Join{asker(), topic, type, over, transport, asks_as_admin(), protocol::Delivery::session});
    if (!reply) return reply.error();
    if (!reply->ticket)
      return Error{ErrorCode::internal, "the broker at " + connection.uri() + " gave no ticket"};
    SessionAddress address{std::move(reply->bind_uri), reply->ticket->text()};
    if (over == ConnectionType::zmq) {
      if (Result<void> same = check_encrypted(*reply); !same) return same.error();
      if (identity == nullptr)
        if (Result<void> kept = check_private(address.uri); !kept) return kept.error();
      address.over_zmq = true;
      address.identity = identity;
      if (identity != nullptr) address.context = context;
      return address;
    }
    if (transport == Transport::ipc) return address;
    if (reply->tls) address.certificate_sha256 = std::move(reply->tls->certificate_sha256);
    const bool demanded = reply->tls || identity != nullptr;
    if (address.certificate_sha256.empty() && demanded) {
      return Error{ErrorCode::not_supported, "the broker at " + connection.uri() +
                                                 " sent no certificate for sessions over TCP, and this "
                                                 "client does not use them without encryption"};
    }
    if (!reply->tls)
      if (Result<void> kept = check_private(address.uri); !kept) return kept.error();
    return address;
  }
  Result<std::uint64_t> leave(const TopicName& topic, const std::string& bind_uri) {
    auto reply = ask_for<protocol::OkReply>(protocol::Leave{asker(), topic, bind_uri, asks_as_admin()});
    if (!reply) return reply.error();
    return reply->messages_handed.value_or(0);
  }
  /// Sends a request with the credentials that it has. Errors: the broker's, with the topic, the user and the
  /// broker named; those of ControlConnection::ask; unauthorized_access (the request has no credentials).
  Result<protocol::Reply> ask(const protocol::Request& request) {
    if (context == nullptr) return Error{ErrorCode::closed, "the client was moved from"};
    const bool harmless =
        std::holds_alternative<protocol::Ping>(request) || std::holds_alternative<protocol::Version>(request);
    if (exposed && !harmless && !options.insecure) return exposed_error("the broker at " + connection.uri());
    const protocol::Credentials* const shown = detail::credentials_of(request);
    if (shown != nullptr && shown->user_id.empty() && detail::needs_credentials(request))
      return detail::no_credentials_error(request);
    Result<protocol::Reply> reply = connection.ask(request, options.request_timeout);
    if (!reply)
      return detail::with_context(detail::with_user(reply.error(), request), request, connection.uri());
    return reply;
  }
  template <typename T>
  Result<T> ask_for(const protocol::Request& request) {
    Result<protocol::Reply> reply = ask(request);
    if (!reply) return reply.error();
    if (T* expected = std::get_if<T>(&*reply)) return std::move(*expected);
    return Error{ErrorCode::internal, "the broker at " + connection.uri() + " sent an unexpected reply to " +
                                          std::string(protocol::command_of(request))};
  }

  std::shared_ptr<zmq::context_t> context;  // null: the state of clients after a move
  ControlConnection connection;
  ClientOptions options;                                // final once the client is connected
  const std::shared_ptr<const CurveIdentity> identity;  // of data sockets; null: nothing is encrypted
  const bool exposed;                                   // requests go to another machine unencrypted
};

}  // namespace lightq::inline v1
