/// Layer: endpoint.
#include "broker/endpoint/shared_wire.hpp"

#include <string.h>

namespace lightq::broker {

void SharedWire::release(std::size_t bytes, bool wipe) {
  if (wipe) {
    for (const std::span<std::byte> part : rings_->reader().front(bytes))
      if (!part.empty()) explicit_bzero(part.data(), part.size());
  }
  if (rings_->reader().release(bytes)) events_.client.wake();
}

std::size_t SharedWire::send(ByteView first, ByteView second) {
  auto& writer = rings_->writer();
  std::size_t taken = writer.write(first);
  if (taken == first.size()) taken += writer.write(second);
  if (taken > 0 && writer.publish()) events_.client.wake();
  return taken;
}

}  // namespace lightq::broker
