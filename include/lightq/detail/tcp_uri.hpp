/// Splits TCP addresses in ZeroMQ's notation. Layer: client.
#pragma once

#include <cstddef>
#include <string_view>
#include <utility>

namespace lightq::inline v1::detail {

/// Returns host and port of `tcp://host:port`, the host without brackets; empty texts for anything else.
inline std::pair<std::string_view, std::string_view> split_tcp(std::string_view uri) {
  constexpr std::string_view scheme = "tcp://";
  const std::size_t colon = uri.rfind(':');
  if (!uri.starts_with(scheme) || colon < scheme.size()) return {};
  std::string_view host = uri.substr(scheme.size(), colon - scheme.size());
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return {host, uri.substr(colon + 1)};
}

/// Returns true if the host is an IPv6 address, with or without brackets. libzmq needs an option for these.
inline bool is_ipv6(std::string_view uri) {
  return split_tcp(uri).first.find(':') != std::string_view::npos;
}

}  // namespace lightq::inline v1::detail
