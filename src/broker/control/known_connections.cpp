/// Layer: control.
#include "broker/control/known_connections.hpp"

#include <limits>

namespace lightq::broker {

bool KnownConnections::Rank::operator<(const Rank& other) const {
  if (connections != other.connections) return connections > other.connections;
  if (idle_since != other.idle_since) return idle_since < other.idle_since;
  return owner < other.owner;
}

KnownConnections::Rank KnownConnections::rank_of(const Owners::value_type& owner) {
  const auto& idle = owner.second.idle;
  const auto since = idle.empty() ? std::numeric_limits<std::uint64_t>::max() : idle.begin()->first;
  return {owner.second.connections, since, &owner};
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
  set_idle(connection, false);
}

void KnownConnections::idle(std::uint64_t connection) {
  set_idle(connection, true);
}

void KnownConnections::set_idle(std::uint64_t connection, bool is_idle) {
  const auto found = places_.find(connection);
  if (found == places_.end() || found->second.is_idle == is_idle) return;
  Place& place = found->second;
  place.is_idle = is_idle;
  auto& owner = *place.owner;
  ranks_.erase(rank_of(owner));
  if (is_idle) {
    owner.second.idle.emplace(place.used, connection);
  } else {
    owner.second.idle.erase(place.used);
  }
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
  if (place.is_idle) owner.second.idle.erase(place.used);
  place.is_idle = false;
  place.owner = nullptr;
  if (--owner.second.connections > 0) {
    ranks_.insert(rank_of(owner));
  } else {
    owners_.erase(owners_.find(owner.first));
  }
}

std::optional<std::uint64_t> KnownConnections::to_displace() const {
  if (ranks_.empty()) return std::nullopt;
  const auto& idle = ranks_.begin()->owner->second.idle;
  if (idle.empty()) return std::nullopt;
  return idle.begin()->second;
}

}  // namespace lightq::broker
