/// Control requests as JSON and back. docs/protocol.md specifies every field. Layer: protocol.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <lightq/protocol/control.hpp>
#include <lightq/protocol/json_fields.hpp>

namespace lightq::inline v1::protocol {

/// What became of a request's text.
struct ParsedRequest {
  Result<Request> request;
  std::string cmd;  ///< to echo in the answer, whether or not the request is good; empty where there is none
};

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
/// The topic's credentials; empty ones where both fields are left out.
inline Credentials read_optional_user(FieldReader& fields) {
  if (!fields.has("user_id") && !fields.has("password")) return {};
  return read_credentials(fields, "user_id", "password");
}
/// The admin's credentials where `admin_user_id` is given, otherwise the topic's.
inline Credentials read_either(FieldReader& fields, bool& as_admin) {
  as_admin = fields.has("admin_user_id") || fields.has("admin_password");
  return as_admin ? read_admin(fields) : read_optional_user(fields);
}

/// A setting that means nothing for the topic's broker_type is refused rather than ignored.
inline void check_applicable(FieldReader& fields, BrokerType type) {
  const bool ring = type == BrokerType::queue || type == BrokerType::queue_file;
  const bool files = type == BrokerType::file || type == BrokerType::queue_file;
  if (!ring && fields.has("ring_bytes")) fields.fail("ring_bytes", "only for broker_type queue, queue_file");
  if (type == BrokerType::direct && fields.has("overflow")) {
    fields.fail("overflow", "only for broker_type queue, file, queue_file");
  }
  for (const char* name :
       {"capacity_bytes", "retention_bytes", "retention_ms", "retention_messages", "segment_bytes"}) {
    if (!files && fields.has(name)) fields.fail(name, "only for broker_type file, queue_file");
  }
}

inline TopicSettings read_settings(FieldReader& fields) {
  using namespace limits;
  TopicSettings settings;
  settings.broker_type =
      fields.word<BrokerType>("broker_type", "queue, file, direct, queue_file", std::nullopt);
  settings.ring_bytes = fields.number("ring_bytes", ring_bytes_min, ring_bytes_max, ring_bytes_default);
  settings.overflow = fields.word<Overflow>("overflow", "block, reject, drop_oldest", Overflow::block);
  settings.capacity_bytes = fields.number("capacity_bytes", 0, number_max, 0);
  settings.retention_bytes = fields.number("retention_bytes", 0, number_max, 0);
  settings.retention_ms = fields.number("retention_ms", 0, number_max, 0);
  settings.retention_messages = fields.number("retention_messages", 0, number_max, 0);
  settings.segment_bytes =
      fields.number("segment_bytes", segment_bytes_min, segment_bytes_max, segment_bytes_default);
  settings.open = fields.boolean("open", false);
  if (!fields.error()) check_applicable(fields, settings.broker_type);
  return settings;
}

inline Result<Request> read_create_topic(FieldReader& fields) {
  auto admin = read_admin(fields);
  auto topic = fields.name("topic");
  const auto settings = read_settings(fields);
  auto user = read_optional_user(fields);
  if (fields.error()) return *fields.error();
  return Request(CreateTopic{std::move(admin), *std::move(topic), settings, std::move(user)});
}

inline Result<Request> read_delete_topic(FieldReader& fields) {
  auto admin = read_admin(fields);
  auto topic = fields.name("topic");
  if (fields.error()) return *fields.error();
  return Request(DeleteTopic{std::move(admin), *std::move(topic)});
}

inline Result<Request> read_list_topics(FieldReader& fields) {
  auto admin = read_admin(fields);
  if (fields.error()) return *fields.error();
  return Request(ListTopics{std::move(admin)});
}

inline Result<Request> read_join(FieldReader& fields) {
  bool as_admin = false;
  auto user = read_either(fields, as_admin);
  auto topic = fields.name("topic");
  const auto type = fields.word<JoinType>("type", "pub, push, pull, sub", std::nullopt);
  const auto connection_type =
      fields.word<ConnectionType>("connection_type", "zmq, socket", ConnectionType::zmq);
  const auto transport = fields.word<Transport>("transport", "tcp, ipc", Transport::tcp);
  if (fields.error()) return *fields.error();
  return Request(Join{std::move(user), *std::move(topic), type, connection_type, transport, as_admin});
}

inline Result<Request> read_leave(FieldReader& fields) {
  bool as_admin = false;
  auto user = read_either(fields, as_admin);
  auto topic = fields.name("topic");
  auto bind_uri = fields.text("bind_uri", 1, bind_uri_bytes_max);
  if (fields.error()) return *fields.error();
  return Request(Leave{std::move(user), *std::move(topic), std::move(bind_uri), as_admin});
}

inline Result<Request> read_stats(FieldReader& fields) {
  Stats stats;
  stats.user = read_either(fields, stats.as_admin);
  if (fields.has("topic")) stats.topic = fields.name("topic");
  if (fields.error()) return *fields.error();
  if (!stats.topic && !stats.as_admin) {
    fields.fail("topic", "missing; only the admin (admin_user_id, admin_password) may leave it out");
    return *fields.error();
  }
  return Request(std::move(stats));
}

inline Result<Request> read_delete_group(FieldReader& fields) {
  bool as_admin = false;
  auto user = read_either(fields, as_admin);
  auto topic = fields.name("topic");
  auto group = fields.has("group") ? fields.name("group") : TopicName::parse(default_group);
  if (fields.error()) return *fields.error();
  return Request(DeleteGroup{std::move(user), *std::move(topic), group->text(), as_admin});
}

inline Result<Request> read_request(std::string_view cmd, const Json& object) {
  FieldReader fields(object);
  if (cmd == "create_topic") return read_create_topic(fields);
  if (cmd == "delete_topic") return read_delete_topic(fields);
  if (cmd == "list_topics") return read_list_topics(fields);
  if (cmd == "join") return read_join(fields);
  if (cmd == "leave") return read_leave(fields);
  if (cmd == "stats") return read_stats(fields);
  if (cmd == "delete_group") return read_delete_group(fields);
  if (cmd == "ping") return Request(Ping{});
  if (cmd == "version") return Request(Version{});
  return Error{ErrorCode::invalid_cmd, "invalid_cmd"};
}

inline void write_credentials(OrderedJson& to, const Credentials& from, bool as_admin) {
  if (from.user_id.empty() && from.password.empty()) return;
  to[as_admin ? "admin_user_id" : "user_id"] = from.user_id;
  to[as_admin ? "admin_password" : "password"] = from.password;
}

/// Only what differs from the defaults, so that a setting which does not apply is not sent.
inline void write_settings(OrderedJson& to, const TopicSettings& settings) {
  const TopicSettings defaults;
  to["broker_type"] = to_word(settings.broker_type);
  if (settings.overflow != defaults.overflow) to["overflow"] = to_word(settings.overflow);
  const auto number = [&](const char* name, std::uint64_t value, std::uint64_t fallback) {
    if (value != fallback) to[name] = value;
  };
  number("ring_bytes", settings.ring_bytes, defaults.ring_bytes);
  number("capacity_bytes", settings.capacity_bytes, 0);
  number("retention_bytes", settings.retention_bytes, 0);
  number("retention_ms", settings.retention_ms, 0);
  number("retention_messages", settings.retention_messages, 0);
  number("segment_bytes", settings.segment_bytes, defaults.segment_bytes);
  if (settings.open) to["open"] = true;
}

/// Adds a request's fields to the document that holds its `cmd`.
struct RequestWriter {
  OrderedJson& to;

