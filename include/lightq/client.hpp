/// A program's connection to a broker. It manages topics and users, returns statistics, and makes producers,
/// consumers and readers. Layer: client.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <lightq/base/result.hpp>
#include <lightq/base/separate.hpp>
#include <lightq/base/types.hpp>
#include <lightq/broker_control.hpp>
#include <lightq/consumer.hpp>
#include <lightq/curve_identity.hpp>
#include <lightq/delayed_control.hpp>
#include <lightq/detail/membership.hpp>
#include <lightq/group_control.hpp>
#include <lightq/options.hpp>
#include <lightq/plain_consumer.hpp>
#include <lightq/plain_producer.hpp>
#include <lightq/producer.hpp>
#include <lightq/reader.hpp>
#include <lightq/schedule_control.hpp>

namespace lightq::inline v1 {

struct ClientState;

/// The groups that a list of topics has: none, or those with settings other than the defaults.
enum class ListedGroups : std::uint8_t { none, with_settings };

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
  /// After a move, requests of the client that was moved from return `closed`. It may be assigned to and
  /// destroyed.
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
  /// - unauthorized_access: the broker encrypts, and this client has no server key; the broker does not
  ///   encrypt, and this client has one; the broker has another key; or the client's own key is not on the
  ///   broker's list.
  /// - limit_reached.
  static Result<Client> connect(const std::string& uri, ClientOptions options = {});
  /// Connects to the broker that discover_control_uri finds. Errors: those of the overload with a URI.
  static Result<Client> connect(ClientOptions options = {});

  /// Creates a topic. With the administrator's credentials, the options' `user`, if given, becomes the
  /// topic's own user. Without them, the options' user needs the right to manage the topic, and the topic has
  /// no own user. Errors: topic_already_exists, invalid_request, unauthorized_access, limit_reached.
  Result<void> create_topic(std::string_view topic, const TopicSettings& settings = {});

  /// Deletes a topic and all its messages. Needs the administrator's credentials, or those of a user with the
  /// right to manage the topic. Errors: topic_not_found, unauthorized_access.
  Result<void> delete_topic(std::string_view topic);

  /// Returns the topics on which the administrator or the user has any right, sorted by name.
  /// `groups`: with the settings of groups, also of those that nobody has joined yet; asks for page after
  /// page.
  Result<std::vector<TopicListing>> list_topics(ListedGroups groups = ListedGroups::none);

  /// Creates a user. With `uid`, processes of that system user on the broker's machine need no password on an
  /// `ipc` control socket, and `password` may be empty. Errors: user_already_exists, limit_reached,
  /// unauthorized_access.
  Result<void> create_user(std::string_view user_id, std::string_view password,
                           std::vector<protocol::TopicRight> rights = {}, bool is_admin = false,
                           std::optional<std::uint32_t> uid = {});

  /// Deletes a user, and closes the user's connections. Errors: user_not_found, unauthorized_access.
  Result<void> delete_user(std::string_view user_id);

  /// Grants a user rights on the topics that match a pattern. Errors: user_not_found, limit_reached,
  /// unauthorized_access.
  Result<void> grant(std::string_view user_id, protocol::TopicRight right);
  /// Revokes rights that were granted with the same pattern, and closes the connections that need these
  /// rights. Errors: user_not_found, invalid_request (no such rights were granted), unauthorized_access.
  Result<void> revoke(std::string_view user_id, protocol::TopicRight right);

  /// Changes a user's password, and closes the connections that were opened with the old password. The
  /// options' `user` may change its own password; another user's needs the administrator's credentials. This
  /// client keeps using the credentials that it has. Errors: user_not_found, unauthorized_access.
  Result<void> set_password(std::string_view user_id, std::string_view password);
  /// Changes the password of a topic's own user. Needs the right to manage the topic. Errors:
  /// topic_not_found, invalid_request (the topic has no own user), unauthorized_access.
  Result<void> set_topic_password(std::string_view topic, std::string_view password);

  /// Returns all users, sorted by name. Needs the administrator's credentials.
  Result<std::vector<protocol::UserListing>> list_users();

  /// Deletes a consumer group to which no consumer is connected, so that the log no longer keeps messages for
  /// it. Plain pull consumers all belong to `protocol::default_group`. Errors: topic_not_found,
  /// group_not_found, group_in_use; io_error or no_space: the group is deleted, but may exist again after a
  /// crash of the broker.
  Result<void> delete_group(std::string_view topic, std::string_view group);

  /// Changes settings of a topic: those that are given. Needs the right to manage it. Errors:
  /// topic_not_found, unauthorized_access, invalid_argument, not_supported (`direct`).
  Result<void> set_topic(std::string_view topic, const protocol::TopicChange& change);

  /// Pauses delivery to a group, or to all consumers of the topic if `group` is empty, until resume().
  /// Consumers stay connected, and producers continue. A pause survives restarts of the broker, except for a
  /// group of a topic in memory. A second pause changes nothing. Errors: topic_not_found, group_not_found,
  /// not_supported (`direct`).
  Result<void> pause(std::string_view topic, std::string_view group = {});
  /// Ends the pause of a group, or of the topic if `group` is empty. A group's pause and its topic's pause
  /// are independent. Errors: those of pause().
  Result<void> resume(std::string_view topic, std::string_view group = {});
  /// Moves a group past all stored messages. If `group` is empty, moves every consumer of the topic and drops
  /// the stored messages; with `delayed`, also cancels the delayed ones. Returns the number of messages
  /// skipped, dropped or cancelled. Errors: those of pause(), no_space, io_error.
  Result<std::uint64_t> purge(std::string_view topic, std::string_view group = {}, bool delayed = false);

