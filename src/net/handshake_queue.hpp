/// Limits unauthenticated connections, and chooses which to evict. Layer: net.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

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
  HandshakeQueue(const HandshakeQueue&) = delete;
  HandshakeQueue& operator=(const HandshakeQueue&) = delete;

  /// Adds a new connection, before it starts. `source`: RequestSource::key of its peer. May evict another
  /// connection and calls its owner within this call. Requires: not called within a callback of a connection.
  void enter(Connection& connection, const std::string& source);
  /// Evicts an eighth of the connections, because no descriptor is free for the next one. Calls their owners
  /// within this call. Requires: not called within a callback of a connection.
  void make_room();
  /// Removes a connection that has authenticated or ended. Does nothing if it is not there.
  void leave(const Connection& connection);

  [[nodiscard]] std::size_t size() const { return places_.size(); }
  /// Returns the number of connections evicted since the start.
  [[nodiscard]] std::uint64_t evicted() const { return evicted_; }

 private:
  using Waiting = std::map<std::uint64_t, Connection*>;  // by number, the oldest first
  using Sources = std::unordered_map<std::string, Waiting>;
  struct Place {
    Sources::value_type* source;
    std::uint64_t number;
  };
  /// Orders the sources: the first one is the next to lose a connection.
  struct Rank {
    std::size_t connections;
    std::uint64_t oldest;  // the number of its oldest connection
    Sources::value_type* source;
    bool operator<(const Rank& other) const;
  };
  static Rank rank_of(Sources::value_type& source);

  [[nodiscard]] Connection& first_to_go() const;
  void evict();

  const std::size_t connections_max_;
  const std::string why_;
  std::uint64_t entered_ = 0;
  Sources sources_;  // only sources with connections; an entry keeps its address
  std::set<Rank> ranks_;
  Waiting all_;
  std::unordered_map<const Connection*, Place> places_;
  std::uint64_t evicted_ = 0;
};

}  // namespace lightq::broker
