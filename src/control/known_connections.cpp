/// Ranks control connections by owner and state to choose the one to evict. Layer: control.
#include "control/known_connections.hpp"

#include <limits>

namespace lightq::broker {

bool KnownConnections::Rank::operator<(const Rank& other) const {
  if (connections != other.connections) return connections > other.connections;
  if (unread != other.unread) return other.unread;
  if (used != other.used) return used < other.used;
  return owner < other.owner;
}

KnownConnections::Rank KnownConnections::rank_of(const Owners::value_type& owner) {
  const ByUse& first = owner.second.first_to_go();
  const auto used = first.empty() ? std::numeric_limits<std::uint64_t>::max() : first.begin()->first;
  return {owner.second.connections, owner.second.idle.empty(), used, &owner};
}

void KnownConnections::used(std::uint64_t connection, const std::string& owner) {
  Place& place = places_[connection];
  if (place.owner == nullptr || place.owner->first != owner) {
    remove_from_owner(place);
    place.owner = &*owners_.try_emplace(owner).first;
    ranks_.erase(rank_of(*place.owner));
    ++place.owner->second.connections;
    ranks_.insert(rank_of(*place.owner));
  }
  busy(connection);
  place.used = ++uses_;
}

void KnownConnections::busy(std::uint64_t connection) {
  set(connection, State::busy);
}

void KnownConnections::unread(std::uint64_t connection) {
  set(connection, State::unread);
}

void KnownConnections::idle(std::uint64_t connection) {
  set(connection, State::idle);
}

void KnownConnections::set(std::uint64_t connection, State state) {
  const auto found = places_.find(connection);
  if (found == places_.end() || found->second.state == state) return;
  Place& place = found->second;
  auto& owner = *place.owner;
  ranks_.erase(rank_of(owner));
  if (ByUse* const before = owner.second.in(place.state)) before->erase(place.used);
  if (ByUse* const now = owner.second.in(state)) now->emplace(place.used, connection);
  place.state = state;
  ranks_.insert(rank_of(owner));
}

void KnownConnections::leave(std::uint64_t connection) {
  const auto found = places_.find(connection);
  if (found == places_.end()) return;
  remove_from_owner(found->second);
  places_.erase(found);
}

void KnownConnections::remove_from_owner(Place& place) {
  if (place.owner == nullptr) return;
  auto& owner = *place.owner;
  ranks_.erase(rank_of(owner));
  if (ByUse* const in = owner.second.in(place.state)) in->erase(place.used);
  place.state = State::busy;
  place.owner = nullptr;
  if (--owner.second.connections > 0) {
    ranks_.insert(rank_of(owner));
  } else {
    owners_.erase(owners_.find(owner.first));
  }
}

std::optional<std::uint64_t> KnownConnections::to_evict() const {
  if (ranks_.empty()) return std::nullopt;
  const ByUse& first = ranks_.begin()->owner->second.first_to_go();
  if (first.empty()) return std::nullopt;
  return first.begin()->second;
}

}  // namespace lightq::broker
