/// libzmq's zmq_proxy as a peer. Layer: bench peers.
#pragma once

#include <memory>

#include "peers/peer.hpp"

namespace lightq::bench {

/// A process that runs zmq_proxy from PULL to PUSH, as suite `plain` measures it.
std::unique_ptr<Peer> make_zmq_proxy_peer();

}  // namespace lightq::bench
