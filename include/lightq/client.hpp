/// A program's connection to a broker. It manages topics and users, returns statistics, and makes producers,
/// consumers and readers. Layer: client.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <zmq.hpp>

#include <lightq/base/result.hpp>
#include <lightq/base/shown_uri.hpp>
#include <lightq/base/types.hpp>
#include <lightq/client_state.hpp>
#include <lightq/consumer.hpp>
#include <lightq/control_connection.hpp>
#include <lightq/curve_identity.hpp>
#include <lightq/deadline.hpp>
#include <lightq/discovery.hpp>
#include <lightq/membership.hpp>
#include <lightq/options.hpp>
#include <lightq/plain_consumer.hpp>
#include <lightq/plain_producer.hpp>
#include <lightq/producer.hpp>
#include <lightq/reader.hpp>
#include <lightq/zmq_socket.hpp>

namespace lightq::inline v1 {

/// A client of one broker. Move-only. Threads may share it; it sends their requests one after the other. Each
/// producer, consumer or reader that it makes belongs to one thread at a time, and may outlive the client.
///
/// Every request has a deadline and returns a Result. Errors: the broker's error codes (docs/protocol.md,
/// "Errors"); `timeout` if no reply came (the broker may have carried the request out); `closed` after a
/// fork, see below. The client stays usable after a timeout or a restart of the broker; there is no need to
/// connect again.
///
/// A child of fork() must open its own client. In the child, every request of a client, producer, consumer or
/// reader that the parent opened returns `closed`. Destroying these objects there sends nothing to the
/// broker. The child's copies of their connections stay open until the child ends or executes another
/// program.
class Client {
 public:
  Client(Client&&) noexcept = default;
  Client& operator=(Client&&) noexcept = default;
  ~Client() = default;

  /// Makes a client of the broker at the control URI `uri` (`tcp://HOST:PORT` or `ipc://PATH`), and checks
  /// that a broker replies there. If `uri` is empty, uses the URI that discover_control_uri finds. It then
  /// searches until the request timeout, because the broker may be starting.
  ///
  /// Errors:
  /// - timeout.
  /// - io_error: nothing listens at the given `uri` or at LIGHTQ_BROKER (reported without waiting;
  ///   `system_error` is ECONNREFUSED), its network cannot be reached, or there is no such client_key_file.
  /// - invalid_argument: there is no such host or port; the URI contains a user or password (the error does
  ///   not repeat it); a password would be sent to another machine unencrypted; other users may read
  ///   admin.json or the client's key; or the file that names the broker belongs to another user.
  /// - unauthorized_access: see ControlConnection::ask.
  /// - limit_reached.
  static Result<Client> connect(const std::string& uri, ClientOptions options = {}) {
    using Absence = ControlConnection::Absence;
    if (!uri.empty()) return connect_within(uri, options, options.request_timeout, Absence::fails);
    const auto deadline = deadline_after(options.request_timeout);
    for (Timeout patience{100};; patience *= 2) {
      const Result<ControlPlace> place = discover_control_place(options.data_dir);
      if (!place) return place.error();
      const Timeout left = time_left(deadline);
      if (place->named) return connect_within(place->uri, options, std::max(left, patience), Absence::fails);
      if (place->certain)
        return connect_within(place->uri, options, std::max(left, patience), Absence::waits);
      Result<Client> made = connect_within(place->uri, options, std::min(left, patience), Absence::waits);
      if (made || made.error().code != ErrorCode::timeout) return made;
      if (time_left(deadline).count() == 0)
        return no_answer_error(protocol::Ping{}, place->uri, options.request_timeout);
    }
  }
  /// Connects to the broker that discover_control_uri finds. Errors: those of the overload with a URI.
  static Result<Client> connect(ClientOptions options = {}) { return connect("", std::move(options)); }

  /// Creates a topic. With the administrator's credentials, the options' `user`, if given, becomes the
  /// topic's own user. Without them, the options' user needs the right to manage the topic, and the topic has
  /// no own user. Errors: topic_already_exists, invalid_request, unauthorized_access, limit_reached.
  Result<void> create_topic(std::string_view topic, const TopicSettings& settings = {}) {
    Result<TopicName> name = topic_name(topic);
    if (!name) return name.error();
    const bool as_admin = !options().admin.user_id.empty();
    return expect_ok(protocol::CreateTopic{state_->manager(), std::move(*name), settings,
                                           as_admin ? options().user : Credentials{}});
  }

