/// Encodes the catalogue's changes as JSON and decodes them. Layer: control.
#include "control/catalogue/catalogue_record.hpp"

#include <algorithm>

#include <lightq/base/z85.hpp>
#include <lightq/protocol/json_groups.hpp>
#include <lightq/protocol/json_rights.hpp>
#include <lightq/protocol/json_schedules.hpp>
#include <lightq/protocol/json_settings.hpp>

namespace lightq::broker {

namespace {

using protocol::ConnectionType;
using protocol::detail::FieldReader;
using protocol::detail::Json;
using protocol::detail::number_max;
using protocol::detail::OrderedJson;

constexpr std::size_t argon2_bytes_max = 256;
constexpr std::size_t key_id_bytes_max = 64;
constexpr std::string_view role_words[] = {"produce", "pull", "sub"};

struct Encoder {
  OrderedJson operator()(const TopicAdded& change) const {
    const auto& definition = change.entry.definition;
    OrderedJson to{{"op", "topic"}, {"id", definition.id.value}, {"topic", definition.name.text()}};
    protocol::detail::write_settings(to, definition.settings);
    if (change.entry.credential_id != 0) to["credential"] = change.entry.credential_id;
    if (definition.paused) to["paused"] = true;
    if (definition.log_id != 0) to["log"] = definition.log_id;
    return to;
  }
  OrderedJson operator()(const TopicRemoved& change) const {
    return {{"op", "topic_removed"}, {"id", change.topic.value}, {"at_ms", change.at_ms}};
  }
  OrderedJson operator()(const TopicPaused& change) const {
    return {{"op", "topic_paused"}, {"id", change.topic.value}, {"paused", change.paused}};
  }
  /// A broker from before messages expired keeps it as it is.
  OrderedJson operator()(const TopicTtl& change) const {
    return {{"op", "topic_ttl"},
            {"id", change.topic.value},
            {"message_ttl_ms", change.message_ttl_ms},
            {"optional", true}};
  }
  /// An older broker refuses it, because it would drop messages by settings that are not in force any more.
  OrderedJson operator()(const TopicChanged& change) const {
    OrderedJson to{{"op", "topic_settings"}, {"id", change.topic.value}};
    protocol::detail::write_topic_change(to, change.change);
    return to;
  }
  OrderedJson operator()(const TopicLog& change) const {
    return {{"op", "topic_log"}, {"id", change.topic.value}, {"log", change.log_id}};
  }
  OrderedJson operator()(const CredentialAdded& change) const {
    const auto& credential = change.credential;
    return {{"op", "credential"},
            {"id", credential.id},
            {"user_id", credential.user_id},
            {"argon2", credential.argon2}};
  }
  OrderedJson operator()(const TopicCredential& change) const {
    return {{"op", "topic_credential"}, {"id", change.topic.value}, {"credential", change.credential_id}};
  }
  OrderedJson operator()(const UserPut& change) const {
    const UserRecord& user = change.user;
    OrderedJson to{{"op", "user"},
                   {"id", user.id},
                   {"user_id", user.name()},
                   {"generation", user.generation},
                   {"credential", user.credential.id}};
    if (!user.credential.argon2.empty()) to["argon2"] = user.credential.argon2;
    if (user.is_admin) to["admin"] = true;
    if (user.uid) to["uid"] = *user.uid;
    if (!user.rights.empty()) to["rights"] = protocol::detail::list_of_rights(user.rights);
    return to;
  }
  OrderedJson operator()(const UserRemoved& change) const {
    return {{"op", "user_removed"}, {"id", change.id}};
  }
  OrderedJson operator()(const EndpointPut& change) const {
    const auto& endpoint = change.endpoint;
    OrderedJson to{{"op", "endpoint"},
                   {"id", endpoint.id},
                   {"topic_id", endpoint.topic.value},
                   {"role", role_words[static_cast<int>(endpoint.role)]},
                   {"transport", to_word(endpoint.transport)},
                   {"port", endpoint.port}};
    if (endpoint.connection_type != ConnectionType::zmq) {
      to["connection_type"] = to_word(endpoint.connection_type);
    }
    if (endpoint.user != 0) to["user"] = endpoint.user;
    return to;
  }
  OrderedJson operator()(const EndpointRemoved& change) const {
    return {{"op", "endpoint_removed"}, {"id", change.id}, {"at_ms", change.at_ms}};
  }
  OrderedJson operator()(const PortReleased& change) const {
    return {{"op", "port_released"}, {"port", change.port}, {"at_ms", change.at_ms}};
  }
  OrderedJson operator()(const NextIds& change) const {
    return {{"op", "next_ids"},
            {"topic", change.topic},
            {"credential", change.credential},
            {"endpoint", change.endpoint}};
  }
  OrderedJson operator()(const ClientKeyPut& change) const {
    const auto& record = change.record;
    OrderedJson to = of_key("client_key", record.key, record.grant);
    to["expires_ms"] = record.expires_ms;
    if (record.holder.user != 0) to["user"] = record.holder.user;
    if (record.holder.generation != 0) to["generation"] = record.holder.generation;
    return to;
  }
  OrderedJson operator()(const ClientKeyRemoved& change) const {
    return of_key("client_key_removed", change.key, change.grant);
  }
  OrderedJson operator()(const TicketKeyNamed& change) const {
    return {{"op", "ticket_key"}, {"key_id", change.key_id}};
  }
  OrderedJson operator()(const AdministratorPut& change) const {
    return {{"op", "administrator"},
            {"generation", change.administrator.generation},
            {"argon2", change.administrator.argon2}};
  }
  /// A broker from before there were settings of groups keeps both kinds as they are.
  OrderedJson operator()(const GroupPut& change) const {
    OrderedJson to{{"op", "group"}, {"id", change.topic.value}, {"group", change.group}, {"optional", true}};
    protocol::detail::write_group_change(to, protocol::detail::change_to(change.setup.settings));
    if (change.setup.dead_letter_topic != TopicId{})
      to["dead_letter_topic_id"] = change.setup.dead_letter_topic.value;
    return to;
  }
  OrderedJson operator()(const GroupRemoved& change) const {
    return {{"op", "group_removed"}, {"id", change.topic.value}, {"group", change.group}, {"optional", true}};
  }
  /// A broker from before there were schedules keeps both kinds as they are. No message is published there.
  OrderedJson operator()(const SchedulePut& change) const {
    const RecurringSchedule& schedule = change.schedule;
    OrderedJson to{{"op", "schedule"},
                   {"id", change.topic.value},
                   {"name", change.name},
                   {"optional", true},
                   {"incarnation", schedule.incarnation},
                   {"since_us", schedule.since.us}};
    if (schedule.paused) to["paused"] = true;
    protocol::detail::write_schedule(to, schedule.settings);
    return to;
  }
  OrderedJson operator()(const ScheduleRemoved& change) const {
    return {
        {"op", "schedule_removed"}, {"id", change.topic.value}, {"name", change.name}, {"optional", true}};
  }
  OrderedJson operator()(const UnknownChange& change) const { return OrderedJson::parse(change.text); }

