/// Determines the source of a connection from its socket. Layer: net.
#include "net/request_source.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>

namespace lightq::broker {

namespace {

constexpr std::size_t network_bytes = 8;

std::string bytes_of(char kind, const void* bytes, std::size_t count) {
  return kind + std::string(static_cast<const char*>(bytes), count);
}

RequestSource of_process(int descriptor) {
  ucred peer{};
  socklen_t length = sizeof peer;
  if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return {};
  return {bytes_of('u', &peer.uid, sizeof peer.uid), peer.uid};
}

}  // namespace

RequestSource source_of(int descriptor) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (getpeername(descriptor, reinterpret_cast<sockaddr*>(&address), &length) != 0) return {};
  if (address.ss_family == AF_UNIX) return of_process(descriptor);
  if (address.ss_family == AF_INET) {
    const auto& four = reinterpret_cast<const sockaddr_in&>(address);
    return {bytes_of('4', &four.sin_addr, sizeof four.sin_addr), {}};
  }
  if (address.ss_family != AF_INET6) return {};
  const auto& six = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  constexpr std::size_t mapped_at = 12;
  if (IN6_IS_ADDR_V4MAPPED(&six)) return {bytes_of('4', six.s6_addr + mapped_at, sizeof(in_addr)), {}};
  return {bytes_of('6', six.s6_addr, network_bytes), {}};
}

}  // namespace lightq::broker
