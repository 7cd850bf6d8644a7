/// TCP connections within this machine. Layer: base.
#pragma once

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cstdint>
#include <cstring>

namespace lightq::inline v1 {

/// Returns true if the address is 127.0.0.0/8 (RFC 1122, section 3.2.1.3), ::1 (RFC 4291, section 2.5.3), or
/// the former mapped to IPv6 (section 2.5.5.2).
inline bool is_loopback(const sockaddr_storage& address) {
  const auto in_127 = [](const void* bytes) { return *static_cast<const std::uint8_t*>(bytes) == 127; };
  if (address.ss_family == AF_INET) {
    sockaddr_in ipv4{};
    std::memcpy(&ipv4, &address, sizeof ipv4);
    return in_127(&ipv4.sin_addr);
  }
  if (address.ss_family != AF_INET6) return false;
  sockaddr_in6 ipv6{};
  std::memcpy(&ipv6, &address, sizeof ipv6);
  if (IN6_IS_ADDR_V4MAPPED(&ipv6.sin6_addr)) return in_127(&ipv6.sin6_addr.s6_addr[12]);
  return IN6_IS_ADDR_LOOPBACK(&ipv6.sin6_addr);
}

/// Sends without pacing on a TCP socket if its peer is at a loopback address: there is no network to protect
/// from congestion. BBR, if the system prescribes it, takes the pauses of a window for a slow path
/// (docs/benchmarks.md, suite `sessions`). Uses reno, which every system allows; if it fails, nothing
/// changes.
inline void send_unpaced_on_loopback(int descriptor, const sockaddr_storage& peer) {
  static constexpr char reno[] = "reno";
  if (is_loopback(peer)) (void)::setsockopt(descriptor, IPPROTO_TCP, TCP_CONGESTION, reno, sizeof reno - 1);
}

}  // namespace lightq::inline v1
