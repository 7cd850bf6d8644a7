/// Reads the JSON files in a broker's data directory for programs on the same machine: broker.json and
/// admin.json. server_key.json has the form of broker.json. See docs/protocol.md, "Files for the same
/// machine". Layer: protocol.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include <lightq/protocol/json_fields.hpp>
#include <lightq/protocol/json_functions.hpp>

namespace lightq::inline v1::protocol {

namespace detail {
/// Returns the value of a string member; empty if it is missing or not a string.
inline std::string text_member(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}
}  // namespace detail

LIGHTQ_INLINE std::optional<BrokerFile> parse_broker_file(std::string_view text) {
  const nlohmann::json document = nlohmann::json::parse(text, nullptr, false);
  if (!document.is_object()) return std::nullopt;
  BrokerFile file;
  file.control_uri = detail::text_member(document, "control_uri");
  file.version = detail::text_member(document, "version");
  file.server_key = detail::text_member(document, "server_key");
  file.control_socket = detail::text_member(document, "control_socket");
  if (file.control_socket.find('/') != std::string::npos) file.control_socket.clear();
  const auto pid = document.find("pid");
  if (pid != document.end() && pid->is_number_unsigned()) file.pid = pid->get<std::uint64_t>();
  if (file.control_uri.empty()) return std::nullopt;
  return file;
}

LIGHTQ_INLINE std::optional<Credentials> parse_admin_file(std::string_view text) {
  const auto document = detail::parse_object(text, limits::request_bytes_max);
  if (!document) return std::nullopt;
  Credentials admin{detail::text_member(document.value(), "admin_user_id"),
                    detail::text_member(document.value(), "admin_password")};
  if (admin.user_id.empty() || admin.password.empty()) return std::nullopt;
  return admin;
}

}  // namespace lightq::inline v1::protocol