  /// Deletes a topic and all its messages. Needs the administrator's credentials, or those of a user with the
  /// right to manage the topic. Errors: topic_not_found, unauthorized_access.
  Result<void> delete_topic(std::string_view topic) {
    Result<TopicName> name = topic_name(topic);
    if (!name) return name.error();
    return expect_ok(protocol::DeleteTopic{state_->manager(), std::move(*name)});
  }

  /// Returns the topics on which the administrator or the user has any right, sorted by name.
  Result<std::vector<TopicListing>> list_topics() {
    auto reply = ask_for<protocol::ListReply>(protocol::ListTopics{state_->manager()});
    if (!reply) return reply.error();
    return std::move(reply->topics);
  }

  /// Creates a user. With `uid`, processes of that system user on the broker's machine need no password on an
  /// `ipc` control socket, and `password` may be empty. Errors: user_already_exists, limit_reached,
  /// unauthorized_access.
  Result<void> create_user(std::string_view user_id, std::string_view password,
                           std::vector<protocol::TopicRight> rights = {}, bool is_admin = false,
                           std::optional<std::uint32_t> uid = {}) {
    return expect_ok(protocol::CreateUser{
        state_->manager(), {std::string(user_id), std::string(password)}, is_admin, std::move(rights), uid});
  }

  /// Deletes a user, and closes the user's connections. Errors: user_not_found, unauthorized_access.
  Result<void> delete_user(std::string_view user_id) {
    return expect_ok(protocol::DeleteUser{state_->manager(), std::string(user_id)});
  }

  /// Grants a user rights on the topics that match a pattern. Errors: user_not_found, limit_reached,
  /// unauthorized_access.
  Result<void> grant(std::string_view user_id, protocol::TopicRight right) {
    return expect_ok(protocol::GrantRights{state_->manager(), std::string(user_id), std::move(right)});
  }
  /// Revokes rights that were granted with the same pattern, and closes the connections that need these
  /// rights. Errors: user_not_found, invalid_request (no such rights were granted), unauthorized_access.
  Result<void> revoke(std::string_view user_id, protocol::TopicRight right) {
    return expect_ok(protocol::RevokeRights{state_->manager(), std::string(user_id), std::move(right)});
  }

  /// Changes a user's password, and closes the connections that were opened with the old password. The
  /// options' `user` may change its own password; another user's needs the administrator's credentials. This
  /// client keeps using the credentials that it has. Errors: user_not_found, unauthorized_access.
  Result<void> set_password(std::string_view user_id, std::string_view password) {
    const bool own = options().user.user_id == user_id;
    return expect_ok(protocol::SetPassword{own ? options().user : state_->manager(), !own,
                                           std::string(user_id), std::nullopt, std::string(password)});
  }
  /// Changes the password of a topic's own user. Needs the right to manage the topic. Errors:
  /// topic_not_found, invalid_request (the topic has no own user), unauthorized_access.
  Result<void> set_topic_password(std::string_view topic, std::string_view password) {
    Result<TopicName> name = topic_name(topic);
    if (!name) return name.error();
    const bool as_admin = state_->asks_as_admin();
    const Credentials& asker = state_->asker();
    return expect_ok(protocol::SetPassword{asker, as_admin, as_admin ? std::string() : asker.user_id,
                                           std::move(*name), std::string(password)});
  }

  /// Returns all users, sorted by name. Needs the administrator's credentials.
  Result<std::vector<protocol::UserListing>> list_users() {
    auto reply = ask_for<protocol::UserListReply>(protocol::ListUsers{state_->manager()});
    if (!reply) return reply.error();
    return std::move(reply->users);
  }

  /// Deletes a consumer group to which no consumer is connected, so that the log no longer keeps messages for
  /// it. Plain pull consumers all belong to `protocol::default_group`. Errors: topic_not_found,
  /// group_not_found, group_in_use; io_error or no_space: the group is deleted, but may exist again after a
  /// crash of the broker.
  Result<void> delete_group(std::string_view topic, std::string_view group) {
    Result<TopicName> name = topic_name(topic);
    if (!name) return name.error();
    const bool as_admin = state_->asks_as_admin();
    return expect_ok(protocol::DeleteGroup{state_->asker(), std::move(*name), std::string(group), as_admin});
  }

