/// RabbitMQ as three peers: its types of queues. Layer: bench peers.
#pragma once

#include <memory>

#include "peers/peer.hpp"

namespace lightq::bench {

std::unique_ptr<Peer> make_rabbitmq_classic_peer();
std::unique_ptr<Peer> make_rabbitmq_quorum_peer();
/// A stream over AMQP 0-9-1; there is no C client for the protocol of streams.
std::unique_ptr<Peer> make_rabbitmq_stream_peer();

}  // namespace lightq::bench
