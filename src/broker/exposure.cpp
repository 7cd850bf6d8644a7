/// Finds the configured addresses that are not loopback, and refuses settings that expose the broker
/// unprotected. Layer: broker.
#include "broker/exposure.hpp"

#include <arpa/inet.h>

#include <filesystem>
#include <string_view>

#include <lightq/base/loopback.hpp>

#include "broker/data_directory.hpp"
#include "net/socket.hpp"

namespace lightq::broker {

namespace {

/// Returns the host of `tcp://HOST:PORT`; empty for other URIs and for invalid ones, which binding reports
/// better.
std::string control_host(std::string_view uri) {
  constexpr std::string_view scheme = "tcp://";
  const std::size_t colon = uri.rfind(':');
  if (!uri.starts_with(scheme) || colon <= scheme.size()) return {};
  std::string_view host = uri.substr(scheme.size(), colon - scheme.size());
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return std::string(host == "*" ? "0.0.0.0" : host);
}

bool is_loopback_host(const std::string& host) {
  const auto address = resolve_host(host);
  return address && is_on_loopback(*address);
}

Result<void> check_socket_directories(const Config& config) {
  if (!config.ipc_dir.empty()) {
    if (auto safe = check_socket_directory("ipc_dir", config.ipc_dir); !safe) return safe;
  }
  constexpr std::string_view scheme = "ipc://";
  if (!config.control_uri.starts_with(scheme)) return {};
  const auto directory = std::filesystem::path(config.control_uri.substr(scheme.size())).parent_path();
  return check_socket_directory("control", directory.empty() ? "." : directory);
}

}  // namespace

bool is_on_loopback(const std::string& address) {
  sockaddr_storage storage{};
  auto* const four = reinterpret_cast<sockaddr_in*>(&storage);
  auto* const six = reinterpret_cast<sockaddr_in6*>(&storage);
  const std::string host = address.substr(0, address.find('%'));  // % precedes an interface
  if (inet_pton(AF_INET, host.c_str(), &four->sin_addr) == 1) {
    storage.ss_family = AF_INET;
  } else if (inet_pton(AF_INET6, host.c_str(), &six->sin6_addr) == 1) {
    storage.ss_family = AF_INET6;
  }
  return is_loopback(storage);
}

std::optional<std::string> exposure_of(const Config& config, const std::string& bind_address) {
  const std::string control = control_host(config.control_uri);
  if (!control.empty() && !is_loopback_host(control))
    return "control: " + config.control_uri + " is not a loopback address";
  const auto http = http_uri_of(config);
  if (http && !is_loopback_host(control_host(*http))) return "http: " + *http + " is not a loopback address";
  if (!is_on_loopback(bind_address)) return "bind: " + config.bind_host + " is not a loopback address";
  if (!config.advertise_host.empty() && !is_loopback_host(config.advertise_host))
    return "advertise: " + config.advertise_host + " is not a loopback address";
  return std::nullopt;
}

Result<void> check_exposure(const Config& config, const std::string& bind_address) {
  if (!config.encrypt && !config.allowed_client_keys.empty()) {
    return Error{
        ErrorCode::invalid_argument,
        "allowed_client_keys: only a broker that encrypts knows the keys of clients: give --encrypt"};
  }
  if (auto safe = check_socket_directories(config); !safe) return safe;
  if ((config.encrypt || config.insecure) && !config.open_topics) return {};
  const auto open = exposure_of(config, bind_address);
  if (!open) return {};
  if (config.open_topics) {
    return Error{ErrorCode::invalid_argument,
                 "open_topics: permitted on loopback only, but " + *open +
                     ": clients on other machines could read and write every topic"};
  }
  return Error{ErrorCode::invalid_argument,
               *open +
                   ", and nothing is encrypted on the network: give --encrypt, or --insecure if the network "
                   "can be trusted with passwords, tickets and messages"};
}

Result<std::string> bind_address_of(const std::string& host) {
  auto address = resolve_host(host);
  const auto listening = address ? listen_tcp(*address, 0) : Result<ListeningSocket>(address.error());
  if (listening) return address;
  Error error = listening.error();
  error.message = "bind host: " + error.message;
  return error;
}

}  // namespace lightq::broker
