/// Converts control requests to and from JSON. docs/protocol.md specifies every field. Layer: protocol.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include <lightq/impl/protocol/json_request_writer.hpp>
#include <lightq/protocol/control.hpp>
#include <lightq/protocol/json_delayed.hpp>
#include <lightq/protocol/json_fields.hpp>
#include <lightq/protocol/json_functions.hpp>
#include <lightq/protocol/json_groups.hpp>
#include <lightq/protocol/json_rights.hpp>
#include <lightq/protocol/json_schedules.hpp>
#include <lightq/protocol/json_settings.hpp>

namespace lightq::inline v1::protocol {

namespace detail {

inline constexpr std::size_t bind_uri_bytes_max = 512;
inline constexpr std::size_t cmd_bytes_max = 64;

inline Credentials read_credentials(FieldReader& fields, const char* user_id, const char* password) {
  return {fields.text(user_id, 1, limits::user_id_bytes_max),
          fields.text(password, 1, limits::password_bytes_max)};
}
inline Credentials read_admin(FieldReader& fields) {
  return read_credentials(fields, "admin_user_id", "admin_password");
}
/// Returns the topic's credentials; empty ones if both fields are missing.
inline Credentials read_optional_user(FieldReader& fields) {
  if (!fields.has_either("user_id", "password")) return {};
  return read_credentials(fields, "user_id", "password");
}
/// Returns the admin's credentials if `admin_user_id` or `admin_password` is given, otherwise the topic's.
inline Credentials read_either(FieldReader& fields, bool& as_admin) {
  as_admin = fields.has("admin_user_id") || fields.has("admin_password");
  return as_admin ? read_admin(fields) : read_optional_user(fields);
}

/// The members that requests on a topic have in common.
struct OnTopic {
  Credentials user;
  TopicName topic;  ///< any, if the reader has an error
  bool as_admin = false;
};
inline OnTopic read_on_topic(FieldReader& fields) {
  bool as_admin = false;
  auto user = read_either(fields, as_admin);
  auto topic = fields.name("topic");
  return {std::move(user), topic ? *std::move(topic) : *TopicName::parse(default_group), as_admin};
}

/// Reads a name that may be left out. Returns an empty text then.
inline std::string read_optional_name(FieldReader& fields, const char* name) {
  const auto given = fields.has(name) ? fields.name(name) : std::nullopt;
  return given ? given->text() : std::string();
}

/// Refuses members that only lists have.
inline void refuse_members(FieldReader& fields, std::initializer_list<const char*> names, const char* why) {
  for (const char* const name : names) {
    if (fields.has(name)) fields.fail(name, why);
  }
}

inline Result<Request> read_create_topic(FieldReader& fields) {
  auto admin = read_admin(fields);
  auto topic = fields.name("topic");
  const auto settings = read_setting_values(fields, BrokerType::queue);
  auto user = read_optional_user(fields);
  // Without a type, a template of the broker may set it.
  if (!fields.error() && fields.has("broker_type")) check_applicable(fields, settings.broker_type);
  if (fields.error()) return *fields.error();
  return Request(CreateTopic{std::move(admin), *std::move(topic), settings, std::move(user),
                             read_given_settings(fields)});
}

inline Result<Request> read_delete_topic(FieldReader& fields) {
  auto admin = read_admin(fields);
  auto topic = fields.name("topic");
  if (fields.error()) return *fields.error();
  return Request(DeleteTopic{std::move(admin), *std::move(topic)});
}

inline Result<Request> read_set_topic(FieldReader& fields) {
  auto [user, topic, as_admin] = read_on_topic(fields);
  const auto change = read_topic_change(fields);
  fields.need_any(!change.empty(), "message_ttl_ms");
  if (fields.error()) return *fields.error();
  return Request(SetTopic{std::move(user), std::move(topic), change, as_admin});
}

inline Result<Request> read_list_topics(FieldReader& fields) {
  ListTopics asked;
  asked.admin = read_admin(fields);
  asked.groups = fields.boolean("groups", false);
  if (fields.has("after")) asked.after = fields.name("after");
  if (asked.after && !asked.groups) fields.fail("after", "only with groups");
  if (fields.error()) return *fields.error();
  return Request(std::move(asked));
}

inline std::optional<CurvePublicKey> read_client_key(FieldReader& fields) {
  if (!fields.has("client_key")) return std::nullopt;
  const std::string text = fields.text("client_key", curve_key_characters, curve_key_characters);
  auto key = curve_key_of_z85(text);
  if (!key && !fields.error()) fields.fail("client_key", "must be a public key in Z85");
  return key;
}

inline Result<Request> read_join(FieldReader& fields) {
  bool as_admin = false;
  auto user = read_either(fields, as_admin);
  auto topic = fields.name("topic");
  const auto type = fields.word<JoinType>("type", "pub, push, pull, sub", std::nullopt);
  const auto connection_type =
      fields.word<ConnectionType>("connection_type", "zmq, socket", ConnectionType::zmq);
  const auto transport = fields.word<Transport>("transport", "tcp, ipc", Transport::tcp);
  const auto delivery = fields.word<Delivery>("delivery", "plain, session", Delivery::plain);
  const auto client_key = read_client_key(fields);
  if (fields.error()) return *fields.error();
  return Request(Join{std::move(user), *std::move(topic), type, connection_type, transport, as_admin,
                      delivery, client_key});
}

inline Result<Request> read_leave(FieldReader& fields) {
  auto [user, topic, as_admin] = read_on_topic(fields);
  auto bind_uri = fields.text("bind_uri", 1, bind_uri_bytes_max);
  if (fields.error()) return *fields.error();
  return Request(Leave{std::move(user), std::move(topic), std::move(bind_uri), as_admin});
}

inline Result<Request> read_stats(FieldReader& fields) {
  Stats stats;
  stats.user = read_either(fields, stats.as_admin);
  if (fields.has("topic")) stats.topic = fields.name("topic");
  stats.members_max = fields.number("members_max", 0, limits::stats_members_max, 0);
  if (fields.error()) return *fields.error();
  if (!stats.topic && !stats.as_admin) {
    fields.fail("topic", "missing; only the admin (admin_user_id, admin_password) may leave it out");
    return *fields.error();
  }
  return Request(std::move(stats));
}

inline Result<Request> read_stats_all(FieldReader& fields) {
  StatsAll asked;
  asked.admin = read_admin(fields);
  if (fields.has("after")) asked.after = fields.name("after");
  asked.topics_max = fields.number("topics_max", 1, limits::stats_page_topics_max, asked.topics_max);
  if (fields.error()) return *fields.error();
  return Request(std::move(asked));
}

inline Result<Request> read_delete_group(FieldReader& fields) {
  auto [user, topic, as_admin] = read_on_topic(fields);
  auto group = fields.has("group") ? fields.name("group") : TopicName::parse(default_group);
  if (fields.error()) return *fields.error();
  return Request(DeleteGroup{std::move(user), std::move(topic), group->text(), as_admin});
}

/// Reads a request on a topic, or on a group of it if `group` is given.
template <typename Asked>
Result<Request> read_of_group(FieldReader& fields) {
  auto [user, topic, as_admin] = read_on_topic(fields);
  auto group = read_optional_name(fields, "group");
  if (fields.error()) return *fields.error();
  return Request(Asked{std::move(user), std::move(topic), std::move(group), as_admin});
}

inline Result<Request> read_set_group(FieldReader& fields) {
  auto [user, topic, as_admin] = read_on_topic(fields);
  const auto group = fields.name("group");
  auto change = read_group_change(fields);
  fields.need_any(!change.empty(), "max_attempts");
  if (fields.error()) return *fields.error();
  return Request(SetGroup{std::move(user), std::move(topic), group->text(), std::move(change), as_admin});
}

inline Result<Request> read_seek_group(FieldReader& fields) {
  auto [user, topic, as_admin] = read_on_topic(fields);
  const auto group = fields.name("group");
  const auto to = read_group_place(fields);
  const bool preview = fields.boolean("preview", false);
  if (fields.error()) return *fields.error();
  return Request(SeekGroup{std::move(user), std::move(topic), group->text(), to, preview, as_admin});
}

inline Result<Request> read_list_dead(FieldReader& fields) {
  auto [user, topic, as_admin] = read_on_topic(fields);
  auto group = read_optional_name(fields, "group");
  ListDead asked{std::move(user), std::move(topic), std::move(group), read_dead_filter(fields)};
  if (fields.has("after_offset")) asked.after_offset = fields.number("after_offset", 0, number_max, 0);
  asked.limit = fields.number("limit", 1, DeadPage::messages_max, DeadPage::messages_default);
  asked.as_admin = as_admin;
  if (fields.error()) return *fields.error();
  return Request(std::move(asked));
}

inline Result<Request> read_trace(FieldReader& fields) {
  auto [user, topic, as_admin] = read_on_topic(fields);
  const auto offset = fields.needed_number("offset", "the offset of a message", 0, number_max);
  if (fields.error()) return *fields.error();
  return Request(Trace{std::move(user), std::move(topic), offset, as_admin});
}

/// Reads `retry_dead` or `purge_dead`.
template <typename Asked>
Result<Request> read_of_dead(FieldReader& fields) {
  auto [user, topic, as_admin] = read_on_topic(fields);
  auto group = read_optional_name(fields, "group");
  auto filter = read_dead_filter(fields);
  const bool preview = fields.boolean("preview", false);
  refuse_members(fields, {"after_offset", "limit"}, "only for list_dead; offsets and ranges select messages");
  if (fields.error()) return *fields.error();
  return Request(
      Asked{std::move(user), std::move(topic), std::move(group), std::move(filter), preview, as_admin});
}

inline Result<Request> read_purge(FieldReader& fields) {
  auto purge = read_of_group<Purge>(fields);
  if (!purge || !fields.has("delayed")) return purge;
  auto& asked = std::get<Purge>(*purge);
  asked.delayed = fields.boolean("delayed", false);
  if (asked.delayed && !asked.group.empty()) fields.fail("delayed", "not with a group");
  if (fields.error()) return *fields.error();
  return purge;
}

inline Result<Request> read_list_delayed(FieldReader& fields) {
  auto [user, topic, as_admin] = read_on_topic(fields);
  ListDelayed asked{std::move(user), std::move(topic), read_delayed_filter(fields)};
  asked.after = read_delayed_place(fields, "after_due_us", "after_number");
  asked.limit = fields.number("limit", 1, DelayedPage::messages_max, DelayedPage::messages_default);
  asked.payload_bytes = fields.number("payload_bytes", 0, DelayedPage::payload_bytes_max, 0);
  asked.as_admin = as_admin;
  if (fields.error()) return *fields.error();
  return Request(std::move(asked));
}

/// Reads `cancel_delayed`, `hurry_delayed` or `reschedule_delayed`.
template <typename Asked>
Result<Request> read_of_delayed(FieldReader& fields) {
  auto [user, topic, as_admin] = read_on_topic(fields);
  Asked asked{std::move(user), std::move(topic), read_delayed_filter(fields)};
  if constexpr (requires { asked.due; }) asked.due = read_new_due(fields);
  asked.preview = fields.boolean("preview", false);
  asked.as_admin = as_admin;
  refuse_members(fields, {"after_due_us", "after_number", "limit", "payload_bytes"}, "only for list_delayed");
  if (fields.error()) return *fields.error();
  return Request(std::move(asked));
}

inline Result<Request> read_set_schedule(FieldReader& fields) {
  auto [user, topic, as_admin] = read_on_topic(fields);
  const auto name = fields.name("name");
  auto settings = read_schedule(fields);
  if (fields.error()) return *fields.error();
  return Request(SetSchedule{std::move(user), std::move(topic), name->text(), std::move(settings), as_admin});
}

inline Result<Request> read_list_schedules(FieldReader& fields) {
  ListSchedules asked;
  asked.user = read_either(fields, asked.as_admin);
  if (fields.has("topic")) asked.topic = fields.name("topic");
  asked.name = read_optional_name(fields, "name");
  asked.after = fields.text("after", 1, 2 * limits::topic_name_bytes_max + 1, true);
  asked.limit = fields.number("limit", 1, SchedulePage::schedules_max, SchedulePage::schedules_default);
  asked.times = fields.number("times", 0, SchedulePage::times_max, 1);
  if (!asked.topic && !asked.name.empty()) fields.fail("name", "needs topic");
  if (asked.name.empty() && asked.times > 1) fields.fail("times", "more than one needs name");
  if (fields.error()) return *fields.error();
  return Request(std::move(asked));
}

/// Reads `pause_schedule`, `resume_schedule` or `remove_schedule`.
template <typename Asked>
Result<Request> read_of_schedule(FieldReader& fields) {
  auto [user, topic, as_admin] = read_on_topic(fields);
  const auto name = fields.name("name");
  if (fields.error()) return *fields.error();
  return Request(Asked{std::move(user), std::move(topic), name->text(), as_admin});
}

inline Result<Request> read_create_user(FieldReader& fields) {
  CreateUser asked;
  asked.admin = read_admin(fields);
  asked.user.user_id = fields.text("user_id", 1, limits::user_id_bytes_max);
  asked.uid = read_uid(fields);
  const bool has_login = fields.has_any({"password", "uid"});
  if (!has_login || fields.has("password"))
    asked.user.password = fields.text("password", 1, limits::password_bytes_max);
  asked.is_admin = fields.boolean("admin", false);
  asked.rights = read_rights(fields, "rights");
  if (fields.error()) return *fields.error();
  return Request(std::move(asked));
}

inline Result<Request> read_delete_user(FieldReader& fields) {
  DeleteUser asked;
  asked.admin = read_admin(fields);
  asked.user_id = fields.text("user_id", 1, limits::user_id_bytes_max);
  if (fields.error()) return *fields.error();
  return Request(std::move(asked));
}

inline Result<Request> read_set_password(FieldReader& fields) {
  SetPassword asked;
  asked.asker = read_either(fields, asked.as_admin);
  if (fields.has("topic")) asked.topic = fields.name("topic");
  const bool named_elsewhere = asked.as_admin && asked.topic.has_value();
  asked.user_id = fields.text("user_id", 1, limits::user_id_bytes_max, named_elsewhere);
  asked.new_password = fields.text("new_password", 1, limits::password_bytes_max);
  if (fields.error()) return *fields.error();
  return Request(std::move(asked));
}

/// Reads `grant` or `revoke`.
template <typename Asked>
Result<Request> read_change_of_rights(FieldReader& fields) {
  Asked asked;
  asked.admin = read_admin(fields);
  asked.user_id = fields.text("user_id", 1, limits::user_id_bytes_max);
  asked.right = read_right(fields);
  if (fields.error()) return *fields.error();
  return Request(std::move(asked));
}

inline Result<Request> read_list_users(FieldReader& fields) {
  auto admin = read_admin(fields);
  if (fields.error()) return *fields.error();
  return Request(ListUsers{std::move(admin)});
}

inline Result<Request> read_reload(FieldReader& fields) {
  auto admin = read_admin(fields);
  if (fields.error()) return *fields.error();
  return Request(Reload{std::move(admin)});
}

/// Reads a command on users; returns nothing for any other command.
inline std::optional<Result<Request>> read_user_request(std::string_view cmd, FieldReader& fields) {
  if (cmd == "create_user") return read_create_user(fields);
  if (cmd == "delete_user") return read_delete_user(fields);
  if (cmd == "set_password") return read_set_password(fields);
  if (cmd == "grant") return read_change_of_rights<GrantRights>(fields);
  if (cmd == "revoke") return read_change_of_rights<RevokeRights>(fields);
  if (cmd == "list_users") return read_list_users(fields);
  return std::nullopt;
}

/// Reads a command on groups, their messages and dead messages; returns nothing for any other command.
inline std::optional<Result<Request>> read_group_request(std::string_view cmd, FieldReader& fields) {
  if (cmd == "delete_group") return read_delete_group(fields);
  if (cmd == "set_group") return read_set_group(fields);
  if (cmd == "seek_group") return read_seek_group(fields);
  if (cmd == "trace") return read_trace(fields);
  if (cmd == "list_dead") return read_list_dead(fields);
  if (cmd == "retry_dead") return read_of_dead<RetryDead>(fields);
  if (cmd == "purge_dead") return read_of_dead<PurgeDead>(fields);
  return std::nullopt;
}

/// Reads a command on delayed messages; returns nothing for any other command.
inline std::optional<Result<Request>> read_delayed_request(std::string_view cmd, FieldReader& fields) {
  if (cmd == "list_delayed") return read_list_delayed(fields);
  if (cmd == "cancel_delayed") return read_of_delayed<CancelDelayed>(fields);
  if (cmd == "hurry_delayed") return read_of_delayed<HurryDelayed>(fields);
  if (cmd == "reschedule_delayed") return read_of_delayed<RescheduleDelayed>(fields);
  return std::nullopt;
}

/// Reads a command on recurring schedules; returns nothing for any other command.
inline std::optional<Result<Request>> read_schedule_request(std::string_view cmd, FieldReader& fields) {
  if (cmd == "set_schedule") return read_set_schedule(fields);
  if (cmd == "list_schedules") return read_list_schedules(fields);
  if (cmd == "pause_schedule") return read_of_schedule<PauseSchedule>(fields);
  if (cmd == "resume_schedule") return read_of_schedule<ResumeSchedule>(fields);
  if (cmd == "remove_schedule") return read_of_schedule<RemoveSchedule>(fields);
  return std::nullopt;
}

inline Result<Request> read_request(std::string_view cmd, FieldReader& fields) {
  if (cmd == "create_topic") return read_create_topic(fields);
  if (cmd == "delete_topic") return read_delete_topic(fields);
  if (cmd == "set_topic") return read_set_topic(fields);
  if (cmd == "list_topics") return read_list_topics(fields);
  if (cmd == "join") return read_join(fields);
  if (cmd == "leave") return read_leave(fields);
  if (cmd == "stats") return read_stats(fields);
  if (cmd == "stats_all") return read_stats_all(fields);
  if (cmd == "pause") return read_of_group<Pause>(fields);
  if (cmd == "resume") return read_of_group<Resume>(fields);
  if (cmd == "purge") return read_purge(fields);
  if (cmd == "reload") return read_reload(fields);
  if (cmd == "ping") return Request(Ping{});
  if (cmd == "version") return Request(Version{});
  if (auto of_users = read_user_request(cmd, fields)) return *std::move(of_users);
  if (auto of_groups = read_group_request(cmd, fields)) return *std::move(of_groups);
  if (auto of_delayed = read_delayed_request(cmd, fields)) return *std::move(of_delayed);
  if (auto of_schedules = read_schedule_request(cmd, fields)) return *std::move(of_schedules);
  return Error{ErrorCode::invalid_cmd, "invalid_cmd"};
}

inline ParsedRequest read_parsed(const Json& object) {
  const auto found = object.find("cmd");
  const auto* cmd = found == object.end() ? nullptr : found->get_ptr<const std::string*>();
  if (cmd == nullptr) return {Error{ErrorCode::invalid_cmd, "invalid_cmd"}, {}};
  auto echoed = cmd->size() <= cmd_bytes_max ? *cmd : std::string();
  FieldReader fields(object);
  return {read_request(*cmd, fields), std::move(echoed)};
}

}  // namespace detail

LIGHTQ_INLINE ParsedRequest parse_request(std::string_view text, std::size_t bytes_max) {
  const auto object = detail::parse_object(text, bytes_max);
  if (!object) return {object.error(), {}};
  return detail::read_parsed(object.value());
}

LIGHTQ_INLINE Result<Request> parse_request_of(std::string_view text, const Credentials& asker,
                                               bool is_admin) {
  auto object = detail::parse_object(text, limits::request_bytes_max);
  if (!object) return object.error();
  if (asker.user_id.empty() || object->contains("admin_user_id")) return detail::read_parsed(*object).request;
  detail::Json as_manager = *object;
  as_manager["admin_user_id"] = asker.user_id;
  as_manager["admin_password"] = asker.password.expose();
  Result<Request> parsed = detail::read_parsed(as_manager).request;
  const auto needs_manager = [](const auto& request) { return requires { request.admin; }; };
  if (!parsed || is_admin || std::visit(needs_manager, *parsed)) return parsed;
  if (!object->contains("user_id")) (*object)["user_id"] = asker.user_id;
  if (!object->contains("password")) (*object)["password"] = asker.password.expose();
  return detail::read_parsed(*object).request;
}

LIGHTQ_INLINE std::string to_json(const Request& request) {
  detail::OrderedJson document{{"cmd", command_of(request)}};
  std::visit(detail::RequestWriter{document}, request);
  return detail::dump(document);
}

}  // namespace lightq::inline v1::protocol
