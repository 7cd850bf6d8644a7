/// Makes commands of the control protocol of requests over HTTP. Layer: http.
#include "http/control_command.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <lightq/base/secret.hpp>
#include <lightq/protocol/json.hpp>
#include <lightq/protocol/json_fields.hpp>

#include "http/basic_login.hpp"
#include "http/query.hpp"

namespace lightq::broker {

namespace {

using protocol::detail::Json;

constexpr CommandLogin for_admin = CommandLogin::admin;
constexpr CommandLogin for_user = CommandLogin::user;

constexpr CommandRoute routes[] = {
    {"GET", "/api/v1/version", "version", CommandLogin::none},
    {"POST", "/api/v1/reload", "reload", for_admin},
    {"GET", "/api/v1/stats", "stats", for_admin},
    {"GET", "/api/v1/stats/topics", "stats_all", for_admin, "after #topics_max"},

    {"GET", "/api/v1/topics", "list_topics", for_admin, "?groups after"},
    {"PUT", "/api/v1/topics/{topic}", "create_topic", for_admin, {}, true, 201},
    {"GET", "/api/v1/topics/{topic}", "stats", for_user, "#members_max"},
    {"PATCH", "/api/v1/topics/{topic}", "set_topic", for_user, {}, true},
    {"DELETE", "/api/v1/topics/{topic}", "delete_topic", for_admin},
    {"POST", "/api/v1/topics/{topic}/join", "join", for_user, {}, true},
    {"POST", "/api/v1/topics/{topic}/leave", "leave", for_user, {}, true},
    {"POST", "/api/v1/topics/{topic}/pause", "pause", for_user},
    {"POST", "/api/v1/topics/{topic}/resume", "resume", for_user},
    {"POST", "/api/v1/topics/{topic}/purge", "purge", for_user, "?delayed"},
    {"PUT", "/api/v1/topics/{topic}/password", "set_password", CommandLogin::own, {}, true},
    {"GET", "/api/v1/topics/{topic}/trace", "trace", for_user, "#offset"},
    {"GET", "/api/v1/topics/{topic}/dead", "list_dead", for_user, "#limit #after_offset"},
    {"POST", "/api/v1/topics/{topic}/dead/retry", "retry_dead", for_user, "?preview", true},
    {"POST", "/api/v1/topics/{topic}/dead/purge", "purge_dead", for_user, "?preview", true},

    {"PATCH", "/api/v1/topics/{topic}/groups/{group}", "set_group", for_user, {}, true},
    {"DELETE", "/api/v1/topics/{topic}/groups/{group}", "delete_group", for_user},
    {"POST", "/api/v1/topics/{topic}/groups/{group}/pause", "pause", for_user},
    {"POST", "/api/v1/topics/{topic}/groups/{group}/resume", "resume", for_user},
    {"POST", "/api/v1/topics/{topic}/groups/{group}/purge", "purge", for_user},
    {"POST", "/api/v1/topics/{topic}/groups/{group}/seek", "seek_group", for_user, "?preview", true},
    {"GET", "/api/v1/topics/{topic}/groups/{group}/dead", "list_dead", for_user, "#limit #after_offset"},
    {"POST", "/api/v1/topics/{topic}/groups/{group}/dead/retry", "retry_dead", for_user, "?preview", true},
    {"POST", "/api/v1/topics/{topic}/groups/{group}/dead/purge", "purge_dead", for_user, "?preview", true},

    {"GET", "/api/v1/topics/{topic}/delayed", "list_delayed", for_user,
     "#limit #payload_bytes #after_due_us #after_number"},
    {"POST", "/api/v1/topics/{topic}/delayed/cancel", "cancel_delayed", for_user, "?preview", true},
    {"POST", "/api/v1/topics/{topic}/delayed/hurry", "hurry_delayed", for_user, "?preview", true},
    {"POST", "/api/v1/topics/{topic}/delayed/reschedule", "reschedule_delayed", for_user, "?preview", true},

    {"GET", "/api/v1/schedules", "list_schedules", for_admin, "after #limit"},
    {"GET", "/api/v1/topics/{topic}/schedules", "list_schedules", for_user, "after #limit"},
    {"GET", "/api/v1/topics/{topic}/schedules/{name}", "list_schedules", for_user, "#times"},
    {"PUT", "/api/v1/topics/{topic}/schedules/{name}", "set_schedule", for_user, {}, true},
    {"DELETE", "/api/v1/topics/{topic}/schedules/{name}", "remove_schedule", for_user},
    {"POST", "/api/v1/topics/{topic}/schedules/{name}/pause", "pause_schedule", for_user},
    {"POST", "/api/v1/topics/{topic}/schedules/{name}/resume", "resume_schedule", for_user},

    {"GET", "/api/v1/users", "list_users", for_admin},
    {"PUT", "/api/v1/users/{user_id}", "create_user", for_admin, {}, true, 201},
    {"DELETE", "/api/v1/users/{user_id}", "delete_user", for_admin},
    {"PUT", "/api/v1/users/{user_id}/password", "set_password", CommandLogin::own, {}, true},
    {"POST", "/api/v1/users/{user_id}/grant", "grant", for_admin, {}, true},
    {"POST", "/api/v1/users/{user_id}/revoke", "revoke", for_admin, {}, true},
};

constexpr std::array<std::string_view, 3> login_members = {"cmd", "admin_user_id", "admin_password"};

/// Calls `take` with each part of the text between separators.
template <typename Take>
void for_each_part(std::string_view text, char separator, Take&& take) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    if (end > 0) take(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

std::vector<std::string_view> parts_of(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for_each_part(text, separator, [&](std::string_view part) { parts.push_back(part); });
  return parts;
}

Error invalid(std::string_view name, const char* why) {
  return {ErrorCode::invalid_request, std::string(name) + ": " + why};
}

/// Adds the values of the path's variables.
void add_path(const CommandRoute& route, const std::vector<std::string>& values, Json& members) {
  std::size_t at = 0;
  for_each_part(route.path, '/', [&](std::string_view segment) {
    if (segment.starts_with('{')) members[std::string(segment.substr(1, segment.size() - 2))] = values[at++];
  });
}

/// Sets `value` to that of a parameter. Returns false if it is of another type.
bool read_value(char type, const std::string& text, Json& value) {
  if (type == '?') {
    value = text == "true";
    return text == "true" || text == "false";
  }
  value = text;
  if (type != '#') return true;
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  value = number;
  return !text.empty() && error == std::errc{} && end == text.data() + text.size();
}

std::optional<Error> add_parameters(const CommandRoute& route, const Query& query, Json& members) {
  const auto declared = parts_of(route.parameters, ' ');
  for (const auto& [name, text] : query.parameters()) {
    char type = 0;
    bool is_known = false;
    for (std::string_view each : declared) {
      const char mark = each.front() == '#' || each.front() == '?' ? each.front() : '\0';
      if (mark != '\0') each.remove_prefix(1);
      if (each != name) continue;
      is_known = true;
      type = mark;
    }
    if (!is_known) return invalid(name, "there is no such parameter");
    if (!read_value(type, text, members[name]))
      return invalid(name, type == '#' ? "must be a whole number" : "must be true or false");
  }
  return std::nullopt;
}

std::optional<Error> add_content(const HttpRequest& request, std::size_t bytes_max, Json& members) {
  if (request.body.empty()) return std::nullopt;
  auto content = protocol::detail::parse_object(request.body, bytes_max);
  if (!content) {
    return content.error().code == ErrorCode::invalid_cmd
               ? Error{ErrorCode::invalid_request, "the content must be a JSON object"}
               : content.error();
  }
  for (auto& [name, value] : content->items()) {
    if (std::ranges::find(login_members, name) != login_members.end())
      return invalid(name, "not in the content");
    if (members.contains(name)) return invalid(name.substr(0, 64), "it is given in the URL, too");
    members[name] = value;
  }
  return std::nullopt;
}

/// Adds the credentials of the login. Returns an error if they are needed and missing.
std::optional<Error> add_login(const CommandRoute& route, const HttpRequest& request, Json& members) {
  if (route.login == CommandLogin::none) return std::nullopt;
  const Error refused{ErrorCode::unauthorized_access, std::string(to_word(ErrorCode::unauthorized_access))};
  if (request.authorization.empty())
    return route.login == for_user ? std::optional<Error>() : std::optional<Error>(refused);
  const auto given = basic_credentials(request.authorization);
  if (!given || given->user_id.empty() || given->password.expose().empty()) return refused;
  const std::string password(given->password.expose());
  // A name or password that is not UTF-8 must not become another one in JSON.
  if (!is_utf8(given->user_id) || !is_utf8(password)) return refused;
  const bool names_itself = route.login == CommandLogin::own && members.contains("user_id") &&
                            members["user_id"] == Json(given->user_id);
  if (route.login == for_user || names_itself) {
    members["user_id"] = given->user_id;
    members["password"] = password;
  } else {
    members["admin_user_id"] = given->user_id;
    members["admin_password"] = password;
  }
  return std::nullopt;
}

}  // namespace

std::span<const CommandRoute> command_routes() {
  return routes;
}

Result<protocol::Request> command_of(const CommandRoute& route, const HttpExchange& exchange,
                                     std::size_t bytes_max) {
  Json members = Json::object();
  members["cmd"] = std::string(route.cmd);
  add_path(route, exchange.parts, members);
  if (auto fault = add_parameters(route, exchange.request.query, members)) return *fault;
  if (!route.has_content && !exchange.request.body.empty())
    return Error{ErrorCode::invalid_request, "this takes no content"};
  if (auto fault = add_content(exchange.request, bytes_max, members)) return *fault;
  if (route.login == for_user) {
    for (const char* const name : {"user_id", "password"}) {
      if (members.contains(name)) return invalid(name, "not in the content");
    }
  }
  if (auto fault = add_login(route, exchange.request, members)) return *fault;
  const Secret text(members.dump(-1, ' ', false, Json::error_handler_t::replace));
  return protocol::parse_request(text.expose(), 2 * bytes_max).request;
}

}  // namespace lightq::broker
