/// Connections that have not said who they are, oldest first. Layer: endpoint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <string>
#include <unordered_map>
#include <utility>

#include "broker/endpoint/connection.hpp"

namespace lightq::broker {

/// A thread keeps so many strangers and no more. One too many ends the one that has been silent longest: who
/// means well is through within milliseconds, while those who fill the queue wait in it, so that even then
/// there is a place for the next who comes. One thread.
class HandshakeQueue {
 public:
  /// `why`: told of one that is ended.
  explicit HandshakeQueue(
      std::size_t connections_max,
      std::string why = "too many connections that have not said who they are; it was the oldest")
      : connections_max_(connections_max), why_(std::move(why)) {}
  HandshakeQueue(const HandshakeQueue&) = delete;
  HandshakeQueue& operator=(const HandshakeQueue&) = delete;

  /// A new one, before it starts. May end another, whose owner hears of it within the call: not from within
  /// a connection's own callbacks.
  void enter(Connection& connection);
  /// It has said who it is, or ended. Nothing happens the second time.
  void leave(const Connection& connection);

  [[nodiscard]] std::size_t size() const { return waiting_.size(); }
  /// Connections ended for want of a place, ever.
  [[nodiscard]] std::uint64_t displaced() const { return displaced_; }

 private:
  const std::size_t connections_max_;
  const std::string why_;
  std::list<Connection*> waiting_;  // oldest first
  std::unordered_map<const Connection*, std::list<Connection*>::iterator> places_;
  std::uint64_t displaced_ = 0;
};

}  // namespace lightq::broker
