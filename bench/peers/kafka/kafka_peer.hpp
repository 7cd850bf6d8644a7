/// Kafka as a peer. Layer: bench peers.
#pragma once

#include <memory>
#include <string>

#include "peers/peer.hpp"

namespace lightq::bench {

/// One node in KRaft mode, reached with librdkafka. `directory`: where scripts/bench puts its jars, in
/// `kafka`.
std::unique_ptr<Peer> make_kafka_peer(std::string directory);

}  // namespace lightq::bench
