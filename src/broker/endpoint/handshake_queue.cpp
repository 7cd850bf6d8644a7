/// Layer: endpoint.
#include "broker/endpoint/handshake_queue.hpp"

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
  places_[&connection] = {&of_source, entered_};
  if (places_.size() <= connections_max_) return;
  Connection& oldest = *ranks_.begin()->source->second.begin()->second;
  leave(oldest);
  ++displaced_;
  oldest.close(why_);
}

void HandshakeQueue::leave(const Connection& connection) {
  const auto found = places_.find(&connection);
  if (found == places_.end()) return;
  const auto [source, number] = found->second;
  places_.erase(found);
  ranks_.erase(rank_of(*source));
  source->second.erase(number);
  if (source->second.empty()) {
    sources_.erase(sources_.find(source->first));
  } else {
    ranks_.insert(rank_of(*source));
  }
}

}  // namespace lightq::broker
