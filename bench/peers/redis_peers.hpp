/// Redis as two peers. Layer: bench peers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "peers/peer.hpp"
#include "peers/server_process.hpp"

namespace lightq::bench {

/// Lists: pipelined RPUSH of many values; LMOVE to a list of messages in flight, from which LPOP
/// acknowledges.
std::unique_ptr<Peer> make_redis_list_peer();
/// Streams: pipelined XADD, XREADGROUP and XACK.
std::unique_ptr<Peer> make_redis_stream_peer();

/// redis-server with the settings for `storage`, reached over a Unix socket in its directory.
class RedisServer : public OneProcessServer {
 public:
  explicit RedisServer(Storage storage);
  void drop_queue(const QueueTerms& queue) override;

 protected:
  [[nodiscard]] std::string socket_path() const { return server().directory() + "/redis.sock"; }
};

/// The common part of both peers.
class RedisPeer : public Peer {
 public:
  [[nodiscard]] std::optional<std::string> version() const override;
  [[nodiscard]] std::string needs() const override {
    return "Debian's packages redis-server and libhiredis-dev";
  }

 protected:
  /// Returns the promise of Redis for any type of data.
  [[nodiscard]] static Promise common_promise(Work work);
};

}  // namespace lightq::bench