  /// Pauses delivery to a group, or to all consumers of the topic if `group` is empty, until resume().
  /// Consumers stay connected, and producers continue. A pause survives restarts of the broker, except for a
  /// group of a topic in memory. A second pause changes nothing. Errors: topic_not_found, group_not_found,
  /// not_supported (`direct`).
  Result<void> pause(std::string_view topic, std::string_view group = {}) {
    return expect_none(ask_of_group<protocol::Pause>(topic, group));
  }
  /// Ends the pause of a group, or of the topic if `group` is empty. A group's pause and its topic's pause
  /// are independent. Errors: those of pause().
  Result<void> resume(std::string_view topic, std::string_view group = {}) {
    return expect_none(ask_of_group<protocol::Resume>(topic, group));
  }
  /// Moves a group past all stored messages. If `group` is empty, moves every consumer of the topic and drops
  /// the stored messages. Returns the number of messages skipped or dropped. Errors: those of pause(),
  /// no_space, io_error.
  Result<std::uint64_t> purge(std::string_view topic, std::string_view group = {}) {
    auto reply = ask_of_group<protocol::Purge>(topic, group);
    if (!reply) return reply.error();
    return reply->messages.value_or(0);
  }

  /// Returns one topic's statistics. Errors: topic_not_found, unauthorized_access.
  Result<TopicStats> stats(std::string_view topic) {
    Result<TopicName> name = topic_name(topic);
    if (!name) return name.error();
    const bool as_admin = state_->asks_as_admin();
    return ask_for<TopicStats>(protocol::Stats{state_->asker(), std::move(*name), as_admin});
  }

  /// Returns the whole broker's statistics. Needs an administrator's credentials.
  Result<BrokerStats> stats() {
    return ask_for<BrokerStats>(protocol::Stats{state_->manager(), std::nullopt, true});
  }

  /// Returns success if the broker replies.
  Result<void> ping() { return expect_ok(protocol::Ping{}); }

  /// Returns the broker's version, as `major.minor.patch`.
  Result<std::string> version() {
    auto reply = ask_for<protocol::VersionReply>(protocol::Version{});
    if (!reply) return reply.error();
    return std::move(reply->version);
  }

  /// Joins the topic as a producer with confirmed messages. The producer is open when the call returns, and
  /// joins again by itself whenever it has to reconnect. `transport`: if empty, uses the broker's Unix socket
  /// if the broker is on this machine and does not encrypt, and TCP otherwise. Over the Unix socket it uses
  /// shared memory, except for sessions over ZeroMQ. Errors: topic_not_found, unauthorized_access,
  /// limit_reached, not_supported (`flushed` for a topic in memory), invalid_argument (the options), timeout
  /// (also if the topic's address cannot be reached from this machine).
  Result<Producer> producer(std::string_view topic, ProducerOptions options = {},
                            std::optional<Transport> transport = {}) {
    return open_session<Producer>(topic, protocol::JoinType::push, std::move(options), transport);
  }

  /// Joins the topic as a consumer with acknowledgements. The consumer is open when the call returns, and
  /// joins again by itself whenever it has to reconnect. Errors: those of producer(), not_supported (the
  /// group has the other mode, or the broker does not support such consumers), in_use.
  Result<Consumer> consumer(std::string_view topic, ConsumerOptions options = {},
                            std::optional<Transport> transport = {}) {
    const bool shared = options.mode == ConsumeMode::group;
    return open_session<Consumer>(topic, shared ? protocol::JoinType::pull : protocol::JoinType::sub,
                                  std::move(options), transport);
  }

  /// Joins the topic to read messages by their offsets. Reading moves no consumer's position. The reader is
  /// connected when the call returns. Errors: those of consumer().
  Result<Reader> reader(std::string_view topic, ReaderOptions options = {},
                        std::optional<Transport> transport = {}) {
    return open_session<Reader>(topic, protocol::JoinType::sub, std::move(options), transport);
  }

  /// Joins the topic as a producer over a plain ZeroMQ socket, which gets no confirms. The producer is
  /// connected when the call returns. Errors: topic_not_found, unauthorized_access, limit_reached,
  /// invalid_argument, timeout (also if the topic's endpoint cannot be reached from this machine).
  Result<PlainProducer> plain_producer(std::string_view topic, const PlainProducerOptions& options = {}) {
    return open<PlainProducer>(topic, protocol::JoinType::push, options);
  }