 private:
  static OrderedJson of_key(std::string_view op, const CurvePublicKey& key, const Grant& grant) {
    return {{"op", op},
            {"key", to_z85(key)},
            {"topic_id", grant.topic.value},
            {"role", role_words[static_cast<int>(grant.role)]}};
  }
};

/// Parses the fields of a change. Ids are never 0.
class Decoder {
 public:
  /// `text` is the JSON text of `object`.
  Decoder(const Json& object, std::string_view text) : fields_(object), text_(text) {}

  Result<CatalogueChange> read() {
    const auto op = fields_.text("op", 1, 64);
    auto change = read(op);
    if (!change && !fields_.error()) return unknown(op);
    if (fields_.error()) return Error{ErrorCode::corrupt, "catalogue record: " + fields_.error()->message};
    return *change;
  }

 private:
  // A change of an unknown kind is refused unless it says that it is optional.
  Result<CatalogueChange> unknown(const std::string& op) {
    const std::uint64_t version = op == "format" ? fields_.number("version", 1, number_max, 1) : 1;
    const bool optional = fields_.boolean("optional", op == "format");
    if (fields_.error()) return Error{ErrorCode::corrupt, "catalogue record: " + fields_.error()->message};
    if (version != 1)
      return Error{ErrorCode::foreign_format, "it is of version " + std::to_string(version) + ", not 1"};
    if (!optional)
      return Error{ErrorCode::foreign_format,
                   "it has a change \"" + op + "\", which this version does not know"};
    return CatalogueChange(UnknownChange{std::string(text_)});
  }

