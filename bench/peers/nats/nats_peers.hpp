/// NATS as two peers. Layer: bench peers.
#pragma once

#include <memory>
#include <string>

#include "peers/peer.hpp"

namespace lightq::bench {

// `directory`: where scripts/bench puts nats-server.

/// Core NATS: publish and subscribe, with neither confirms nor acknowledgements.
std::unique_ptr<Peer> make_nats_peer(std::string directory);
/// Streams with asynchronous publishing, and push or pull consumers.
std::unique_ptr<Peer> make_jetstream_peer(std::string directory);

}  // namespace lightq::bench
