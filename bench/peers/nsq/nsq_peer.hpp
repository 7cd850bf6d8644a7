/// NSQ as a peer. Layer: bench peers.
#pragma once

#include <memory>
#include <string>

#include "peers/peer.hpp"

namespace lightq::bench {

/// One nsqd without nsqlookupd, and the suite's own client. `directory`: where scripts/bench puts nsqd.
std::unique_ptr<Peer> make_nsq_peer(std::string directory);

}  // namespace lightq::bench
