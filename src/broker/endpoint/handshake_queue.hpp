/// Connections that have not said who they are, and which of them makes room. Layer: endpoint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "broker/endpoint/connection.hpp"

namespace lightq::broker {

/// A thread keeps so many strangers and no more. One too many ends the one that has been silent longest: who
/// means well is through within milliseconds, while those who fill the queue wait in it, so that even then
/// there is a place for the next who comes. Where a source has more than an eighth of all, of the one that
/// has most: who fills it from one address ends his own. One thread.
class HandshakeQueue {
 public:
  /// `why`: told of one that is ended.
  explicit HandshakeQueue(std::size_t connections_max,
                          std::string why =
                              "too many connections that have not said who they are; this was the oldest, of "
                              "all or of its address")
      : connections_max_(connections_max), why_(std::move(why)) {}
  HandshakeQueue(const HandshakeQueue&) = delete;
  HandshakeQueue& operator=(const HandshakeQueue&) = delete;

  /// A new one, before it starts; `source`: RequestSource::key of its peer. May end another, whose owner
  /// hears of it within the call: not from within a connection's own callbacks.
  void enter(Connection& connection, const std::string& source);
  /// No descriptor is free for who comes next: of those who wait an eighth ends, as for want of a place.
  /// Calls as enter().
  void make_room();
  /// It has said who it is, or ended. Nothing happens the second time.
  void leave(const Connection& connection);

  [[nodiscard]] std::size_t size() const { return places_.size(); }
  /// Connections ended for want of a place, ever.
  [[nodiscard]] std::uint64_t displaced() const { return displaced_; }

 private:
  using Waiting = std::map<std::uint64_t, Connection*>;  // by number: the oldest first
  using Sources = std::unordered_map<std::string, Waiting>;
  struct Place {
    Sources::value_type* source;
    std::uint64_t number;
  };
  /// In the order in which they make room.
  struct Rank {
    std::size_t connections;
    std::uint64_t oldest;  // number of the one that has been silent longest
    Sources::value_type* source;
    bool operator<(const Rank& other) const;
  };
  static Rank rank_of(Sources::value_type& source);

  [[nodiscard]] Connection& first_to_go() const;
  void displace();

  const std::size_t connections_max_;
  const std::string why_;
  std::uint64_t entered_ = 0;
  Sources sources_;  // those that have any; each stays where it is in memory
  std::set<Rank> ranks_;
  Waiting all_;
  std::unordered_map<const Connection*, Place> places_;
  std::uint64_t displaced_ = 0;
};

}  // namespace lightq::broker