  /// Returns one topic's statistics. With `members_max`, at most limits::stats_members_max, the groups have
  /// lists of their consumers, of so many consumers in all. Errors: topic_not_found, unauthorized_access.
  Result<TopicStats> stats(std::string_view topic, std::uint64_t members_max = 0);

  /// Returns the whole broker's statistics. Needs an administrator's credentials.
  Result<BrokerStats> stats();
  /// Returns the statistics of all topics on which the administrator or the user has any right, sorted by
  /// name. It asks for several pages if there are many topics. Errors: unauthorized_access.
  Result<std::vector<TopicStats>> stats_of_all();

  /// Returns success if the broker replies.
  Result<void> ping();

  /// Returns the broker's version, as `major.minor.patch`.
  Result<std::string> version();

  /// Joins the topic as a producer with confirmed messages. The producer is open when the call returns, and
  /// joins again by itself whenever it has to reconnect. `transport`: if empty, uses the broker's Unix socket
  /// if the broker is on this machine and does not encrypt, and TCP otherwise. Over the Unix socket it uses
  /// shared memory, except for sessions over ZeroMQ. Errors: topic_not_found, unauthorized_access,
  /// limit_reached, not_supported (`flushed` for a topic in memory), invalid_argument (the options), timeout
  /// (also if the topic's address cannot be reached from this machine).
  Result<Producer> producer(std::string_view topic, ProducerOptions options = {},
                            std::optional<Transport> transport = {});

  /// Joins the topic as a consumer with acknowledgements. The consumer is open when the call returns, and
  /// joins again by itself whenever it has to reconnect. Errors: those of producer(), not_supported (the
  /// group has the other mode, or the broker does not support such consumers), in_use.
  Result<Consumer> consumer(std::string_view topic, ConsumerOptions options = {},
                            std::optional<Transport> transport = {});

  /// Joins the topic to read messages by their offsets. Reading moves no consumer's position. The reader is
  /// connected when the call returns. Errors: those of consumer().
  Result<Reader> reader(std::string_view topic, ReaderOptions options = {},
                        std::optional<Transport> transport = {});

  /// Joins the topic as a producer over a plain ZeroMQ socket, which gets no confirms. The producer is
  /// connected when the call returns. Errors: topic_not_found, unauthorized_access, limit_reached,
  /// invalid_argument, timeout (also if the topic's endpoint cannot be reached from this machine).
  Result<PlainProducer> plain_producer(std::string_view topic, const PlainProducerOptions& options = {});

  /// Joins the topic as a consumer over a plain ZeroMQ socket, which cannot acknowledge. The consumer is
  /// connected when the call returns. Errors: those of plain_producer().
  Result<PlainConsumer> plain_consumer(std::string_view topic, const PlainConsumerOptions& options = {});

  /// Joins the topic and returns the endpoint's URI and a ticket, for programs with their own ZeroMQ sockets.
  /// The ticket is the socket's PLAIN user name and password; if the broker encrypts, use the keys of the
  /// address's identity instead. Connect a PUSH socket to a `pub` or `push` endpoint, a PULL socket to
  /// `pull`, a SUB socket to `sub`.
  Result<EndpointAddress> join(std::string_view topic, protocol::JoinType type,
                               Transport transport = Transport::tcp);

  /// Tells the broker that an endpoint returned by join() is no longer used. Returns the number of messages
  /// that the broker sent to the endpoint (0 for a producer's). Errors: endpoint_not_found.
  Result<std::uint64_t> leave(std::string_view topic, const std::string& bind_uri);

  /// Returns the control URI.
  [[nodiscard]] const std::string& uri() const;
  /// Returns an object for the settings and dead messages of a group, which need not exist. Errors:
  /// invalid_argument.
  Result<GroupControl> group(std::string_view topic, std::string_view group);
  /// Returns an object for the delayed messages of a topic. Errors: invalid_argument.
  Result<DelayedControl> delayed(std::string_view topic);

  /// Returns the options in use, including discovered credentials.
  [[nodiscard]] const ClientOptions& options() const;
  /// Returns true if passwords and tickets may be sent to another machine unencrypted, which requires
  /// ClientOptions::insecure.
  [[nodiscard]] bool exposed() const;

 private:
  class Member;
  friend class ScheduleControl;  // these send their requests through the same connection
  friend class BrokerControl;
  friend class JsonControl;

  explicit Client(std::shared_ptr<ClientState> state);
  /// Returns the state; after a move, one without a context, whose requests fail.
  [[nodiscard]] const std::shared_ptr<ClientState>& state() const;

  template <typename T>
  Result<T> ask_for(const protocol::Request& request);
  Result<void> expect_ok(const protocol::Request& request);

  /// Checks the options, joins, and connects a handle to the endpoint.
  template <typename Handle, typename Options>
  Result<Handle> open(std::string_view topic, protocol::JoinType type, const Options& options);

  /// Joins, and opens a producer, consumer or reader on a session. The opened object joins again by itself.
  template <typename Handle, typename Options>
  Result<Handle> open_session(std::string_view topic, protocol::JoinType type, Options options,
                              std::optional<Transport> transport);

  std::shared_ptr<ClientState> state_;  // null after a move: use state()
};

}  // namespace lightq::inline v1

#if defined(LIGHTQ_WITH_DEFINITIONS)
#include <lightq/impl/client.hpp>  // IWYU pragma: export
#endif
