/// Indexes quarantined ports by port, by time and by former use. Layer: topic.
#include "topic/resting_ports.hpp"

namespace lightq::broker {

void RestingPorts::put(std::uint16_t port, const PortUse& had, bool unused, Clock::time_point until) {
  remove(port);
  const Rest rest{kind_of(had), unused, until};
  by_port_.emplace(port, rest);
  all_.emplace(until, port);
  by_kind_[rest.kind].emplace(until, port);
  if (unused) unused_.emplace(until, port);
}

void RestingPorts::remove(std::uint16_t port) {
  const auto found = by_port_.find(port);
  if (found == by_port_.end()) return;
  const Rest& rest = found->second;
  const auto key = std::pair(rest.until, port);
  all_.erase(key);
  unused_.erase(key);
  const auto of_kind = by_kind_.find(rest.kind);
  of_kind->second.erase(key);
  if (of_kind->second.empty()) by_kind_.erase(of_kind);
  by_port_.erase(found);
}

void RestingPorts::forget_rested(Clock::time_point now) {
  while (!all_.empty() && all_.begin()->first <= now) remove(all_.begin()->second);
}

std::optional<std::uint16_t> RestingPorts::own(const PortUse& wanted) const {
  if (wanted.topic.value == 0) return std::nullopt;
  const auto found = by_kind_.find(kind_of(wanted));
  if (found == by_kind_.end()) return std::nullopt;
  return found->second.begin()->second;
}

std::optional<std::uint16_t> RestingPorts::of_another_role(const PortUse& wanted) const {
  if (wanted.topic.value == 0) return std::nullopt;
  const ByTime* best = nullptr;
  for (const EndpointRole role : {EndpointRole::produce, EndpointRole::pull, EndpointRole::sub}) {
    const auto found = by_kind_.find({wanted.topic.value, wanted.connection_type, role});
    if (found == by_kind_.end()) continue;
    if (best == nullptr || *found->second.begin() < *best->begin()) best = &found->second;
  }
  if (best == nullptr) return std::nullopt;
  return best->begin()->second;
}

std::optional<std::uint16_t> RestingPorts::best(const PortUse& wanted) const {
  if (wanted.guarded && !unused_.empty()) return unused_.begin()->second;
  if (const auto found = own(wanted)) return found;
  if (const auto found = of_another_role(wanted)) return found;
  if (wanted.guarded && !all_.empty()) return all_.begin()->second;
  return std::nullopt;
}

}  // namespace lightq::broker