  /// Joins the topic as a consumer over a plain ZeroMQ socket, which cannot acknowledge. The consumer is
  /// connected when the call returns. Errors: those of plain_producer().
  Result<PlainConsumer> plain_consumer(std::string_view topic, const PlainConsumerOptions& options = {}) {
    const bool pull = options.mode == Mode::pull;
    return open<PlainConsumer>(topic, pull ? protocol::JoinType::pull : protocol::JoinType::sub, options);
  }

  /// Joins the topic and returns the endpoint's URI and a ticket, for programs with their own ZeroMQ sockets.
  /// The ticket is the socket's PLAIN user name and password; if the broker encrypts, use the keys of the
  /// address's identity instead. Connect a PUSH socket to a `pub` or `push` endpoint, a PULL socket to
  /// `pull`, a SUB socket to `sub`.
  Result<EndpointAddress> join(std::string_view topic, protocol::JoinType type,
                               Transport transport = Transport::tcp) {
    Result<TopicName> name = topic_name(topic);
    if (!name) return name.error();
    return state_->join(*name, type, transport);
  }

  /// Tells the broker that an endpoint returned by join() is no longer used. Returns the number of messages
  /// that the broker sent to the endpoint (0 for a producer's). Errors: endpoint_not_found.
  Result<std::uint64_t> leave(std::string_view topic, const std::string& bind_uri) {
    Result<TopicName> name = topic_name(topic);
    if (!name) return name.error();
    return state_->leave(*name, bind_uri);
  }

  /// Returns the control URI.
  [[nodiscard]] const std::string& uri() const { return state_->connection.uri(); }
  /// Returns the options in use, including discovered credentials.
  [[nodiscard]] const ClientOptions& options() const { return state_->options; }
  /// Returns true if passwords and tickets may be sent to another machine unencrypted, which requires
  /// ClientOptions::insecure.
  [[nodiscard]] bool exposed() const { return state_->exposed; }

 private:
  /// Joins and leaves a topic for one plain producer or consumer.
  class Member final : public Membership {
   public:
    Member(std::shared_ptr<ClientState> state, TopicName topic, protocol::JoinType type, Transport transport)
        : state_(std::move(state)), topic_(std::move(topic)), type_(type), transport_(transport) {}
    [[nodiscard]] const std::string& topic() const override { return topic_.text(); }
    Result<EndpointAddress> join() override { return state_->join(topic_, type_, transport_); }
    Result<std::uint64_t> leave(const std::string& bind_uri) override {
      return state_->leave(topic_, bind_uri);
    }

   private:
    std::shared_ptr<ClientState> state_;
    TopicName topic_;
    protocol::JoinType type_;
    Transport transport_;
  };

  Client(std::shared_ptr<zmq::context_t> context, std::string uri, ClientOptions options,
         ClientIdentities identities, bool exposed)
      : state_(std::make_shared<ClientState>(std::move(context), std::move(uri), std::move(options),
                                             std::move(identities), exposed)) {}

  /// Makes a client of the broker at `uri`, and waits up to `patience` for its first reply.
  static Result<Client> connect_within(const std::string& uri, ClientOptions options, Timeout patience,
                                       ControlConnection::Absence absence) {
    if (const std::string shown = shown_uri(uri); shown != uri) {  // before the host is looked up
      return Error{ErrorCode::invalid_argument,
                   "cannot connect to '" + shown +
                       "': an address has no user or password in it (a broker is given as tcp://HOST:PORT or "
                       "ipc://PATH)"};
    }
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
    std::shared_ptr<zmq::context_t> context;
    try {
      if (options.context != nullptr) {
        context = std::shared_ptr<zmq::context_t>(options.context, [](zmq::context_t*) {});
      } else {
        context = make_zmq_context();
      }
    } catch (const zmq::error_t& error) {
      return zmq_error("cannot make a ZeroMQ context", error.num());
    }
    Client made(std::move(context), uri, std::move(options), std::move(*identities), exposed);
    if (socket) made.state_->connection.go_through(std::move(*socket));
    auto answered = made.state_->connection.ask(protocol::Ping{}, patience, absence);
    if (!answered) return answered.error();
    if (Result<void> settled = made.settle_credentials(); !settled) return settled.error();
    return made;
  }