  void operator()(const CreateTopic& request) const {
    write_credentials(to, request.admin, true);
    to["topic"] = request.topic.text();
    write_settings(to, request.settings);
    write_credentials(to, request.user, false);
  }
  void operator()(const DeleteTopic& request) const {
    write_credentials(to, request.admin, true);
    to["topic"] = request.topic.text();
  }
  void operator()(const ListTopics& request) const { write_credentials(to, request.admin, true); }
  void operator()(const Join& request) const {
    to["connection_type"] = to_word(request.connection_type);
    to["type"] = to_word(request.type);
    if (request.transport != Transport::tcp) to["transport"] = to_word(request.transport);
    to["topic"] = request.topic.text();
    write_credentials(to, request.user, request.as_admin);
  }
  void operator()(const Leave& request) const {
    to["topic"] = request.topic.text();
    to["bind_uri"] = request.bind_uri;
    write_credentials(to, request.user, request.as_admin);
  }
  void operator()(const Stats& request) const {
    if (request.topic) to["topic"] = request.topic->text();
    write_credentials(to, request.user, request.as_admin);
  }
  void operator()(const DeleteGroup& request) const {
    to["topic"] = request.topic.text();
    to["group"] = request.group;
    write_credentials(to, request.user, request.as_admin);
  }
  void operator()(const Ping&) const {}
  void operator()(const Version&) const {}
};

}  // namespace detail

/// Reads a request. Unknown fields are ignored; a known one that is missing, of the wrong type or out of its
/// range is refused with a sentence that names it and its range, never its value. Any thread.
/// Errors: request_too_large, invalid_json, invalid_cmd, invalid_request.
inline ParsedRequest parse_request(std::string_view text) {
  const auto object = detail::parse_object(text, limits::request_bytes_max);
  if (!object) return {object.error(), {}};
  const auto found = object.value().find("cmd");
  const auto* cmd = found == object.value().end() ? nullptr : found.value().get_ptr<const std::string*>();
  if (cmd == nullptr) return {Error{ErrorCode::invalid_cmd, "invalid_cmd"}, {}};
  auto echoed = cmd->size() <= detail::cmd_bytes_max ? *cmd : std::string();
  return {detail::read_request(*cmd, object.value()), std::move(echoed)};
}

/// The request as one line of JSON, credentials included: never log it. Any thread.
inline std::string to_json(const Request& request) {
  detail::OrderedJson document{{"cmd", command_of(request)}};
  std::visit(detail::RequestWriter{document}, request);
  return detail::dump(document);
}

}  // namespace lightq::inline v1::protocol
