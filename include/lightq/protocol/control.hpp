/// The control protocol's requests and replies as types; protocol/json.hpp converts them to and from JSON.
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
#include <lightq/base/secret.hpp>
#include <lightq/base/types.hpp>
#include <lightq/base/z85.hpp>
#include <lightq/protocol/credentials.hpp>
#include <lightq/protocol/delayed_control.hpp>
#include <lightq/protocol/group_control.hpp>
#include <lightq/protocol/message_trace.hpp>
#include <lightq/protocol/reload.hpp>
#include <lightq/protocol/schedule_requests.hpp>
#include <lightq/protocol/schedules.hpp>
#include <lightq/protocol/stats.hpp>
#include <lightq/protocol/topic_settings.hpp>

namespace lightq::inline v1::protocol {

/// The client's role in a join, `type` on the wire. `pub` and `push` mean the same: a producer.
enum class JoinType { pub, push, pull, sub };

/// The transport of an endpoint. Wire words: tcp, ipc.
enum class Transport { tcp, ipc };

/// The protocol of an endpoint, `connection_type` of a join. Wire words: zmq, socket.
enum class ConnectionType { zmq, socket };

/// Plain endpoint or session, `delivery` of a join. Wire words: plain, session.
enum class Delivery { plain, session };

/// A permission on a topic. Wire words: produce, consume, manage.
enum class Right { produce, consume, manage };

/// A set of permissions.
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

/// A grant: permissions on all present and future topics with names that match a pattern. With a second
/// pattern, on the matching groups of these topics.
struct TopicRight {
  std::string
      topic;  ///< `TOPIC` or `TOPIC:GROUP`; each `*` matches any characters, or none (topic_pattern.hpp)
  Rights rights;
  friend bool operator==(const TopicRight&, const TopicRight&) = default;
};

/// Creates a topic. `admin` holds the credentials of the administrator, or of a user that may manage this
/// topic.
struct CreateTopic {
  Credentials admin;
  TopicName topic;
  TopicSettings settings;
  /// The topic's own credentials, which clients present when they join. Left out (on the wire both `user_id`
  /// and `password` are missing, here both are empty): only the admin may use the topic, unless it is open.
  Credentials user;
  /// The settings that the request gives; a topic template of the broker, or a default, sets the others.
  /// Nothing, for a request that is sent: broker_type and the settings that differ from their defaults.
  std::optional<GivenSettings> given = {};
};
struct DeleteTopic {
  Credentials admin;
  TopicName topic;
};
struct ListTopics {
  Credentials admin;
  bool groups = false;                  ///< with the settings of groups, in pages
  std::optional<TopicName> after = {};  ///< with `groups`: the page begins behind this name
};
/// Asks for an endpoint. Join, Leave, Stats and the requests on groups carry the topic's credentials
/// (`user_id`, `password`) or the admin's. The admin's are `admin_user_id` and `admin_password` on the wire;
/// here `user` then holds them and `as_admin` is true.
struct Join {
  Credentials user;
  TopicName topic;
  JoinType type;
  ConnectionType connection_type = ConnectionType::zmq;
  Transport transport = Transport::tcp;
  bool as_admin = false;
  Delivery delivery = Delivery::plain;
  std::optional<CurvePublicKey> client_key = {};  ///< key of the plain ZeroMQ socket that will connect
};
/// Tells the broker that an endpoint is not used any more.
struct Leave {
  Credentials user;
  TopicName topic;
  std::string bind_uri;
  bool as_admin = false;
};
/// Asks for the statistics of a topic. With `topic` empty, which requires admin credentials, for those of the
/// whole broker.
struct Stats {
  Credentials user;
  std::optional<TopicName> topic;
  bool as_admin = false;
  /// The reply has so many members of the topic's groups, at most limits::stats_members_max; 0: no lists.
  std::uint64_t members_max = 0;
};
/// Asks for a page of the statistics of all topics on which the user has any right.
struct StatsAll {
  Credentials admin;
  std::optional<TopicName> after = {};  ///< the page begins with the first name behind this one
  std::uint64_t topics_max = limits::stats_page_topics_default;
};
/// Deletes a group of the topic, so that it no longer keeps messages in the log. Requires the topic's or the
/// admin's credentials.
struct DeleteGroup {
  Credentials user;
  TopicName topic;
  std::string group;
  bool as_admin = false;
};
/// Stops dispatch until Resume: in the group, or with `group` empty in the whole topic.
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
/// Moves the group's cursor behind all stored messages. With `group` empty, drops all stored messages of the
/// topic.
struct Purge {
  Credentials user;
  TopicName topic;
  std::string group;
  bool as_admin = false;
  bool delayed = false;  ///< with `group` empty: also cancels the topic's delayed messages
};
/// Changes settings of a group. The group need not exist: it has them when it is created.
struct SetGroup {
  Credentials user;
  TopicName topic;
  std::string group;
  GroupChange change;
  bool as_admin = false;
};
/// Moves the position of a group. `preview`: only says what would happen.
struct SeekGroup {
  Credentials user;
  TopicName topic;
  std::string group;
  GroupPlace to = {};
  bool preview = false;
  bool as_admin = false;
};
/// Asks for the trace of one message. Requires the right to read the topic by offset.
struct Trace {
  Credentials user;
  TopicName topic;
  std::uint64_t offset = 0;
  bool as_admin = false;
};
/// Asks for a page of the dead messages of a group or, with `group` empty, of a dead-letter topic.
struct ListDead {
  Credentials user;
  TopicName topic;
  std::string group;
  DeadFilter filter = {};
  std::optional<std::uint64_t> after_offset = {};  ///< the page begins behind this offset
  std::uint64_t limit = DeadPage::messages_default;
  bool as_admin = false;
};
/// Makes parked messages ready again, as if they had never failed. `preview`: only counts them.
struct RetryDead {
  Credentials user;
  TopicName topic;
  std::string group;
  DeadFilter filter = {};
  bool preview = false;
  bool as_admin = false;
};
/// Finishes parked messages. `preview`: only counts them.
struct PurgeDead {
  Credentials user;
  TopicName topic;
  std::string group;
  DeadFilter filter = {};
  bool preview = false;
  bool as_admin = false;
};
/// Asks for a page of the delayed messages in the topic's schedule.
struct ListDelayed {
  Credentials user;
  TopicName topic;
  DelayedFilter filter = {};
  std::optional<DelayedPlace> after = {};  ///< the page begins behind this place
  std::uint64_t limit = DelayedPage::messages_default;
  bool as_admin = false;
  std::uint64_t payload_bytes = 0;  ///< of each payload, the first ones; 0: none
};
/// Removes delayed messages. `preview`: only counts them.
struct CancelDelayed {
  Credentials user;
  TopicName topic;
  DelayedFilter filter = {};
  bool preview = false;
  bool as_admin = false;
};
/// Makes delayed messages due now. `preview`: only counts them.
struct HurryDelayed {
  Credentials user;
  TopicName topic;
  DelayedFilter filter = {};
  bool preview = false;
  bool as_admin = false;
};
/// Gives delayed messages another due time. `preview`: only counts them.
struct RescheduleDelayed {
  Credentials user;
  TopicName topic;
  DelayedFilter filter = {};
  /// As the attribute of a record has it, see due.hpp. A delay counts from the arrival of the request.
  std::int64_t due = 0;
  bool preview = false;
  bool as_admin = false;
};
/// Changes settings of a topic: those that are given.
struct SetTopic {
  Credentials user;
  TopicName topic;
  TopicChange change = {};
  bool as_admin = false;
};
/// Creates a user. The requests on users carry the credentials of the administrator, or of a user with admin
/// rights.
struct CreateUser {
  Credentials admin;
  Credentials user;       ///< the new user; the password is empty if only `uid` is given
  bool is_admin = false;  ///< the user gets the administrator's rights
  std::vector<TopicRight> rights;
  std::optional<std::uint32_t> uid;  ///< system user that needs no password on an ipc socket
};
struct DeleteUser {
  Credentials admin;
  std::string user_id;
};
/// Changes the password of a user or, with `topic`, of the topic's own user. Permitted to an administrator,
/// and to a client that knows the old password.
struct SetPassword {
  Credentials asker;  ///< an administrator if `as_admin`; otherwise the user, with the old password
  bool as_admin = false;
  std::string user_id;  ///< may be empty only with `topic`
  std::optional<TopicName> topic;
  Secret new_password;
};
struct GrantRights {
  Credentials admin;
  std::string user_id;
  TopicRight right;
};
/// Removes the permissions that were granted with the same pattern.
struct RevokeRights {
  Credentials admin;
  std::string user_id;
  TopicRight right;
};
struct ListUsers {
  Credentials admin;
};
/// Reads the broker's settings, certificate and key files again.
struct Reload {
  Credentials admin;
};
struct Ping {};
struct Version {};

using Request =
    std::variant<CreateTopic, DeleteTopic, ListTopics, Join, Leave, Stats, DeleteGroup, Pause, Resume, Purge,
                 CreateUser, DeleteUser, SetPassword, GrantRights, RevokeRights, ListUsers, Ping, Version,
                 StatsAll, SetGroup, ListDead, RetryDead, PurgeDead, ListDelayed, CancelDelayed, HurryDelayed,
                 RescheduleDelayed, SetSchedule, ListSchedules, PauseSchedule, ResumeSchedule, RemoveSchedule,
                 SetTopic, Reload, SeekGroup, Trace>;

/// Returns the wire word of a request's command, e.g. `create_topic`.
constexpr std::string_view command_of(const Request& request) {
  constexpr std::string_view words[] = {"create_topic",
                                        "delete_topic",
                                        "list_topics",
                                        "join",
                                        "leave",
                                        "stats",
                                        "delete_group",
                                        "pause",
                                        "resume",
                                        "purge",
                                        "create_user",
                                        "delete_user",
                                        "set_password",
                                        "grant",
                                        "revoke",
                                        "list_users",
                                        "ping",
                                        "version",
                                        "stats_all",
                                        "set_group",
                                        "list_dead",
                                        "retry_dead",
                                        "purge_dead",
                                        "list_delayed",
                                        "cancel_delayed",
                                        "hurry_delayed",
                                        "reschedule_delayed",
                                        "set_schedule",
                                        "list_schedules",
                                        "pause_schedule",
                                        "resume_schedule",
                                        "remove_schedule",
                                        "set_topic",
                                        "reload",
                                        "seek_group",
                                        "trace"};
  static_assert(std::size(words) == std::variant_size_v<Request>);
  return words[request.index()];
}

// Replies. Every reply carries `cmd` and `status`; an ErrorReply has status "error".

struct ErrorReply {
  std::string cmd;  ///< repeats the request's `cmd`; empty if the request had none
  ErrorCode code = ErrorCode::internal;
  std::string description;
};

/// The topic that create_topic has created.
struct CreatedTopic {
  TopicSettings settings;
  std::string topic_template = {};  ///< the pattern of the template that gave defaults; empty: none
  friend bool operator==(const CreatedTopic&, const CreatedTopic&) = default;
};

/// The reply to create_topic, set_topic, delete_topic, leave, delete_group, pause, resume, purge, set_group,
/// seek_group, retry_dead, purge_dead, cancel_delayed, hurry_delayed, reschedule_delayed, ping and the
/// requests that change users or schedules. It reports success only.
struct OkReply {
  std::string cmd;
  std::string description;  ///< left out when empty
  /// leave of a consumer's endpoint: how many messages the endpoint was given in total. A consumer that has
  /// received that many has received all of them and can close.
  std::optional<std::uint64_t> messages_handed;
  /// purge: how many messages were dropped or skipped. retry_dead, purge_dead: how many were dead.
  std::optional<std::uint64_t> messages = {};
  std::uint64_t unreadable = 0;                  ///< retry_dead, purge_dead: see DeadCount; left out when 0
  std::optional<ReturnedLetters> returned = {};  ///< retry_dead on a dead-letter topic
  /// cancel_delayed, hurry_delayed, reschedule_delayed. Its number of messages is also in `messages`.
  std::optional<DelayedCount> delayed = {};
  std::optional<GroupMove> moved = {};       ///< seek_group
  std::optional<CreatedTopic> created = {};  ///< create_topic
};

struct VersionReply {
  std::string version;
  int protocol = 1;
};

/// The secret that a join returns for connecting. A plain ZeroMQ socket sends id and secret as user name and
/// password (mechanism PLAIN); a session sends `ID.SECRET` in its first frame.
struct Ticket {
  std::string id;
  Secret secret;
  std::uint64_t expires_ms = 0;  ///< ms since 1970; a client that connects later has to join again first
  /// Returns `ID.SECRET`.
  [[nodiscard]] Secret text() const { return id + "." + secret.expose(); }
  friend bool operator==(const Ticket&, const Ticket&) = default;
};

/// The identity that a session's client must find behind a TCP address.
struct Tls {
  std::string certificate_sha256;  ///< SHA-256 of the certificate in DER; 64 hexadecimal digits
  friend bool operator==(const Tls&, const Tls&) = default;
};

struct JoinReply {
  std::string topic;
  std::string bind_uri;
  std::optional<Ticket> ticket;  ///< missing for raw consumers
  std::string server_key =
      {};  ///< the public CURVE key to connect to, Z85; empty: the endpoint is not encrypted by CURVE
  std::optional<Tls> tls = {};  ///< set for sessions that are encrypted by TLS
};

/// The settings of a group of this name, whether or not there is one now.
struct GroupListing {
  std::string group;
  GroupSettings settings;
  friend bool operator==(const GroupListing&, const GroupListing&) = default;
};

struct TopicListing {
  std::string topic;
  TopicSettings settings;
  bool open = false;                      ///< as in TopicStats; settings.open is the value at creation
  bool open_by_broker = false;            ///< as in TopicStats
  std::vector<GroupListing> groups = {};  ///< with settings other than the defaults; only if asked for
};

struct ListReply {
  std::vector<TopicListing> topics;  ///< ordered by name
  std::string continue_after = {};   ///< the last name of a page that others follow; empty: none follows
};

/// A user, without its secrets.
struct UserListing {
  std::string user_id;
  bool admin = false;
  std::optional<std::uint32_t> uid;
  std::vector<TopicRight> rights;
};

struct UserListReply {
  std::vector<UserListing> users;  ///< ordered by name
};

using Reply =
    std::variant<ErrorReply, OkReply, VersionReply, JoinReply, ListReply, UserListReply, TopicStats,
                 BrokerStats, StatsAllReply, DeadPage, DelayedPage, SchedulePage, ReloadReply, MessageTrace>;

// Wire words.

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

/// The number of words of an enumeration.
template <typename Enum>
inline constexpr int word_count = 2;
template <>
inline constexpr int word_count<BrokerType> = 4;
template <>
inline constexpr int word_count<JoinType> = 4;
template <>
inline constexpr int word_count<Overflow> = 3;
template <>
inline constexpr int word_count<DeadCause> = 3;
template <>
inline constexpr int word_count<MovedBy> = 3;
template <>
inline constexpr int word_count<StoredState> = 4;
template <>
inline constexpr int word_count<MessageState> = 11;

/// Returns the enumerator of a wire word; nothing for an unknown word: `from_word<Overflow>("block")`.
template <typename Enum>
constexpr std::optional<Enum> from_word(std::string_view word) {
  for (int i = 0; i < word_count<Enum>; ++i) {
    if (to_word(static_cast<Enum>(i)) == word) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

/// Returns the words of an enumeration as an error names them, such as "block, reject, drop_oldest".
template <typename Enum>
std::string words_text() {
  std::string text;
  for (int i = 0; i < word_count<Enum>; ++i) {
    if (i > 0) text += ", ";
    text += to_word(static_cast<Enum>(i));
  }
  return text;
}

/// The name of the consumer group that all plain `pull` consumers share.
inline constexpr std::string_view default_group = "default";

}  // namespace lightq::inline v1::protocol