  /// Searches for credentials again: a broker that was starting wrote them before it replied.
  Result<void> settle_credentials() {
    ClientOptions& options = state_->options;
    if (options.discover_credentials) {
      auto found = discover_credentials(uri(), options);
      if (!found) return found.error();
      if (*found) state_->connection.go_through(std::move(**found));
    }
    if (options.admin.password.empty()) options.admin = {};
    return {};
  }

  static Result<TopicName> topic_name(std::string_view text) {
    if (std::optional<TopicName> name = TopicName::parse(text)) return std::move(*name);
    return Error{ErrorCode::invalid_argument,
                 "'" + std::string(text) +
                     "' is no topic name: 1 to 128 of A-Z a-z 0-9 . _ -, not beginning with . or -"};
  }

  template <typename T>
  Result<T> ask_for(const protocol::Request& request) {
    return state_->ask_for<T>(request);
  }
  Result<void> expect_ok(const protocol::Request& request) {
    return expect_none(state_->ask_for<protocol::OkReply>(request));
  }
  static Result<void> expect_none(const Result<protocol::OkReply>& reply) {
    if (!reply) return reply.error();
    return {};
  }
  /// Sends a request about a topic, or about one of its groups.
  template <typename Asked>
  Result<protocol::OkReply> ask_of_group(std::string_view topic, std::string_view group) {
    Result<TopicName> name = topic_name(topic);
    if (!name) return name.error();
    const bool as_admin = state_->asks_as_admin();
    return state_->ask_for<protocol::OkReply>(
        Asked{state_->asker(), std::move(*name), std::string(group), as_admin});
  }

  /// Checks the options, joins, and connects a handle to the endpoint.
  template <typename Handle, typename Options>
  Result<Handle> open(std::string_view topic, protocol::JoinType type, const Options& options) {
    Result<TopicName> name = topic_name(topic);
    if (!name) return name.error();
    if (Result<void> valid = Handle::check(options); !valid) return valid.error();
    auto member = std::make_unique<Member>(state_, *name, type, options.transport);
    Result<EndpointAddress> address = member->join();
    if (!address) return address.error();
    Result<Handle> handle = Handle::open(state_->context, std::move(member), *address, options);
    if (!handle) return handle;
    const Timeout timeout = state_->options.connect_timeout;
    if (handle->wait_connected(timeout)) return handle;
    if (handle->refused())
      return Error{ErrorCode::unauthorized_access,
                   "joined topic '" + name->text() + "', but its endpoint " + address->uri +
                       " refuses the ticket of the join (has its user as many "
                       "connections as one may have by now?)"};
    return Error{ErrorCode::timeout, "joined topic '" + name->text() + "', but its endpoint " + address->uri +
                                         " does not answer within " + std::to_string(timeout.count()) +
                                         " ms (can this host be reached from here? see --advertise)"};
  }

  /// Joins, and opens a producer, consumer or reader on a session. The opened object joins again by itself.
  template <typename Handle, typename Options>
  Result<Handle> open_session(std::string_view topic, protocol::JoinType type, Options options,
                              std::optional<Transport> transport) {
    Result<TopicName> name = topic_name(topic);
    if (!name) return name.error();
    if (const Result<void> valid = options.check(); !valid) return valid.error();
    // The first join is made here, so that its error is returned at once.
    const ConnectionType over = options.connection;
    TransportChoice choice = state_->choice(transport);
    Result<SessionAddress> first = state_->join_session(*name, type, over, choice);
    if (!first) return first.error();
    auto join = [state = state_, name = *name, type, over, choice,
                 known = std::make_shared<std::optional<SessionAddress>>(std::move(*first))]() mutable {
      if (*known) return Result<SessionAddress>(*std::exchange(*known, std::nullopt));
      return state->join_session(name, type, over, choice);
    };
    auto made = Handle::open(std::string(topic), std::move(join), std::move(options));
    if (!made) return made.error();
    if (Result<void> opened = made->wait_open(this->options().connect_timeout); !opened)
      return opened.error();
    return made;
  }

  std::shared_ptr<ClientState> state_;
};

}  // namespace lightq::inline v1
