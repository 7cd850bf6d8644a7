/// Wakes the process at the other end of a Unix socket. Layer: base.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <span>

namespace lightq::inline v1 {

/// Sends one byte. The other process cannot make this call wait: each end of a socket is its own open file,
/// and MSG_DONTWAIT does not depend on its flags. If the socket is full, the byte is not sent. The other
/// process misses nothing, because its end of a full socket is readable already.
inline void send_wake(int socket) {
  constexpr char wake = 1;
  while (::send(socket, &wake, sizeof wake, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno == EINTR) {
  }
}

/// Reads the wakes that have arrived. Never waits. Reads a bounded amount, so that a flood of wakes does not
/// delay the caller's other work. Returns false if the other process has closed the connection. `receive`:
/// reads bytes as ::recv does.
template <typename Receive>
bool take_wakes(Receive&& receive) {
  constexpr int reads_max = 16;
  std::array<std::byte, 4096> wakes;
  for (int reads = 0; reads < reads_max; ++reads) {
    const ssize_t got = receive(std::span(wakes));
    if (got == 0) return false;
    if (got < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    if (static_cast<std::size_t>(got) < wakes.size()) return true;
  }
  return true;
}
inline bool take_wakes(int socket) {
  return take_wakes(
      [socket](std::span<std::byte> to) { return ::recv(socket, to.data(), to.size(), MSG_DONTWAIT); });
}

/// Sets whether the other process may pass descriptors over a Unix socket. The reading call closes
/// descriptors that it receives. The last close of a file may wait: for hours, if it is a connection with
/// SO_LINGER. Returns false on a system before Linux 6.16, which does not know the option and lets
/// descriptors pass.
inline bool allow_descriptors(int socket, bool allowed) {
  constexpr int so_passrights = 83;  // the C library's headers may be older
  const int value = allowed ? 1 : 0;
  return ::setsockopt(socket, SOL_SOCKET, so_passrights, &value, sizeof value) == 0;
}

}  // namespace lightq::inline v1
