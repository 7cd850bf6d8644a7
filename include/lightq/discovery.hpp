/// Finds the broker of this machine and the credentials for it: environment, then the broker's own files.
/// Layer: client.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <lightq/options.hpp>
#include <lightq/protocol/json.hpp>

namespace lightq::inline v1 {

/// Where a broker listens when nobody says otherwise.
inline constexpr std::string_view default_control_uri = "tcp://127.0.0.1:5000";
/// The administrator's name when nobody says otherwise.
inline constexpr std::string_view default_admin_user_id = "lightq_admin";

/// An environment variable's value; empty when it is not set.
inline std::string environment_value(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

/// The directories in which a broker of this machine may keep its data, likeliest first: `chosen` alone if it
/// is not empty, else LIGHTQ_DATA_DIR alone if set, else /var/lib/lightq and the user's own state directory
/// ($XDG_STATE_HOME/lightq or ~/.local/state/lightq), the latter first unless this is root.
inline std::vector<std::filesystem::path> data_directories(const std::string& chosen = {}) {
  if (!chosen.empty()) return {chosen};
  if (const std::string named = environment_value("LIGHTQ_DATA_DIR"); !named.empty()) return {named};
  std::vector<std::filesystem::path> found = {"/var/lib/lightq"};
  const std::string state = environment_value("XDG_STATE_HOME");
  const std::string home = environment_value("HOME");
  const auto own = geteuid() == 0 ? found.end() : found.begin();
  if (!state.empty()) {
    found.insert(own, std::filesystem::path(state) / "lightq");
  } else if (!home.empty()) {
    found.insert(own, std::filesystem::path(home) / ".local/state/lightq");
  }
  return found;
}

namespace detail {

/// A small file's content; nothing when it cannot be read.
inline std::optional<std::string> read_small_file(const std::filesystem::path& path) {
  constexpr std::size_t bytes_max = 64 * 1024;
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::string text(bytes_max, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

inline std::optional<protocol::BrokerFile> read_broker_file(const std::filesystem::path& directory) {
  const std::optional<std::string> text = read_small_file(directory / "broker.json");
  return text ? protocol::parse_broker_file(*text) : std::nullopt;
}

/// Host and port of `tcp://host:port`; empty texts for anything else.
inline std::pair<std::string_view, std::string_view> split_tcp(std::string_view uri) {
  constexpr std::string_view scheme = "tcp://";
  const std::size_t colon = uri.rfind(':');
  if (!uri.starts_with(scheme) || colon < scheme.size()) return {};
  return {uri.substr(scheme.size(), colon - scheme.size()), uri.substr(colon + 1)};
}

/// Whether `uri`, as a client gives it, is the broker that bound `bound` on this machine. Decides whether a
/// password may be sent there, so it says no when in doubt.
inline bool is_local_broker(std::string_view uri, std::string_view bound) {
  if (uri == bound) return true;
  const auto [host, port] = split_tcp(uri);
  const auto [bound_host, bound_port] = split_tcp(bound);
  const auto is_loopback = [](std::string_view name) {
    const bool digits = name.find_first_not_of("0123456789.") == std::string_view::npos;
    return (digits && name.starts_with("127.")) || name == "localhost" || name == "[::1]";
  };
  const bool anywhere = bound_host == "0.0.0.0" || bound_host == "*" || bound_host == "[::]";
  return !port.empty() && port == bound_port && is_loopback(host) && (anywhere || is_loopback(bound_host));
}

}  // namespace detail

/// The control URI to use when none is given: LIGHTQ_BROKER, else what broker.json in the first data
/// directory that has one names, else default_control_uri.
inline std::string discover_control_uri(const std::string& data_dir = {}) {
  if (std::string named = environment_value("LIGHTQ_BROKER"); !named.empty()) return named;
  for (const std::filesystem::path& directory : data_directories(data_dir)) {
    if (const auto file = detail::read_broker_file(directory)) return file->control_uri;
  }
  return std::string(default_control_uri);
}

/// Fills in the credentials that `options` leave empty, as ClientOptions::discover_credentials describes. An
/// admin.json is used only for the broker that the broker.json beside it names: a password is never sent
/// elsewhere.
inline void discover_credentials(std::string_view uri, ClientOptions& options) {
  if (options.user.user_id.empty()) {
    options.user = {environment_value("LIGHTQ_USER"), environment_value("LIGHTQ_PASSWORD")};
    if (options.user.user_id.empty()) options.user = {};
  }
  if (options.admin.user_id.empty()) {
    const std::string name = environment_value("LIGHTQ_ADMIN_USER");
    const std::string password = environment_value("LIGHTQ_ADMIN_PASSWORD");
    if (!password.empty()) {
      options.admin = {name.empty() ? std::string(default_admin_user_id) : name, password};
    }
  }
  for (const std::filesystem::path& directory : data_directories(options.data_dir)) {
    if (!options.admin.user_id.empty()) return;
    const auto broker = detail::read_broker_file(directory);
    if (!broker || !detail::is_local_broker(uri, broker->control_uri)) continue;
    const std::optional<std::string> text = detail::read_small_file(directory / "admin.json");
    if (!text) continue;
    if (auto admin = protocol::parse_admin_file(*text)) options.admin = std::move(*admin);
  }
}

/// Fills in the broker's key if `options` leave it empty, as ClientOptions::server_key describes. Of
/// broker.json only that of the broker which it names.
inline void discover_server_key(std::string_view uri, ClientOptions& options) {
  if (options.server_key.empty()) options.server_key = environment_value("LIGHTQ_SERVER_KEY");
  for (const std::filesystem::path& directory : data_directories(options.data_dir)) {
    if (!options.server_key.empty()) return;
    const auto broker = detail::read_broker_file(directory);
    if (broker && detail::is_local_broker(uri, broker->control_uri)) options.server_key = broker->server_key;
  }
}

}  // namespace lightq::inline v1
