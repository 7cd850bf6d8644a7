/// Names what must be installed for the peers that have a client library. Layer: bench peers.
#pragma once

namespace lightq::bench {

// For messages. The same texts serve a peer that was built and one that was not.
inline constexpr const char* redis_needs = "Debian's packages redis-server and libhiredis-dev";
inline constexpr const char* nats_needs =
    "nats-server, which is built with Go, and Debian's package libnats-dev";
inline constexpr const char* rabbitmq_needs = "Debian's packages rabbitmq-server and librabbitmq-dev";
inline constexpr const char* kafka_needs =
    "Java, Kafka's jars, which Maven gets, and Debian's package librdkafka-dev";

}  // namespace lightq::bench