  std::optional<CatalogueChange> read(std::string_view op) {
    if (op == "topic") return topic_added();
    if (op == "topic_removed") return TopicRemoved{{id("id")}, at_ms()};
    if (op == "topic_paused") return TopicPaused{{id("id")}, fields_.boolean("paused", false)};
    if (op == "topic_ttl")
      return TopicTtl{{id("id")}, fields_.number("message_ttl_ms", 0, limits::ttl_ms_max, 0)};
    if (op == "topic_settings") return TopicChanged{{id("id")}, protocol::detail::read_topic_change(fields_)};
    if (op == "topic_log") return TopicLog{{id("id")}, log_id()};
    if (op == "credential") return credential_added();
    if (op == "topic_credential") return TopicCredential{{id("id")}, id("credential")};
    if (op == "user") return user_put();
    if (op == "user_removed") return UserRemoved{id("id")};
    if (op == "endpoint") return endpoint_put();
    if (op == "endpoint_removed") return EndpointRemoved{id("id"), at_ms()};
    if (op == "port_released") return PortReleased{port(), at_ms()};
    if (op == "next_ids") return NextIds{id("topic"), id("credential"), id("endpoint")};
    if (op == "client_key") return client_key_put();
    if (op == "client_key_removed") return ClientKeyRemoved{key(), {{id("topic_id")}, role()}};
    if (op == "ticket_key") return TicketKeyNamed{fields_.text("key_id", 1, key_id_bytes_max)};
    if (op == "administrator") return administrator_put();
    if (op == "group") return GroupPut{{id("id")}, name_of("group"), group_setup()};
    if (op == "group_removed") return GroupRemoved{{id("id")}, name_of("group")};
    if (op == "schedule") return SchedulePut{{id("id")}, name_of("name"), schedule()};
    if (op == "schedule_removed") return ScheduleRemoved{{id("id")}, name_of("name")};
    return std::nullopt;
  }

  std::optional<CatalogueChange> topic_added() {
    const auto name = fields_.name("topic");
    if (!name) return std::nullopt;
    TopicEntry entry{{{id("id")}, *name, protocol::detail::read_settings(fields_)}, 0};
    entry.credential_id = fields_.number("credential", 0, number_max, 0);
    entry.definition.paused = fields_.boolean("paused", false);
    entry.definition.log_id = log_id();
    return TopicAdded{std::move(entry)};
  }
  CatalogueChange credential_added() {
    return CredentialAdded{{id("id"), fields_.text("user_id", 1, limits::user_id_bytes_max),
                            fields_.text("argon2", 1, argon2_bytes_max)}};
  }
  CatalogueChange user_put() {
    constexpr std::uint64_t generation_max = 0xFFFFFFFF;
    UserRecord user;
    user.id = id("id");
    user.generation = static_cast<std::uint32_t>(fields_.number("generation", 1, generation_max, 1));
    user.credential = {id("credential"), fields_.text("user_id", 1, limits::user_id_bytes_max),
                       fields_.text("argon2", 1, argon2_bytes_max, true)};
    user.is_admin = fields_.boolean("admin", false);
    user.uid = protocol::detail::read_uid(fields_);
    user.rights = protocol::detail::read_rights(fields_, "rights");
    return UserPut{std::move(user)};
  }
  std::optional<CatalogueChange> endpoint_put() {
    EndpointRecord endpoint;
    endpoint.id = id("id");
    endpoint.topic = {id("topic_id")};
    endpoint.role = role();
    if (fields_.error()) return std::nullopt;
    endpoint.transport = fields_.word<protocol::Transport>("transport", "tcp, ipc", protocol::Transport::tcp);
    endpoint.port = port();
    endpoint.connection_type =
        fields_.word<ConnectionType>("connection_type", "zmq, socket", ConnectionType::zmq);
    if (endpoint.connection_type == ConnectionType::socket && endpoint.role != EndpointRole::pull) {
      fields_.fail("connection_type", "socket needs the role pull");
    }
    endpoint.user = fields_.number("user", 0, number_max, 0);
    return EndpointPut{endpoint};
  }

