/// LightQ as a peer: the side of the table that others are compared with. Layer: bench peers.
#pragma once

#include <memory>

#include "peers/peer.hpp"

namespace lightq::bench {

/// LightQ's C++ client with default options. On one machine these exchange messages through shared memory.
/// `broker`: the path of the binary.
std::unique_ptr<Peer> make_lightq_peer(std::string broker);
/// The same over TCP, as between machines.
std::unique_ptr<Peer> make_lightq_tcp_peer(std::string broker);

}  // namespace lightq::bench
