/// Layer: control.
#include "broker/control/catalogue_record.hpp"

#include <lightq/protocol/json_settings.hpp>

namespace lightq::broker {

namespace {

using protocol::ConnectionType;
using protocol::detail::FieldReader;
using protocol::detail::Json;
using protocol::detail::number_max;
using protocol::detail::OrderedJson;

constexpr std::size_t argon2_bytes_max = 256;
constexpr std::string_view role_words[] = {"produce", "pull", "sub"};

struct Encoder {
  OrderedJson operator()(const TopicAdded& change) const {
    const auto& definition = change.entry.definition;
    OrderedJson to{{"op", "topic"}, {"id", definition.id.value}, {"topic", definition.name.text()}};
    protocol::detail::write_settings(to, definition.settings);
    if (change.entry.credential_id != 0) to["credential"] = change.entry.credential_id;
    if (definition.paused) to["paused"] = true;
    return to;
  }
  OrderedJson operator()(const TopicRemoved& change) const {
    return {{"op", "topic_removed"}, {"id", change.topic.value}, {"at_ms", change.at_ms}};
  }
  OrderedJson operator()(const TopicPaused& change) const {
    return {{"op", "topic_paused"}, {"id", change.topic.value}, {"paused", change.paused}};
  }
  OrderedJson operator()(const CredentialAdded& change) const {
    const auto& credential = change.credential;
    return {{"op", "credential"},
            {"id", credential.id},
            {"user_id", credential.user_id},
            {"argon2", credential.argon2}};
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
};

/// Reads the fields of a change; an id is never 0.
class Decoder {
 public:
  explicit Decoder(const Json& object) : fields_(object) {}

  Result<CatalogueChange> read() {
    const auto op = fields_.text("op", 1, 64);
    const auto change = read(op);
    if (!change) fields_.fail("op", "unknown");
    if (fields_.error()) return Error{ErrorCode::corrupt, "catalogue record: " + fields_.error()->message};
    return *change;
  }

 private:
  std::optional<CatalogueChange> read(std::string_view op) {
    if (op == "topic") return topic_added();
    if (op == "topic_removed") return TopicRemoved{{id("id")}, at_ms()};
    if (op == "topic_paused") return TopicPaused{{id("id")}, fields_.boolean("paused", false)};
    if (op == "credential") return credential_added();
    if (op == "endpoint") return endpoint_put();
    if (op == "endpoint_removed") return EndpointRemoved{id("id"), at_ms()};
    if (op == "port_released") return PortReleased{port(), at_ms()};
    if (op == "next_ids") return NextIds{id("topic"), id("credential"), id("endpoint")};
    return std::nullopt;
  }

  std::optional<CatalogueChange> topic_added() {
    const auto name = fields_.name("topic");
    if (!name) return std::nullopt;
    TopicEntry entry{{{id("id")}, *name, protocol::detail::read_settings(fields_)}, 0};
    entry.credential_id = fields_.number("credential", 0, number_max, 0);
    entry.definition.paused = fields_.boolean("paused", false);
    return TopicAdded{std::move(entry)};
  }
  CatalogueChange credential_added() {
    return CredentialAdded{{id("id"), fields_.text("user_id", 1, limits::user_id_bytes_max),
                            fields_.text("argon2", 1, argon2_bytes_max)}};
  }
  std::optional<CatalogueChange> endpoint_put() {
    EndpointRecord endpoint;
    endpoint.id = id("id");
    endpoint.topic = {id("topic_id")};
    const auto role = fields_.text("role", 1, 64);
    int found = -1;
    for (int i = 0; i < 3; ++i) found = role == role_words[i] ? i : found;
    if (found < 0) fields_.fail("role", "unknown");
    if (fields_.error()) return std::nullopt;
    endpoint.role = static_cast<EndpointRole>(found);
    endpoint.transport = fields_.word<protocol::Transport>("transport", "tcp, ipc", protocol::Transport::tcp);
    endpoint.port = port();
    endpoint.connection_type =
        fields_.word<ConnectionType>("connection_type", "zmq, socket", ConnectionType::zmq);
    if (endpoint.connection_type == ConnectionType::socket && endpoint.role != EndpointRole::pull) {
      fields_.fail("connection_type", "socket goes with the role pull only");
    }
    return EndpointPut{endpoint};
  }

  std::uint64_t id(const char* name) {
    if (!fields_.has(name)) fields_.fail(name, "missing");
    return fields_.number(name, 1, number_max, 1);
  }
  std::int64_t at_ms() { return static_cast<std::int64_t>(fields_.number("at_ms", 0, number_max, 0)); }
  std::uint16_t port() { return static_cast<std::uint16_t>(fields_.number("port", 0, 65535, 0)); }

  FieldReader fields_;
};

}  // namespace

std::string encode(const CatalogueChange& change) {
  return protocol::detail::dump(std::visit(Encoder{}, change));
}

Result<CatalogueChange> decode_change(std::string_view text) {
  const auto object = protocol::detail::parse_object(text, limits::request_bytes_max);
  if (!object) return Error{ErrorCode::corrupt, "catalogue record: " + object.error().message};
  return Decoder(object.value()).read();
}

}  // namespace lightq::broker
