/// The OpenAPI document of the resources under /api/v1/. Layer: http.
#include "http/api_document.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lightq/base/limits.hpp>
#include <lightq/protocol/control.hpp>
#include <lightq/protocol/json_fields.hpp>
#include <lightq/version.hpp>

#include "base/ascii_case.hpp"
#include "http/control_command.hpp"

namespace lightq::broker {

namespace {

using Document = protocol::detail::OrderedJson;

constexpr std::string_view message_path = "/api/v1/topics/{topic}/messages";
constexpr std::string_view stream_path = "/api/v1/topics/{topic}/stream";
constexpr std::string_view browse_path = "/api/v1/topics/{topic}/browse";
constexpr std::string_view history_path = "/api/v1/topics/{topic}/history";
constexpr std::string_view events_path = "/api/v1/events";
constexpr std::string_view lease_path = "/api/v1/topics/{topic}/leases/{lease}/";

Document reference(const char* to) {
  return {{"$ref", to}};
}

Document text_schema() {
  return {{"type", "string"}};
}

Document number_schema(std::uint64_t least, std::uint64_t most) {
  return {{"type", "integer"}, {"minimum", least}, {"maximum", most}};
}

Document choice_schema(const std::vector<std::string>& words) {
  return {{"type", "string"}, {"enum", words}};
}

Document parameter(std::string_view name, std::string_view where, Document schema) {
  Document document{{"name", name}, {"in", where}};
  if (where == "path") document["required"] = true;
  document["schema"] = std::move(schema);
  return document;
}

/// Returns the schema of a variable in a path.
Document schema_of_variable(std::string_view name) {
  if (name == "user_id")
    return {{"type", "string"}, {"minLength", 1}, {"maxLength", limits::user_id_bytes_max}};
  const char* const pattern = name == "lease" ? "^[0-9a-f]{16}$" : "^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$";
  return {{"type", "string"}, {"pattern", pattern}};
}

/// Returns the parameters in a path's braces.
Document path_parameters(std::string_view path) {
  Document parameters = Document::array();
  for (std::size_t at = path.find('{'); at != std::string_view::npos; at = path.find('{', at + 1)) {
    const std::string_view name = path.substr(at + 1, path.find('}', at) - at - 1);
    parameters.push_back(parameter(name, "path", schema_of_variable(name)));
  }
  return parameters;
}

Document response(std::string_view words, std::string_view type, Document schema) {
  Document content;
  content[std::string(type)] = {{"schema", std::move(schema)}};
  return {{"description", words}, {"content", std::move(content)}};
}

Document object_content() {
  return {{"application/json", {{"schema", {{"type", "object"}}}}}};
}

/// Returns an operation with its path's parameters, and with a problem for each other status.
Document operation(std::string_view id, std::string_view path, unsigned status) {
  Document document{{"operationId", id}, {"parameters", path_parameters(path)}};
  document["responses"][std::to_string(status)] =
      response("done", "application/json", Document{{"type", "object"}});
  document["responses"]["default"] = reference("#/components/responses/Problem");
  return document;
}

/// Returns a name that no other operation has: the command, and the kinds of things in the path.
std::string id_of(const CommandRoute& route) {
  std::string id(route.cmd);
  for (const char* const kind : {"{group}", "{name}", "{user_id}"}) {
    const std::string_view name(kind);
    if (route.path.find(name) == std::string_view::npos) continue;
    id.append("_of_").append(name.substr(1, name.size() - 2));
  }
  if (route.path.find("{topic}") == std::string_view::npos) id += "_of_all";
  return id;
}

/// Returns the schema of a number that a command reads. `limit` is at most the least of the commands' limits.
Document schema_of_number(std::string_view name) {
  using protocol::DeadPage;
  using protocol::DelayedPage;
  using protocol::SchedulePage;
  if (name == "limit")
    return number_schema(
        1, std::min({DeadPage::messages_max, DelayedPage::messages_max, SchedulePage::schedules_max}));
  if (name == "topics_max") return number_schema(1, limits::stats_page_topics_max);
  if (name == "payload_bytes") return number_schema(0, DelayedPage::payload_bytes_max);
  if (name == "times") return number_schema(0, SchedulePage::times_max);
  return number_schema(0, protocol::detail::number_max);
}

Document query_parameter(std::string_view declared) {
  const char mark = declared.front();
  if (mark == '#') return parameter(declared.substr(1), "query", schema_of_number(declared.substr(1)));
  if (mark == '?') return parameter(declared.substr(1), "query", {{"type", "boolean"}});
  return parameter(declared, "query", text_schema());
}

void add_command(const CommandRoute& route, Document& paths) {
  Document document = operation(id_of(route), route.path, route.status);
  for (std::string_view left = route.parameters; !left.empty();) {
    const std::size_t end = std::min(left.find(' '), left.size());
    document["parameters"].push_back(query_parameter(left.substr(0, end)));
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  if (route.has_content) document["requestBody"] = {{"content", object_content()}};
  if (route.login == CommandLogin::none) document["security"] = Document::array();
  paths[std::string(route.path)][in_lower_case(route.method)] = std::move(document);
}

Document publish_operation() {
  Document document = operation("publish", message_path, 200);
  auto& parameters = document["parameters"];
  parameters.push_back(parameter("confirm", "query", choice_schema({"default", "received", "flushed"})));
  parameters.push_back(parameter("wait", "query", number_schema(0, limits::http_wait_ms_max)));
  for (const char* const header :
       {"Lightq-Key", "Lightq-Id", "Lightq-Time", "Lightq-Ttl", "Lightq-Delay", "Lightq-At"})
    parameters.push_back(parameter(header, "header", text_schema()));
  document["requestBody"] = {
      {"content",
       {{"application/octet-stream", Document::object()},
        {"application/x-ndjson", {{"schema", reference("#/components/schemas/Message")}}}}}};
  document["responses"]["504"] = reference("#/components/responses/Problem");
  document["responses"]["504"]["description"] = "the time `wait` is over; the messages may be stored";
  return document;
}

Document receive_operation() {
  Document document = operation("receive", message_path, 200);
  auto& parameters = document["parameters"];
  parameters.push_back(parameter("group", "query", text_schema()));
  parameters.push_back(parameter("max", "query", number_schema(1, limits::http_messages_max)));
  parameters.push_back(parameter("wait", "query", number_schema(0, limits::http_wait_ms_max)));
  parameters.push_back(parameter("lease", "query", number_schema(limits::http_lease_ms_min, UINT32_MAX)));
  parameters.push_back(parameter("from", "query", choice_schema({"first", "next"})));
  parameters.push_back(parameter("ack", "query", choice_schema({"later", "now"})));
  document["responses"]["200"]["content"]["application/octet-stream"] = Document::object();
  document["responses"]["204"] = {{"description", "no message, with Accept: application/octet-stream"}};
  return document;
}

Document stream_operation() {
  Document document = operation("stream", stream_path, 200);
  auto& parameters = document["parameters"];
  for (const char* const name : {"group", "from"})
    parameters.push_back(parameter(name, "query", text_schema()));
  parameters.push_back(parameter("time_us", "query", number_schema(0, INT64_MAX)));
  parameters.push_back(parameter("max", "query", number_schema(1, limits::http_messages_max)));
  parameters.push_back(parameter("lease", "query", number_schema(limits::http_lease_ms_min, UINT32_MAX)));
  parameters.push_back(parameter("ack", "query", choice_schema({"later", "now"})));
  parameters.push_back(parameter("Last-Event-ID", "header", text_schema()));
  document["responses"]["200"] =
      response("server-sent events, until one side ends", "text/event-stream", text_schema());
  return document;
}

Document browse_operation() {
  Document document = operation("browse", browse_path, 200);
  auto& parameters = document["parameters"];
  parameters.push_back(parameter("from", "query", text_schema()));
  parameters.push_back(parameter("time_us", "query", number_schema(0, INT64_MAX)));
  parameters.push_back(parameter("max", "query", number_schema(1, limits::http_messages_max)));
  for (const char* const name : {"key", "key_base64"})
    parameters.push_back(parameter(name, "query", text_schema()));
  Document schema{{"type", "object"}};
  schema["required"] = {"next", "lost", "messages"};
  for (const char* const name : {"next", "lost", "scanned"})
    schema["properties"][name] = {{"type", "integer"}};
  schema["properties"]["messages"] = {{"type", "array"},
                                      {"items", reference("#/components/schemas/StoredMessage")}};
  document["responses"]["200"] = response("messages", "application/json", std::move(schema));
  document["responses"]["200"]["content"]["application/x-ndjson"] = {
      {"schema", reference("#/components/schemas/StoredMessage")}};
  return document;
}

Document events_operation() {
  Document document = operation("events", events_path, 200);
  document["responses"]["200"] =
      response("server-sent events, until one side ends", "text/event-stream", text_schema());
  return document;
}

Document history_operation() {
  Document document = operation("history", history_path, 200);
  Document course{{"type", "object"}};
  course["required"] = {"step_ms", "in", "out", "pending", "lag"};
  course["properties"]["step_ms"] = {{"type", "integer"}};
  for (const char* const name : {"in", "out", "pending", "lag"})
    course["properties"][name] = {{"type", "array"}, {"items", {{"type", "number"}}}};
  Document schema{{"type", "object"}};
  schema["required"] = {"seconds", "minutes"};
  for (const char* const name : {"seconds", "minutes"}) schema["properties"][name] = course;
  document["responses"]["200"] = response("samples, oldest first", "application/json", std::move(schema));
  return document;
}

Document settle_operation(const std::string& what) {
  Document document = operation(what, lease_path, 200);
  auto& parameters = document["parameters"];
  parameters.push_back(parameter("offsets", "query", text_schema()));
  parameters.push_back(parameter("ms", "query", number_schema(what == "extend" ? 1 : 0, UINT32_MAX)));
  parameters.push_back(parameter("reason", "query", text_schema()));
  return document;
}

/// Returns the schema of a message that a client reads.
Document stored_message() {
  Document message{{"type", "object"}};
  message["required"] = {"offset", "stored_us"};
  message["additionalProperties"] = false;
  for (const char* const name : {"offset", "delivery", "stored_us", "time_us"})
    message["properties"][name] = {{"type", "integer"}};
  for (const char* const name : {"payload", "payload_base64", "key", "key_base64"})
    message["properties"][name] = text_schema();
  message["properties"]["expired"] = {{"type", "boolean"}};
  message["properties"]["headers"] = {{"type", "array"}, {"items", {{"type", "object"}}}};
  return message;
}

Document components() {
  Document problem;
  problem["type"] = "object";
  problem["required"] = {"title", "status", "code", "detail"};
  for (const char* const name : {"title", "code", "detail"}) problem["properties"][name] = text_schema();
  problem["properties"]["status"] = {{"type", "integer"}};
  Document message;
  message["type"] = "object";
  message["additionalProperties"] = false;
  for (const char* const name : {"payload", "payload_base64", "key", "key_base64", "id"})
    message["properties"][name] = text_schema();
  for (const char* const name : {"time_us", "ttl_ms", "delay_ms", "at_us"})
    message["properties"][name] = {{"type", "integer"}};
  message["properties"]["headers"] = {{"type", "array"}, {"items", {{"type", "object"}}}};
  Document document;
  document["schemas"]["Message"] = std::move(message);
  document["schemas"]["StoredMessage"] = stored_message();
  document["responses"]["Problem"] = response("refused", "application/problem+json", std::move(problem));
  document["securitySchemes"]["basic"] = {{"type", "http"}, {"scheme", "basic"}};
  return document;
}

}  // namespace

std::string api_document() {
  Document document;
  document["openapi"] = "3.1.0";
  document["info"] = {{"title", "LightQ"}, {"version", version_text}};
  document["security"] = Document::array({{{"basic", Document::array()}}});
  Document& paths = document["paths"];
  for (const CommandRoute& route : command_routes()) add_command(route, paths);
  paths[std::string(message_path)] = {{"post", publish_operation()}, {"get", receive_operation()}};
  paths[std::string(stream_path)]["get"] = stream_operation();
  paths[std::string(browse_path)]["get"] = browse_operation();
  paths[std::string(history_path)]["get"] = history_operation();
  paths[std::string(events_path)]["get"] = events_operation();
  for (const char* const what : {"acknowledge", "retry", "release", "dead", "extend"})
    paths[std::string(lease_path) + what]["post"] = settle_operation(what);
  document["components"] = components();
  return protocol::detail::dump(document) + "\n";
}

}  // namespace lightq::broker
