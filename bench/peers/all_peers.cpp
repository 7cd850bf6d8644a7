/// The list of peers. Layer: bench peers.
#include "peers/beanstalkd_peer.hpp"
#include "peers/lightq_peer.hpp"
#include "peers/needs.hpp"
#include "peers/nsq/nsq_peer.hpp"
#include "peers/peer.hpp"
#include "peers/unbuilt_peer.hpp"
#include "peers/zmq_proxy_peer.hpp"

#if defined(LIGHTQ_PEER_KAFKA)
#include "peers/kafka/kafka_peer.hpp"
#endif
#if defined(LIGHTQ_PEER_NATS)
#include "peers/nats/nats_peers.hpp"
#endif
#if defined(LIGHTQ_PEER_RABBITMQ)
#include "peers/rabbitmq/rabbitmq_peers.hpp"
#endif
#if defined(LIGHTQ_PEER_REDIS)
#include "peers/redis/redis_peers.hpp"
#endif

namespace lightq::bench {

std::vector<std::unique_ptr<Peer>> all_peers(const PeerPrograms& programs) {
  std::vector<std::unique_ptr<Peer>> peers;
  peers.push_back(make_lightq_peer(programs.lightq));
  peers.push_back(make_lightq_tcp_peer(programs.lightq));
#if defined(LIGHTQ_PEER_REDIS)
  peers.push_back(make_redis_list_peer());
  peers.push_back(make_redis_stream_peer());
#else
  for (const char* name : {"redis-list", "redis-stream"})
    peers.push_back(make_unbuilt_peer(name, redis_needs));
#endif
  peers.push_back(make_beanstalkd_peer());
#if defined(LIGHTQ_PEER_NATS)
  peers.push_back(make_nats_peer(programs.directory));
  peers.push_back(make_jetstream_peer(programs.directory));
#else
  for (const char* name : {"nats", "jetstream"}) peers.push_back(make_unbuilt_peer(name, nats_needs));
#endif
  peers.push_back(make_nsq_peer(programs.directory));
#if defined(LIGHTQ_PEER_RABBITMQ)
  peers.push_back(make_rabbitmq_classic_peer());
  peers.push_back(make_rabbitmq_quorum_peer());
  peers.push_back(make_rabbitmq_stream_peer());
#else
  for (const char* name : {"rabbitmq-classic", "rabbitmq-quorum", "rabbitmq-stream"})
    peers.push_back(make_unbuilt_peer(name, rabbitmq_needs));
#endif
#if defined(LIGHTQ_PEER_KAFKA)
  peers.push_back(make_kafka_peer(programs.directory));
#else
  peers.push_back(make_unbuilt_peer("kafka", kafka_needs));
#endif
  peers.push_back(make_zmq_proxy_peer());
  return peers;
}

}  // namespace lightq::bench
