/// Connects clients: finds the broker, the credentials and the keys. Layer: client.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <zmq.hpp>

#include <lightq/base/result.hpp>
#include <lightq/base/shown_uri.hpp>
#include <lightq/detail/deadline.hpp>
#include <lightq/detail/exposure.hpp>
#include <lightq/detail/zmq_socket.hpp>
#include <lightq/discovery.hpp>
#include <lightq/impl/client_state.hpp>
#include <lightq/impl/control_connection.hpp>
#include <lightq/options.hpp>
#include <lightq/zmq_error.hpp>

namespace lightq::inline v1 {

/// Makes the state of one client. Used by Client::connect during its call; each attempt to connect begins
/// with the given options, because discovery changes them. Thread: any.
class ClientConnector {
 public:
  explicit ClientConnector(ClientOptions options) : options_(std::move(options)) {}

  /// Connects to the broker at `uri`. Errors: those of Client::connect.
  [[nodiscard]] Result<std::shared_ptr<ClientState>> connect(const std::string& uri) const {
    return attempt(uri, options_.request_timeout, ControlConnection::Absence::fails);
  }
  /// Connects to the broker that discovery finds. Searches until the request timeout, because the broker may
  /// be starting. Errors: those of Client::connect.
  [[nodiscard]] Result<std::shared_ptr<ClientState>> find() const {
    using Absence = ControlConnection::Absence;
    const auto deadline = deadline_after(options_.request_timeout);
    for (Timeout patience{100};; patience *= 2) {
      const Result<ControlPlace> place = discover_control_place(options_.data_dir);
      if (!place) return place.error();
      const Timeout left = time_left(deadline);
      if (place->named) return attempt(place->uri, std::max(left, patience), Absence::fails);
      if (place->certain) return attempt(place->uri, std::max(left, patience), Absence::waits);
      auto made = attempt(place->uri, std::min(left, patience), Absence::waits);
      if (made || made.error().code != ErrorCode::timeout) return made;
      if (time_left(deadline).count() == 0)
        return no_answer_error(protocol::Ping{}, place->uri, options_.request_timeout);
    }
  }

 private:
  /// Makes a client's state for the broker at `uri`, and waits up to `patience` for its first reply.
  [[nodiscard]] Result<std::shared_ptr<ClientState>> attempt(const std::string& uri, Timeout patience,
                                                             ControlConnection::Absence absence) const {
    if (const std::string shown = shown_uri(uri); shown != uri) {  // before the host is looked up
      return Error{ErrorCode::invalid_argument, "cannot connect to '" + shown +
                                                    "': an address must not contain a user or password (the "
                                                    "address of a broker is tcp://HOST:PORT or ipc://PATH)"};
    }
    ClientOptions options = options_;
    std::optional<detail::OwnerSocket> socket;
    if (options.discover_credentials) {
      auto credentials = discover_credentials(uri, options);
      if (!credentials) return credentials.error();
      socket = std::move(*credentials);
      if (Result<void> found = discover_server_key(uri, options); !found) return found.error();
      options.insecure = options.insecure || discover_insecure();
      if (options.client_key_file.empty())
        options.client_key_file = environment_value("LIGHTQ_CLIENT_KEY_FILE");
    }
    const bool exposed = options.server_key.empty() && !stays_on_machine(uri);
    const bool knows_secrets = !options.user.password.empty() || !options.admin.password.empty();
    if (exposed && knows_secrets && !options.insecure) return exposed_error("the broker at " + uri);
    auto identities = client_identities_of(options);
    if (!identities) return identities.error();
    auto context = context_of(options);
    if (!context) return context.error();
    auto state = std::make_shared<ClientState>(std::move(*context), uri, std::move(options),
                                               std::move(*identities), exposed);
    if (socket) state->connection.go_through(std::move(*socket));
    auto answered = state->connection.ask(protocol::Ping{}, patience, absence);
    if (!answered) return answered.error();
    if (Result<void> settled = settle_credentials(*state); !settled) return settled.error();
    return state;
  }

  /// Returns the program's context, or a new one. Error: io_error.
  static Result<std::shared_ptr<zmq::context_t>> context_of(const ClientOptions& options) {
    if (options.context != nullptr)
      return std::shared_ptr<zmq::context_t>(options.context, [](zmq::context_t*) {});
    try {
      return std::shared_ptr<zmq::context_t>(make_zmq_context());
    } catch (const zmq::error_t& error) {
      return zmq_error("cannot create a ZeroMQ context", error.num());
    }
  }

  /// Searches for credentials again: a broker that was starting wrote them before it replied.
  static Result<void> settle_credentials(ClientState& state) {
    ClientOptions& options = state.options;
    if (options.discover_credentials) {
      auto found = discover_credentials(state.connection.uri(), options);
      if (!found) return found.error();
      if (*found) state.connection.go_through(std::move(**found));
    }
    if (options.admin.password.empty()) options.admin = {};
    return {};
  }

  const ClientOptions options_;
};

}  // namespace lightq::inline v1
