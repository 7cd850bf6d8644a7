/// The definitions of <lightq/detail/exposure.hpp>. Layer: client.
#pragma once

#include <lightq/detail/exposure.hpp>

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <lightq/base/loopback.hpp>
#include <lightq/base/result.hpp>
#include <lightq/detail/tcp_uri.hpp>

namespace lightq::inline v1::detail {

LIGHTQ_INLINE std::vector<sockaddr_storage> addresses_of(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (getaddrinfo(host.c_str(), nullptr, &hints, &list) != 0) list = nullptr;
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, &freeaddrinfo);
  std::vector<sockaddr_storage> found;
  for (const addrinfo* each = list; each != nullptr; each = each->ai_next) {
    if (each->ai_addrlen > sizeof(sockaddr_storage)) continue;
    std::memcpy(&found.emplace_back(), each->ai_addr, each->ai_addrlen);
  }
  return found;
}

LIGHTQ_INLINE bool is_unspecified(const sockaddr_storage& address) {
  sockaddr_in ipv4{};
  sockaddr_in6 ipv6{};
  std::memcpy(&ipv4, &address, sizeof ipv4);
  std::memcpy(&ipv6, &address, sizeof ipv6);
  if (address.ss_family == AF_INET) return ipv4.sin_addr.s_addr == htonl(INADDR_ANY);
  return address.ss_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&ipv6.sin6_addr);
}

LIGHTQ_INLINE bool is_this_machine(std::string_view host) {
  const auto addresses = addresses_of(std::string(host));
  if (addresses.empty()) return host == "localhost";
  for (const sockaddr_storage& address : addresses)
    if (!is_loopback(address) && !is_unspecified(address)) return false;
  return true;
}

}  // namespace lightq::inline v1::detail

namespace lightq::inline v1 {

LIGHTQ_INLINE bool stays_on_machine(std::string_view uri) {
  if (uri.starts_with("ipc://") || uri.starts_with("inproc://")) return true;
  // Without a scheme, no socket can connect to it.
  if (!uri.starts_with("tcp://")) return uri.find("://") == std::string_view::npos;
  const auto [host, port] = detail::split_tcp(uri);
  return host.empty() || detail::is_this_machine(host);
}

LIGHTQ_INLINE Error exposed_error(const std::string& what) {
  return {ErrorCode::invalid_argument,
          what +
              " is not on this machine, and nothing is encrypted on the network: give the broker's public "
              "key as server_key (--server-key, LIGHTQ_SERVER_KEY), or insecure (--insecure, "
              "LIGHTQ_INSECURE) if the network can be trusted with passwords, tickets and messages"};
}

}  // namespace lightq::inline v1
