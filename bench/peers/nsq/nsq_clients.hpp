/// The clients that send to nsqd and receive from it. Layer: bench peers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "peers/peer.hpp"

namespace lightq::bench {

/// Gathers messages into commands MPUB, several of which are under way. nsqd confirms each one as a whole.
std::unique_ptr<PeerProducer> make_nsq_producer(std::uint16_t port, const std::string& topic);

/// Subscribes to a channel. Messages are pushed, as many as nsqd permits; in a work queue, one at a time.
std::unique_ptr<PeerConsumer> make_nsq_consumer(std::uint16_t port, const QueueTerms& queue,
                                                const std::string& channel);

}  // namespace lightq::bench
