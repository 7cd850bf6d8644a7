/// beanstalkd as a peer. Layer: bench peers.
#pragma once

#include <memory>

#include "peers/peer.hpp"

namespace lightq::bench {

/// Speaks beanstalkd's text protocol (its doc/protocol.txt), pipelined; Debian has no C library for it.
std::unique_ptr<Peer> make_beanstalkd_peer();

}  // namespace lightq::bench
