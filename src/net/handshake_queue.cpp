/// Queues unauthenticated connections and evicts the oldest. Layer: net.
#include "net/handshake_queue.hpp"

#include <algorithm>

namespace lightq::broker {

bool HandshakeQueue::Rank::operator<(const Rank& other) const {
  if (connections != other.connections) return connections > other.connections;
  return oldest < other.oldest;
}

HandshakeQueue::Rank HandshakeQueue::rank_of(Sources::value_type& source) {
  return {source.second.size(), source.second.begin()->first, &source};
}

void HandshakeQueue::enter(Connection& connection, const std::string& source) {
  auto& of_source = *sources_.try_emplace(source).first;
  if (!of_source.second.empty()) ranks_.erase(rank_of(of_source));
  of_source.second.emplace(++entered_, &connection);
  ranks_.insert(rank_of(of_source));
  all_.emplace(entered_, &connection);
  places_[&connection] = {&of_source, entered_};
  if (places_.size() > connections_max_) evict();
}

void HandshakeQueue::make_room() {
  constexpr std::size_t part = 8;
  for (std::size_t left = (places_.size() + part - 1) / part; left > 0 && !places_.empty(); --left) evict();
}

void HandshakeQueue::evict() {
  Connection& oldest = first_to_go();
  leave(oldest);
  ++evicted_;
  oldest.close(why_);
}

Connection& HandshakeQueue::first_to_go() const {
  const Rank& most = *ranks_.begin();
  const bool has_much = most.connections > std::max<std::size_t>(1, connections_max_ / 8);
  return has_much ? *most.source->second.begin()->second : *all_.begin()->second;
}

void HandshakeQueue::leave(const Connection& connection) {
  const auto found = places_.find(&connection);
  if (found == places_.end()) return;
  const auto [source, number] = found->second;
  places_.erase(found);
  all_.erase(number);
  ranks_.erase(rank_of(*source));
  source->second.erase(number);
  if (source->second.empty()) {
    sources_.erase(sources_.find(source->first));
  } else {
    ranks_.insert(rank_of(*source));
  }
}

}  // namespace lightq::broker
