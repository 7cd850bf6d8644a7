/// Redis as two peers. Layer: bench peers.
#pragma once

#include <memory>

#include "peers/peer.hpp"

namespace lightq::bench {

/// Lists: pipelined RPUSH of many values; LMOVE to a list of messages in flight, from which LPOP
/// acknowledges.
std::unique_ptr<Peer> make_redis_list_peer();
/// Streams: pipelined XADD, XREADGROUP and XACK.
std::unique_ptr<Peer> make_redis_stream_peer();

}  // namespace lightq::bench
