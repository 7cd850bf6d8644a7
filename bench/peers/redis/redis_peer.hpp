/// The common part of both peers of Redis. Layer: bench peers.
#pragma once

#include <optional>
#include <string>

#include "peers/needs.hpp"
#include "peers/peer.hpp"

namespace lightq::bench {

/// Redis, without the type of data that stands for a queue.
class RedisPeer : public Peer {
 public:
  [[nodiscard]] std::optional<std::string> version() const override;
  [[nodiscard]] std::string needs() const override { return redis_needs; }

 protected:
  /// Returns the promise of Redis for any type of data.
  [[nodiscard]] static Promise common_promise(Work work);
};

}  // namespace lightq::bench
