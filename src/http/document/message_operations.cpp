/// The operations on messages, streams and histories in the OpenAPI document. Layer: http.
#include "http/document/message_operations.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <lightq/base/limits.hpp>

#include "http/messages/message_text.hpp"

namespace lightq::broker {

namespace {

constexpr std::string_view message_path = "/api/v1/topics/{topic}/messages";
constexpr std::string_view stream_path = "/api/v1/topics/{topic}/stream";
constexpr std::string_view browse_path = "/api/v1/topics/{topic}/browse";
constexpr std::string_view history_path = "/api/v1/topics/{topic}/history";
constexpr std::string_view events_path = "/api/v1/events";
constexpr std::string_view lease_path = "/api/v1/topics/{topic}/leases/{lease}/";
constexpr const char* stored_message_at = "#/components/schemas/StoredMessage";

Document boolean_schema() {
  return {{"type", "boolean"}};
}

Document place_schema() {
  return {{"type", "string"}, {"pattern", "^(first|next|[0-9]{1,19})$"}};
}

Document publish_operation() {
  Document document = operation("publish", message_path, 200,
                                object_schema({"messages", "flushed"}, {{"first_offset", count_schema()},
                                                                        {"first_number", count_schema()},
                                                                        {"messages", count_schema()},
                                                                        {"flushed", boolean_schema()},
                                                                        {"repeated", boolean_schema()}}));
  auto& parameters = document["parameters"];
  parameters.push_back(query_parameter("confirm", choice_schema({"default", "received", "flushed"})));
  parameters.push_back(query_parameter("wait", number_schema(0, limits::http_wait_ms_max)));
  for (const char* const name : {"Lightq-Key", "Lightq-Id"})
    parameters.push_back(parameter(name, "header", text_schema()));
  for (const auto& [name, most] : {std::pair<const char*, std::int64_t>("Lightq-Time", INT64_MAX),
                                   {"Lightq-Ttl", limits::ttl_ms_max},
                                   {"Lightq-Delay", limits::delay_us_max / 1000},
                                   {"Lightq-At", INT64_MAX}})
    parameters.push_back(parameter(name, "header", number_schema(1, static_cast<std::uint64_t>(most))));
  open_to_all(document);
  document["requestBody"] = {
      {"content",
       {{"application/octet-stream", Document::object()},
        {"application/x-ndjson", {{"schema", reference("#/components/schemas/Message")}}}}}};
  document["responses"]["504"] = reference("#/components/responses/Problem");
  document["responses"]["504"]["description"] = "the time `wait` is over; the messages may be stored";
  return document;
}

Document receive_operation() {
  Document document = operation(
      "receive", message_path, 200,
      object_schema({"lost", "messages"}, {{"lease", text_schema()},
                                           {"lost", count_schema()},
                                           {"messages", list_schema(reference(stored_message_at))}}));
  auto& parameters = document["parameters"];
  parameters.push_back(query_parameter("group", protocol::detail::ObjectSchema::name()));
  parameters.push_back(query_parameter("max", number_schema(1, limits::http_messages_max)));
  parameters.push_back(query_parameter("wait", number_schema(0, limits::http_wait_ms_max)));
  parameters.push_back(query_parameter("lease", number_schema(limits::http_lease_ms_min, UINT32_MAX)));
  parameters.push_back(query_parameter("from", choice_schema({"first", "next"})));
  parameters.push_back(query_parameter("ack", choice_schema({"later", "now"})));
  open_to_all(document);
  document["responses"]["200"]["content"]["application/octet-stream"] = Document::object();
  document["responses"]["204"] = {{"description", "no message, with Accept: application/octet-stream"}};
  return document;
}

Document stream_operation() {
  Document document = operation("stream", stream_path, 200, text_schema());
  auto& parameters = document["parameters"];
  parameters.push_back(query_parameter("group", protocol::detail::ObjectSchema::name()));
  parameters.push_back(query_parameter("from", place_schema()));
  parameters.push_back(query_parameter("time_us", number_schema(0, INT64_MAX)));
  parameters.push_back(query_parameter("max", number_schema(1, limits::http_messages_max)));
  parameters.push_back(query_parameter("lease", number_schema(limits::http_lease_ms_min, UINT32_MAX)));
  parameters.push_back(query_parameter("ack", choice_schema({"later", "now"})));
  parameters.push_back(parameter("Last-Event-ID", "header", number_schema(0, INT64_MAX - 1)));
  open_to_all(document);
  document["responses"]["200"] =
      response("server-sent events, until one side ends; the data of each message is a StoredMessage",
               "text/event-stream", text_schema());
  return document;
}

Document browse_operation() {
  Document document = operation(
      "browse", browse_path, 200,
      object_schema({"next", "lost", "messages"}, {{"next", count_schema()},
                                                   {"lost", count_schema()},
                                                   {"scanned", count_schema()},
                                                   {"messages", list_schema(reference(stored_message_at))}}));
  auto& parameters = document["parameters"];
  parameters.push_back(query_parameter("from", place_schema()));
  parameters.push_back(query_parameter("time_us", number_schema(0, INT64_MAX)));
  parameters.push_back(query_parameter("max", number_schema(1, limits::http_messages_max)));
  for (const char* const name : {"key", "key_base64"})
    parameters.push_back(query_parameter(name, text_schema()));
  open_to_all(document);
  document["responses"]["200"]["content"]["application/x-ndjson"] = {
      {"schema", reference(stored_message_at)}};
  return document;
}

/// Returns the schema of the data of an event with statistics.
Document viewed_schema() {
  const Document number{{"type", "number"}};
  Document connections;
  for (const char* const name : {"producers", "consumers", "control", "http"})
    connections[name] = count_schema();
  return object_schema({"topics", "complete"},
                       {{"topics", list_schema(reference("#/components/schemas/TopicStats"))},
                        {"complete", boolean_schema()},
                        {"gone", list_schema(text_schema())},
                        {"partial", boolean_schema()},
                        {"broker", reference("#/components/schemas/BrokerStats")},
                        {"connections", object_schema({}, std::move(connections))},
                        {"process", object_schema({}, {{"cpu_seconds", number},
                                                       {"resident_bytes", count_schema()},
                                                       {"memory_max_bytes", count_schema()},
                                                       {"open_descriptors", count_schema()},
                                                       {"descriptors_max", count_schema()}})},
                        {"disk", object_schema({}, {{"size_bytes", count_schema()},
                                                    {"free_bytes", count_schema()},
                                                    {"free_bytes_min", count_schema()}})}});
}

Document events_operation() {
  Document document = operation("events", events_path, 200, text_schema());
  document["responses"]["200"] =
      response("server-sent events, until one side ends; the data of each event `stats` is a StatsEvent",
               "text/event-stream", text_schema());
  return document;
}

Document history_operation() {
  Document course{{"step_ms", count_schema()}};
  for (const char* const name : {"in", "out", "pending", "lag"})
    course[name] = list_schema({{"type", "number"}});
  const Document schema = object_schema({"step_ms", "in", "out", "pending", "lag"}, std::move(course));
  return operation("history", history_path, 200,
                   object_schema({"seconds", "minutes"}, {{"seconds", schema}, {"minutes", schema}}));
}

Document settle_operation(const std::string& what) {
  Document late = list_schema(count_schema());
  late["minItems"] = late["maxItems"] = 2;
  Document document = operation(
      what, lease_path, 200,
      object_schema(
          {"messages", "in_flight", "late"},
          {{"messages", count_schema()}, {"in_flight", count_schema()}, {"late", list_schema(late)}}));
  auto& parameters = document["parameters"];
  parameters.push_back(query_parameter("offsets", text_schema()));
  parameters.push_back(query_parameter("ms", number_schema(what == "extend" ? 1 : 0, UINT32_MAX)));
  parameters.push_back(query_parameter("reason", {{"type", "string"}, {"maxLength", 256}}));
  open_to_all(document);
  return document;
}

/// Returns the schema of a message that a client reads.
Document stored_message() {
  Document header;
  for (const char* const name : {"name", "name_base64", "value", "value_base64"})
    header[name] = text_schema();
  Document members;
  for (const char* const name : {"offset", "delivery", "stored_us", "time_us"})
    members[name] = count_schema();
  for (const char* const name : {"payload", "payload_base64", "key", "key_base64"})
    members[name] = text_schema();
  members["expired"] = boolean_schema();
  members["headers"] = list_schema(object_schema({}, std::move(header)));
  return object_schema({"offset", "stored_us"}, std::move(members));
}

}  // namespace

void add_message_operations(Document& paths, Document& schemas) {
  paths[std::string(message_path)] = {{"post", publish_operation()}, {"get", receive_operation()}};
  paths[std::string(stream_path)]["get"] = stream_operation();
  paths[std::string(browse_path)]["get"] = browse_operation();
  paths[std::string(history_path)]["get"] = history_operation();
  for (const char* const what : {"acknowledge", "retry", "release", "dead", "extend"})
    paths[std::string(lease_path) + what]["post"] = settle_operation(what);
  paths[std::string(events_path)]["get"] = events_operation();
  schemas["Message"] = message_schema();
  schemas["StoredMessage"] = stored_message();
  schemas["StatsEvent"] = viewed_schema();
}

}  // namespace lightq::broker
