/// The control protocol's requests and replies as types; protocol/json.hpp turns them into JSON and back.
/// docs/protocol.md is the specification. Layer: protocol.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include <lightq/base/error.hpp>
#include <lightq/base/limits.hpp>
#include <lightq/base/types.hpp>
#include <lightq/base/wipe.hpp>
#include <lightq/base/z85.hpp>

namespace lightq::inline v1::protocol {

/// Who asks. Never logged, never echoed. The password is wiped at the end, of each copy: moving is copying.
struct Credentials {
  std::string user_id;
  std::string password;
  ~Credentials() { wipe_text(password); }
};

/// `broker_type`: where a topic's messages live. Wire words: queue, file, direct, queue_file.
enum class BrokerType {
  queue,       ///< transient: an in-memory ring
  file,        ///< durable: segment files
  direct,      ///< no store: to whoever is connected now
  queue_file,  ///< served from memory, written behind to segment files
};

/// What happens to a message that does not fit a full log. Wire words: block, reject, drop_oldest.
enum class Overflow { block, reject, drop_oldest };

/// `type` of a join. `pub` and `push` are the same thing: a producer.
enum class JoinType { pub, push, pull, sub };

/// Wire words: tcp, ipc.
enum class Transport { tcp, ipc };

/// `connection_type` of a join. Wire words: zmq, socket.
enum class ConnectionType { zmq, socket };

/// `delivery` of a join. Wire words: plain, session.
enum class Delivery { plain, session };

/// The settings a topic is created with. 0 means "no bound" for capacity and retention.
struct TopicSettings {
  BrokerType broker_type = BrokerType::queue;
  std::uint64_t ring_bytes = limits::ring_bytes_default;  ///< queue, queue_file: capacity in memory
  Overflow overflow = Overflow::block;
  std::uint64_t capacity_bytes = 0;      ///< file, queue_file: bytes on disk before overflow
  std::uint64_t retention_bytes = 0;     ///< file, queue_file: oldest segments go beyond it
  std::uint64_t retention_ms = 0;        ///< … and when older than this
  std::uint64_t retention_messages = 0;  ///< … and beyond this many messages
  std::uint64_t segment_bytes = limits::segment_bytes_default;  ///< file, queue_file
  bool open = false;                                            ///< takes plain clients without a ticket
  bool encrypt_at_rest = false;                                 ///< file, queue_file: by the broker's key
  friend bool operator==(const TopicSettings&, const TopicSettings&) = default;
};

/// Whether topics of this type keep messages in a ring in memory: `ring_bytes` means something.
constexpr bool has_ring(BrokerType type) {
  return type == BrokerType::queue || type == BrokerType::queue_file;
}
/// Whether they keep them in files: capacity, retention and `segment_bytes` mean something.
constexpr bool has_files(BrokerType type) {
  return type == BrokerType::file || type == BrokerType::queue_file;
}
/// Whether they have a log that can be full: `overflow` means something.
constexpr bool has_log(BrokerType type) {
  return type != BrokerType::direct;
}

/// What a user may do with a topic. Wire words: produce, consume, manage.
enum class Right { produce, consume, manage };

/// Some of them.
struct Rights {
  bool produce = false;
  bool consume = false;
  bool manage = false;  ///< create, delete, pause, resume and purge, and delete groups
  [[nodiscard]] bool any() const { return produce || consume || manage; }
  [[nodiscard]] bool has(Right right) const {
    return right == Right::produce ? produce : right == Right::consume ? consume : manage;
  }
  friend bool operator==(const Rights&, const Rights&) = default;
};

/// What a user may do with every topic, there or to come, whose name fits a pattern, or with the groups of
/// them that fit a second one.
struct TopicRight {
  std::string
      topic;  ///< `TOPIC` or `TOPIC:GROUP`; each `*` stands for any characters, or none (topic_pattern.hpp)
  Rights rights;
  friend bool operator==(const TopicRight&, const TopicRight&) = default;
};

/// `admin` is who asks: the administrator, or a user that may do it.
struct CreateTopic {
  Credentials admin;
  TopicName topic;
  TopicSettings settings;
  /// Whoever joins must present these. Left out (both `user_id` and `password` missing on the wire, empty
  /// here): only the admin may use the topic, unless it is open.
  Credentials user;
};
struct DeleteTopic {
  Credentials admin;
  TopicName topic;
};
struct ListTopics {
  Credentials admin;
};
/// Join, Leave, Stats and what is asked of groups take the topic's credentials (`user_id`, `password`) or the
/// admin's
/// (`admin_user_id`, `admin_password` on the wire; then `as_admin` is true and `user` holds them).
struct Join {
  Credentials user;
  TopicName topic;
  JoinType type;
  ConnectionType connection_type = ConnectionType::zmq;
  Transport transport = Transport::tcp;
  bool as_admin = false;
  Delivery delivery = Delivery::plain;
  std::optional<CurvePublicKey> client_key = {};  ///< of the plain ZeroMQ socket that will connect
};
/// Says that nobody will use an endpoint any more.
struct Leave {
  Credentials user;
  TopicName topic;
  std::string bind_uri;
  bool as_admin = false;
};
/// Statistics of a topic, or with `topic` empty (and admin credentials) of the whole broker.
struct Stats {
  Credentials user;
  std::optional<TopicName> topic;
  bool as_admin = false;
};
/// Deletes the topic's default pull group, so that it no longer holds the log. Topic's or admin's
/// credentials.
struct DeleteGroup {
  Credentials user;
  TopicName topic;
  std::string group;
  bool as_admin = false;
};
/// Nothing is handed out by the group, or with `group` empty by the topic, until it is resumed.
struct Pause {
  Credentials user;
  TopicName topic;
  std::string group;
  bool as_admin = false;
};
struct Resume {
  Credentials user;
  TopicName topic;
  std::string group;
  bool as_admin = false;
};
/// The group goes on behind all that is stored; with `group` empty what is stored is dropped.
struct Purge {
  Credentials user;
  TopicName topic;
  std::string group;
  bool as_admin = false;
};
/// What is asked of users takes the credentials of the administrator, or of a user who is one.
struct CreateUser {
  Credentials admin;
  Credentials user;       ///< whom to create; without a password where `uid` is given
  bool is_admin = false;  ///< may do what the administrator may
  std::vector<TopicRight> rights;
  std::optional<std::uint32_t> uid;  ///< of the operating system: who needs no password on an ipc socket
};
struct DeleteUser {
  Credentials admin;
  std::string user_id;
};
/// Of a user; or, with `topic`, of the topic's own user. An administrator may, and whoever knows the old one.
struct SetPassword {
  Credentials asker;  ///< `as_admin`: an administrator; else the user, with the old password
  bool as_admin = false;
  std::string user_id;  ///< empty only with `topic`
  std::optional<TopicName> topic;
  std::string new_password;  ///< wiped at the end
  ~SetPassword() { wipe_text(new_password); }
};
struct GrantRights {
  Credentials admin;
  std::string user_id;
  TopicRight right;
};
/// Takes away what was granted with the same pattern.
struct RevokeRights {
  Credentials admin;
  std::string user_id;
  TopicRight right;
};
struct ListUsers {
  Credentials admin;
};
struct Ping {};
struct Version {};

using Request =
    std::variant<CreateTopic, DeleteTopic, ListTopics, Join, Leave, Stats, DeleteGroup, Pause, Resume, Purge,
                 CreateUser, DeleteUser, SetPassword, GrantRights, RevokeRights, ListUsers, Ping, Version>;

/// The wire word of a request's command, e.g. `create_topic`.
constexpr std::string_view command_of(const Request& request) {
  constexpr std::string_view words[] = {"create_topic", "delete_topic", "list_topics",  "join",   "leave",
                                        "stats",        "delete_group", "pause",        "resume", "purge",
                                        "create_user",  "delete_user",  "set_password", "grant",  "revoke",
                                        "list_users",   "ping",         "version"};
  static_assert(std::size(words) == std::variant_size_v<Request>);
  return words[request.index()];
}

// Replies. Every reply carries `cmd` and `status`; an ErrorReply has status "error".

struct ErrorReply {
  std::string cmd;  ///< echoed; empty where the request named none
  ErrorCode code = ErrorCode::internal;
  std::string description;
};

/// create_topic, delete_topic, leave, delete_group, pause, resume, purge, ping, and what changes users:
/// nothing but success.
struct OkReply {
  std::string cmd;
  std::string description;  ///< left out when empty
  /// leave of a consumer's endpoint: how many messages were handed to it, ever. A consumer that has received
  /// that many has received them all and can close.
  std::optional<std::uint64_t> messages_handed;
  /// purge: how many messages were dropped, or passed over.
  std::optional<std::uint64_t> messages = {};
};

struct VersionReply {
  std::string version;
  int protocol = 1;
};

/// What a join gives to connect with. A plain ZeroMQ socket shows id and secret as user name and password
/// (the mechanism PLAIN), a session `ID.SECRET` in its first frame. The secret is wiped at the end, of each
/// copy: moving is copying.
struct Ticket {
  std::string id;
  std::string secret;
  std::uint64_t expires_ms = 0;  ///< since 1970: who connects later joins again first
  ~Ticket() { wipe_text(secret); }
  [[nodiscard]] std::string text() const { return id + "." + secret; }
  friend bool operator==(const Ticket&, const Ticket&) = default;
};

/// Whom a session's client has to find behind a TCP address.
struct Tls {
  std::string certificate_sha256;  ///< of the certificate as DER; 64 hexadecimal digits
  friend bool operator==(const Tls&, const Tls&) = default;
};

struct JoinReply {
  std::string topic;
  std::string bind_uri;
  std::optional<Ticket> ticket;  ///< of all but raw consumers
  std::string server_key =
      {};  ///< of what is encrypted by CURVE: the key to connect to, Z85; empty: nothing is
  std::optional<Tls> tls = {};  ///< of sessions that are encrypted by TLS
};

struct TopicListing {
  std::string topic;
  TopicSettings settings;
  bool open = false;            ///< as in TopicStats; settings.open is what it was created with
  bool open_by_broker = false;  ///< likewise
};

struct ListReply {
  std::vector<TopicListing> topics;  ///< by name
};

/// A user, without anything secret.
struct UserListing {
  std::string user_id;
  bool admin = false;
  std::optional<std::uint32_t> uid;
  std::vector<TopicRight> rights;
};

struct UserListReply {
  std::vector<UserListing> users;  ///< by name
};

/// One group of a topic.
struct GroupStats {
  std::string group;                   ///< empty: of a consumer that gave it no name
  std::string mode = "group";          ///< group: shared; own: of one consumer
  std::uint64_t next_offset = 0;       ///< the next message to be handed out
  std::uint64_t committed_offset = 0;  ///< where it would go on after a crash of the broker
  std::uint64_t pending = 0;           ///< messages it is not done with: ready, in flight and retrying
  std::uint64_t ready = 0;             ///< of these: can be handed out now
  std::uint64_t in_flight = 0;         ///< of these: with a consumer that has not acknowledged them
  std::uint64_t retrying = 0;          ///< of these: rejected, and their delay has not passed
  std::uint64_t lag = 0;               ///< of these: with no consumer; ready and retrying together
  std::uint64_t lost = 0;              ///< messages trimmed or dropped before it was handed them
  std::uint64_t consumers = 0;         ///< connected
  std::uint64_t unacknowledged = 0;    ///< of in_flight: with consumers over sessions
  std::uint64_t redelivered = 0;       ///< messages handed out again, each time
  std::uint64_t oldest_ms = 0;         ///< age of the oldest message that is not done with; 0: there is none
  bool paused = false;                 ///< by itself, whether or not its topic is
  std::string blocked_by;  ///< why consumers wait though messages are ready: empty, or `disk: WHY`
};

/// One plain subscriber (one `sub` join).
struct SubscriberStats {
  std::string bind_uri;
  bool connected = false;
  std::uint64_t next_offset = 0;
  std::uint64_t lag = 0;
  std::uint64_t delivered = 0;
  std::uint64_t lost = 0;  ///< messages the log had moved past before it could be sent them
  std::string blocked_by;  ///< as of a group
};

/// docs/protocol.md, "stats", defines every one; counting starts at the broker's start (`since_ms`).
struct TopicStats {
  std::string topic;
  BrokerType topic_type = BrokerType::queue;
  std::uint64_t messages_received = 0;
  std::uint64_t messages_sent = 0;
  std::uint64_t publishers_count = 0;
  std::uint64_t subscribers_count = 0;
  std::uint64_t queue_size = 0;
  std::uint64_t total_bytes_written = 0;
  std::uint64_t total_bytes_read = 0;
  // Beyond 2015.
  std::uint64_t deliveries = 0;           ///< all copies to all consumers
  std::uint64_t dropped = 0;              ///< by `drop_oldest`, or `direct` with nobody left to take it
  std::uint64_t rejected = 0;             ///< by `reject`
  std::uint64_t refused = 0;              ///< too large, or of several parts
  std::uint64_t unclaimed_dropped = 0;    ///< turned over while no group existed
  std::uint64_t corrupt = 0;              ///< lost to damage on the disk
  std::uint64_t refused_connections = 0;  ///< plain clients without a ticket that lets them in
  std::uint64_t first_offset = 0;
  std::uint64_t next_offset = 0;
  std::uint64_t durable_offset = 0;
  std::uint64_t log_bytes = 0;  ///< held now, in memory or as whole files on disk
  std::string blocked_by;       ///< empty, `group:NAME`, `disk`, or `nobody connected` (direct)
  bool paused = false;
  std::uint64_t since_ms = 0;   ///< milliseconds since 1970 when counting began
  bool open = false;            ///< takes plain clients without a ticket, for whatever reason
  bool open_by_broker = false;  ///< … because the broker has been told to, for every topic
  TopicSettings settings;
  std::vector<GroupStats> groups;
  std::vector<SubscriberStats> subscribers;
};

struct BrokerStats {
  std::string version;
  std::uint64_t pid = 0;
  std::uint64_t since_ms = 0;
  std::uint64_t uptime_ms = 0;
  std::uint64_t topics = 0;
  std::uint64_t connections = 0;  ///< producers and consumers, completed handshakes
  std::uint64_t messages_received = 0;
  std::uint64_t messages_sent = 0;
  std::uint64_t deliveries = 0;
  std::uint64_t total_bytes_written = 0;
  std::uint64_t total_bytes_read = 0;
  std::uint64_t log_bytes = 0;
  std::uint64_t auth_failures = 0;
  std::uint64_t throttled_requests = 0;     ///< refused because their source asked too much
  std::uint64_t refused_connections = 0;    ///< to data endpoints, without a ticket that lets them in
  std::uint64_t displaced_connections = 0;  ///< ended before they said who they were, to make room for others
  std::map<std::string, std::uint64_t> limits_reached;  ///< how often each has refused somebody, by its name
  std::string data_dir;
  bool encrypted = false;  ///< it speaks to nobody in clear
  bool insecure = false;   ///< other machines reach it, and it speaks in clear
};

using Reply = std::variant<ErrorReply, OkReply, VersionReply, JoinReply, ListReply, UserListReply, TopicStats,
                           BrokerStats>;

// Wire words.

constexpr std::string_view to_word(BrokerType type) {
  constexpr std::string_view words[] = {"queue", "file", "direct", "queue_file"};
  return words[static_cast<int>(type)];
}
constexpr std::string_view to_word(Overflow overflow) {
  constexpr std::string_view words[] = {"block", "reject", "drop_oldest"};
  return words[static_cast<int>(overflow)];
}
constexpr std::string_view to_word(JoinType type) {
  constexpr std::string_view words[] = {"pub", "push", "pull", "sub"};
  return words[static_cast<int>(type)];
}
constexpr std::string_view to_word(Transport transport) {
  return transport == Transport::tcp ? "tcp" : "ipc";
}
constexpr std::string_view to_word(ConnectionType type) {
  return type == ConnectionType::zmq ? "zmq" : "socket";
}
constexpr std::string_view to_word(Delivery delivery) {
  return delivery == Delivery::plain ? "plain" : "session";
}

/// The enumerator of a wire word, or nothing for an unknown word: `from_word<Overflow>("block")`.
template <typename Enum>
constexpr std::optional<Enum> from_word(std::string_view word) {
  constexpr int count = std::is_same_v<Enum, BrokerType> || std::is_same_v<Enum, JoinType> ? 4
                        : std::is_same_v<Enum, Overflow>                                   ? 3
                                                                                           : 2;
  for (int i = 0; i < count; ++i) {
    if (to_word(static_cast<Enum>(i)) == word) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

/// The name of the group that every plain `pull` consumer shares.
inline constexpr std::string_view default_group = "default";

}  // namespace lightq::inline v1::protocol
