/// The process of a Redis server. Layer: bench peers.
#pragma once

#include <string>

#include "peers/one_process_server.hpp"

namespace lightq::bench {

/// redis-server with the settings for `storage`, reached over a Unix socket in its directory.
class RedisServer : public OneProcessServer {
 public:
  explicit RedisServer(Storage storage);
  void drop_queue(const QueueTerms& queue) override;

 protected:
  [[nodiscard]] std::string socket_path() const { return server().directory() + "/redis.sock"; }
};

}  // namespace lightq::bench
