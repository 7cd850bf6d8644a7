/// The versions of nats-server and nats.c. Layer: bench peers.
#include "peers/nats/nats_peer.hpp"

#include <nats/version.h>

namespace lightq::bench {

std::optional<std::string> NatsPeer::version() const {
  const auto server = program();
  if (!server) return std::nullopt;
  const std::string text = output_of({*server, "--version"});
  return text.substr(0, text.find('\n')) + ", nats.c " NATS_VERSION_STRING;
}

}  // namespace lightq::bench
