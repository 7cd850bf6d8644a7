/// Limits unauthenticated connections, and chooses which to evict. Layer: net.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "admission/eviction_queue.hpp"
#include "net/connection.hpp"

namespace lightq::broker {

/// Keeps a bounded number of a thread's unauthenticated connections. One too many evicts the oldest. An
/// honest client authenticates within milliseconds, while the connections of a flood stay in the queue. So
/// even during a flood there is a place for the next client. If one source has more than an eighth of the
/// bound, the oldest connection of the source with most is evicted instead: a flood from one address evicts
/// its own connections. Thread: one.
class HandshakeQueue {
 public:
  /// `why`: the reason with which an evicted connection is closed.
  explicit HandshakeQueue(
      std::size_t connections_max,
      std::string why =
          "evicted: too many unauthenticated connections, and this was the oldest of all or of its source")
      : connections_max_(connections_max), why_(std::move(why)) {}

  /// Adds a new connection, before it starts. `source`: RequestSource::key of its peer. May evict another
  /// connection and calls its owner within this call. Requires: not called within a callback of a connection.
  void enter(Connection& connection, const std::string& source) {
    connections_.put(&connection, source);
    if (connections_.size() > connections_max_) evict();
  }
  /// Evicts an eighth of the connections, because no descriptor is free for the next one. Calls their owners
  /// within this call. Requires: not called within a callback of a connection.
  void make_room() {
    constexpr std::size_t part = 8;
    for (std::size_t left = (size() + part - 1) / part; left > 0 && size() > 0; --left) evict();
  }
  /// Removes a connection that has authenticated or ended. Does nothing if it is not there.
  void leave(Connection& connection) { connections_.remove(&connection); }

  [[nodiscard]] std::size_t size() const { return connections_.size(); }
  /// Returns the number of connections evicted since the start.
  [[nodiscard]] std::uint64_t evicted() const { return evicted_; }

 private:
  void evict() {
    Connection& connection = **connections_.to_evict(std::max<std::size_t>(1, connections_max_ / 8));
    leave(connection);
    ++evicted_;
    connection.close(why_);
  }

  const std::size_t connections_max_;
  const std::string why_;
  EvictionQueue<std::string, Connection*> connections_;  // by source
  std::uint64_t evicted_ = 0;
};

}  // namespace lightq::broker
