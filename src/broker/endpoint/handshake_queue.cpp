/// Layer: endpoint.
#include "broker/endpoint/handshake_queue.hpp"

namespace lightq::broker {

void HandshakeQueue::enter(Connection& connection) {
  if (waiting_.size() >= connections_max_) {
    Connection& oldest = *waiting_.front();
    leave(oldest);
    ++displaced_;
    oldest.close(why_);
  }
  places_[&connection] = waiting_.insert(waiting_.end(), &connection);
}

void HandshakeQueue::leave(const Connection& connection) {
  const auto found = places_.find(&connection);
  if (found == places_.end()) return;
  waiting_.erase(found->second);
  places_.erase(found);
}

}  // namespace lightq::broker
