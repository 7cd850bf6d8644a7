/// Layer: endpoint.
#include "broker/endpoint/shared_wire.hpp"

#include <string.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

namespace lightq::broker {

/// A socket that is full could be woken by no more, so all of it is taken; but who sends without end is not
/// listened to for as long.
void SharedWire::hear(bool ended) {
  ended_ |= ended;
  std::array<std::byte, 4096> wakes;
  for (int reads = 0; reads < 16 && !ended_; ++reads)
    if (recv(descriptor_, wakes.data(), wakes.size(), MSG_DONTWAIT) < static_cast<ssize_t>(wakes.size()))
      return;
}

void SharedWire::release(std::size_t bytes, bool wipe) {
  if (wipe) {
    for (const std::span<std::byte> part : rings_->reader().front(bytes))
      if (!part.empty()) explicit_bzero(part.data(), part.size());
  }
  if (rings_->reader().release(bytes)) wake();
}

std::size_t SharedWire::send(ByteView first, ByteView second) {
  auto& writer = rings_->writer();
  std::size_t taken = writer.write(first);
  if (taken == first.size()) taken += writer.write(second);
  if (taken > 0 && writer.publish()) wake();
  return taken;
}

/// Where the socket takes no more, its reader has not taken what it was woken by before.
void SharedWire::wake() {
  const std::byte one{1};
  while (::send(descriptor_, &one, 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) ended_ = true;
    return;
  }
}

}  // namespace lightq::broker