  CatalogueChange client_key_put() {
    ClientKeyRecord record{key(), {{id("topic_id")}, role()}, 0, {}};
    record.expires_ms = fields_.number("expires_ms", 0, number_max, 0);
    record.holder.user = fields_.number("user", 0, number_max, 0);
    record.holder.generation = static_cast<std::uint32_t>(fields_.number("generation", 0, UINT32_MAX, 0));
    return ClientKeyPut{record};
  }

  CatalogueChange administrator_put() {
    if (!fields_.has("generation")) fields_.fail("generation", "missing");
    return AdministratorPut{{static_cast<std::uint32_t>(fields_.number("generation", 1, UINT32_MAX, 1)),
                             fields_.text("argon2", 1, argon2_bytes_max)}};
  }

  /// Returns the name of a group or a schedule.
  std::string name_of(const char* field) {
    const auto name = fields_.name(field);
    return name ? name->text() : std::string();
  }
  RecurringSchedule schedule() {
    RecurringSchedule schedule{protocol::detail::read_schedule(fields_)};
    schedule.incarnation = id("incarnation");
    schedule.since = {static_cast<std::int64_t>(fields_.number("since_us", 0, number_max, 0))};
    schedule.paused = fields_.boolean("paused", false);
    return schedule;
  }
  GroupSetup group_setup() {
    return {protocol::detail::read_group_change(fields_).applied_to({}),
            {fields_.number("dead_letter_topic_id", 0, number_max, 0)}};
  }
  EndpointRole role() {
    const auto word = fields_.text("role", 1, 64);
    int found = -1;
    for (int i = 0; i < 3; ++i) found = word == role_words[i] ? i : found;
    if (found < 0) fields_.fail("role", "unknown");
    return static_cast<EndpointRole>(std::max(found, 0));
  }
  CurvePublicKey key() {
    const auto found = curve_key_of_z85(fields_.text("key", 1, curve_key_characters));
    if (!found) fields_.fail("key", "not a public key");
    return found.value_or(CurvePublicKey{});
  }
  std::uint64_t id(const char* name) {
    if (!fields_.has(name)) fields_.fail(name, "missing");
    return fields_.number(name, 1, number_max, 1);
  }
  std::uint32_t log_id() { return static_cast<std::uint32_t>(fields_.number("log", 0, UINT32_MAX, 0)); }
  std::int64_t at_ms() { return static_cast<std::int64_t>(fields_.number("at_ms", 0, number_max, 0)); }
  std::uint16_t port() { return static_cast<std::uint16_t>(fields_.number("port", 0, 65535, 0)); }

  FieldReader fields_;
  std::string_view text_;
};

}  // namespace

std::string encode(const CatalogueChange& change) {
  return protocol::detail::dump(std::visit(Encoder{}, change));
}

Result<CatalogueChange> decode_change(std::string_view text) {
  const auto object = protocol::detail::parse_object(text, limits::request_bytes_max);
  if (!object) return Error{ErrorCode::corrupt, "catalogue record: " + object.error().message};
  return Decoder(object.value(), text).read();
}

}  // namespace lightq::broker
