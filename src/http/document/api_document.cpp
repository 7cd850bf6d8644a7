/// The OpenAPI document of the resources under /api/v1/. Layer: http.
#include "http/document/api_document.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lightq/protocol/json_schema.hpp>
#include <lightq/version.hpp>

#include "base/ascii_case.hpp"
#include "http/control_command.hpp"
#include "http/document/message_operations.hpp"
#include "http/document/operation_parts.hpp"

namespace lightq::broker {

namespace {

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

/// Returns the names of the parameters of the URL.
std::vector<std::string> parameter_names(const CommandRoute& route) {
  std::vector<std::string> names;
  for (std::string_view left = route.parameters; !left.empty();) {
    std::string_view name = left.substr(0, left.find(' '));
    left.remove_prefix(std::min(name.size() + 1, left.size()));
    if (name.front() == '#' || name.front() == '?') name.remove_prefix(1);
    names.emplace_back(name);
  }
  return names;
}

/// Returns the schema of the content of a request: the command's members that are neither in the URL nor in
/// the login.
Document schema_of_content(const CommandRoute& route, protocol::detail::ObjectSchema members) {
  for (const std::string& name : parameter_names(route)) members.remove(name);
  for (std::size_t at = route.path.find('{'); at != std::string_view::npos; at = route.path.find('{', at + 1))
    members.remove(std::string(route.path.substr(at + 1, route.path.find('}', at) - at - 1)));
  for (const char* const name : {"admin_user_id", "admin_password"}) members.remove(name);
  // Over HTTP, only create_topic and create_user take the credentials of another one in their content.
  const bool has_own_login = route.login == CommandLogin::user || route.login == CommandLogin::own;
  if (has_own_login) members.remove("password");
  if (route.login == CommandLogin::user) members.remove("user_id");
  return members.take();
}

void add_command(const CommandRoute& route, Document& paths, Document& schemas) {
  const bool is_of_broker = route.path.find("{topic}") == std::string_view::npos;
  const auto members = protocol::detail::request_schema(route.cmd);
  const Document whole = members.take();
  const Document properties = whole.value("properties", Document::object());
  const Document required = whole.value("required", Document::array());
  Document document = operation(id_of(route), route.path, route.status,
                                protocol::detail::reply_schema(route.cmd, is_of_broker, schemas));
  for (const std::string& name : parameter_names(route)) {
    document["parameters"].push_back(query_parameter(name, properties.at(name)));
    if (std::ranges::find(required, Document(name)) != required.end())
      document["parameters"].back()["required"] = true;
  }
  if (route.has_content) {
    const Document schema = schema_of_content(route, members);
    document["requestBody"]["content"]["application/json"]["schema"] = schema;
    document["requestBody"]["required"] =
        schema.contains("required") || schema.contains("anyOf") || schema.contains("oneOf");
  }
  if (route.login == CommandLogin::none) document["security"] = Document::array();
  if (route.login == CommandLogin::user) open_to_all(document);
  paths[std::string(route.path)][in_lower_case(route.method)] = std::move(document);
}

}  // namespace

std::string api_document() {
  Document document;
  document["openapi"] = "3.1.0";
  document["info"] = {{"title", "LightQ"}, {"version", version_text}};
  document["security"] = Document::array({{{"basic", Document::array()}}});
  Document& paths = document["paths"];
  Document schemas = Document::object();
  for (const CommandRoute& route : command_routes()) add_command(route, paths, schemas);
  add_message_operations(paths, schemas);
  schemas["Problem"] = object_schema({"title", "status", "code", "detail"}, {{"title", text_schema()},
                                                                             {"status", count_schema()},
                                                                             {"code", text_schema()},
                                                                             {"detail", text_schema()}});
  document["components"]["schemas"] = std::move(schemas);
  document["components"]["responses"]["Problem"] =
      response("refused", "application/problem+json", reference("#/components/schemas/Problem"));
  document["components"]["securitySchemes"]["basic"] = {{"type", "http"}, {"scheme", "basic"}};
  return protocol::detail::dump(document) + "\n";
}

}  // namespace lightq::broker
