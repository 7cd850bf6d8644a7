/// The definitions of <lightq/discovery.hpp>. Layer: client.
#pragma once

#include <lightq/discovery.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lightq/base/private_file.hpp>
#include <lightq/base/result.hpp>
#include <lightq/detail/exposure.hpp>
#include <lightq/detail/running_broker.hpp>
#include <lightq/detail/tcp_uri.hpp>
#include <lightq/options.hpp>
#include <lightq/protocol/json.hpp>

namespace lightq::inline v1 {

LIGHTQ_INLINE std::string environment_value(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

LIGHTQ_INLINE std::vector<std::filesystem::path> data_directories(const std::string& chosen) {
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

}  // namespace lightq::inline v1

namespace lightq::inline v1::detail {

LIGHTQ_INLINE Result<std::optional<std::string>> read_small_file(const std::filesystem::path& path) {
  const ScopedDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat facts{};
  struct stat directory{};
  const bool there = file.get() >= 0 && fstat(file.get(), &facts) == 0 && S_ISREG(facts.st_mode) &&
                     stat(path.parent_path().c_str(), &directory) == 0;
  if (!there) return std::optional<std::string>();
  if (auto fault = foreign_file_fault(facts, directory, geteuid(), path.string())) return *std::move(fault);
  std::string text;
  if (read_bounded({file.get(), true, {}}, small_file_bytes_max, false, text) != 0)
    return std::optional<std::string>();
  return std::optional(std::move(text));
}

LIGHTQ_INLINE FoundBroker read_broker_file(const std::filesystem::path& path) {
  auto text = read_small_file(path);
  if (!text) return text.error();
  return *text ? protocol::parse_broker_file(**text) : std::nullopt;
}

LIGHTQ_INLINE FoundBroker read_running_broker(const std::filesystem::path& directory) {
  return read_broker_file(directory / "broker.json");
}

LIGHTQ_INLINE FoundBroker read_encrypting_broker(const std::filesystem::path& directory) {
  auto file = read_broker_file(directory / "server_key.json");
  if (file && *file && (*file)->server_key.empty()) file->reset();
  return file;
}

LIGHTQ_INLINE bool is_local_broker(std::string_view uri, std::string_view bound) {
  if (uri == bound) return true;
  const auto [host, port] = split_tcp(uri);
  const auto [bound_host, bound_port] = split_tcp(bound);
  const auto is_loopback = [](std::string_view name) {
    const bool digits = name.find_first_not_of("0123456789.") == std::string_view::npos;
    return (digits && name.starts_with("127.")) || name == "localhost" || name == "::1";
  };
  const bool anywhere = bound_host == "0.0.0.0" || bound_host == "*" || bound_host == "::";
  return !port.empty() && port == bound_port && is_loopback(host) && (anywhere || is_loopback(bound_host));
}

LIGHTQ_INLINE bool may_be_local_broker(std::string_view uri, std::string_view bound) {
  if (is_local_broker(uri, bound)) return true;
  const auto [host, port] = split_tcp(uri);
  const auto [bound_host, bound_port] = split_tcp(bound);
  if (host.empty() || port != bound_port) return false;
  const bool bound_here = bound_host == "*" || is_this_machine(bound_host);
  if (bound_here) return is_this_machine(host);
  for (const sockaddr_storage& address : addresses_of(std::string(host)))
    for (const sockaddr_storage& own : addresses_of(std::string(bound_host)))
      if (std::memcmp(&address, &own, sizeof own) == 0) return true;
  return false;
}

}  // namespace lightq::inline v1::detail

namespace lightq::inline v1 {

LIGHTQ_INLINE Result<ControlPlace> discover_control_place(const std::string& data_dir) {
  if (std::string named = environment_value("LIGHTQ_BROKER"); !named.empty())
    return ControlPlace{std::move(named), true, true};
  for (const bool running : {true, false}) {
    for (const std::filesystem::path& directory : data_directories(data_dir)) {
      const auto file =
          running ? detail::read_running_broker(directory) : detail::read_encrypting_broker(directory);
      if (!file) return file.error();
      if (running && *file && !detail::is_running(directory, **file)) continue;
      if (*file) return ControlPlace{(*file)->control_uri, running, false};
    }
  }
  return ControlPlace{std::string(default_control_uri), false, false};
}

LIGHTQ_INLINE Result<std::string> discover_control_uri(const std::string& data_dir) {
  Result<ControlPlace> place = discover_control_place(data_dir);
  if (!place) return place.error();
  return std::move(place->uri);
}

}  // namespace lightq::inline v1

namespace lightq::inline v1::detail {

LIGHTQ_INLINE void take_environment(ClientOptions& options) {
  if (options.user.user_id.empty()) {
    options.user = {environment_value("LIGHTQ_USER"), environment_value("LIGHTQ_PASSWORD")};
    if (options.user.user_id.empty()) options.user = {};
  }
  if (!options.admin.user_id.empty()) return;
  const std::string name = environment_value("LIGHTQ_ADMIN_USER");
  Secret password = environment_value("LIGHTQ_ADMIN_PASSWORD");
  if (!name.empty() || !password.empty())
    options.admin = {name.empty() ? std::string(default_admin_user_id) : name, std::move(password)};
}

}  // namespace lightq::inline v1::detail

namespace lightq::inline v1 {

LIGHTQ_INLINE Result<std::optional<detail::OwnerSocket>> discover_credentials(std::string_view uri,
                                                                              ClientOptions& options) {
  using Found = std::optional<detail::OwnerSocket>;
  detail::take_environment(options);
  const std::string named = options.admin.user_id;
  const bool given = !options.admin.password.empty() || (named.empty() && !options.user.user_id.empty());
  if (given) return Found();
  for (const std::filesystem::path& directory : data_directories(options.data_dir)) {
    const auto broker = detail::read_running_broker(directory);
    if (!broker) return broker.error();
    if (!*broker || !detail::is_local_broker(uri, (*broker)->control_uri)) continue;
    if ((*broker)->control_socket.empty() || !detail::is_running(directory, **broker)) continue;
    const Result<Secret> text =
        read_private_file((directory / "admin.json").string(), "the administrator's password",
                          detail::small_file_bytes_max, LinkRule::refused);
    if (!text && text.error().code == ErrorCode::invalid_argument) return text.error();
    if (!text) continue;  // it does not exist, or this user may not read it
    auto admin = protocol::parse_admin_file(text->expose());
    if (!admin || (!named.empty() && named != admin->user_id)) continue;
    options.admin = std::move(*admin);
    return Found(detail::OwnerSocket(directory, (*broker)->control_socket));
  }
  return Found();
}

LIGHTQ_INLINE Result<void> discover_server_key(std::string_view uri, ClientOptions& options) {
  if (options.server_key.empty()) options.server_key = environment_value("LIGHTQ_SERVER_KEY");
  for (const std::filesystem::path& directory : data_directories(options.data_dir)) {
    if (!options.server_key.empty()) return {};
    const auto running = detail::read_running_broker(directory);
    if (!running) return running.error();
    const auto stopped = detail::read_encrypting_broker(directory);
    if (!stopped) return stopped.error();
    const bool runs = *running && detail::may_be_local_broker(uri, (*running)->control_uri);
    if (runs) options.server_key = (*running)->server_key;
    if (options.server_key.empty() && *stopped && detail::may_be_local_broker(uri, (*stopped)->control_uri))
      options.server_key = (*stopped)->server_key;
    if (runs) return {};  // files in other directories belong to earlier brokers
  }
  return {};
}

LIGHTQ_INLINE bool discover_insecure() {
  const std::string value = environment_value("LIGHTQ_INSECURE");
  const bool number = !value.empty() && value.find_first_not_of("0123456789") == std::string::npos;
  return value == "true" || (number && value.find_first_not_of('0') != std::string::npos);
}

}  // namespace lightq::inline v1
