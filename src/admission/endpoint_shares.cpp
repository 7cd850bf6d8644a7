/// Counts endpoints and chooses which to evict. Layer: admission.
#include "admission/endpoint_shares.hpp"

#include <string>

#include "base/log_sink.hpp"

namespace lightq::broker {

Result<std::vector<EndpointShares::Place>> EndpointShares::take(const Place& wanted, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  std::vector<Place> evicted;
  for (const Pot* const pot : {&all_, &ports_}) {
    if (pot == &ports_ && (!wanted.is_tcp || (!evicted.empty() && evicted.back().is_tcp))) continue;
    const auto verdict =
        FairShare(pot->most).ask(pot->endpoints.size(), wanted.user, pot->endpoints.of(wanted.user));
    if (verdict == FairShare::Verdict::room) continue;
    const Held* const found = to_make_room(*pot, wanted.user, verdict == FairShare::Verdict::others, now);
    if (found == nullptr) {
      count(refusals_, pot->limit);
      return refusal(*pot, verdict, wanted.user);
    }
    evicted.push_back(found->place);
  }
  for (const Place& each : evicted) remove(each.id);
  put(wanted, now, Eviction::first);
  return evicted;
}

/// Returns the endpoint to evict, or null if there is none. No user loses an endpoint to a user with more
/// endpoints.
const EndpointShares::Held* EndpointShares::to_make_room(const Pot& pot, std::uint64_t user, bool only_own,
                                                         Clock::time_point now) const {
  const std::size_t own = pot.endpoints.of(user);
  const auto found = pot.endpoints.find([&](std::uint64_t each, std::size_t has, std::uint64_t oldest) {
    return has >= own && (!only_own || each == user) && now - held_.at(oldest).since >= unused_time_min_;
  });
  return found ? &held_.at(*found) : nullptr;
}

Error EndpointShares::refusal(const Pot& pot, FairShare::Verdict verdict, std::uint64_t user) {
  const std::string of_all = std::to_string(pot.most) + " " + std::string(pot.name);
  if (verdict == FairShare::Verdict::full) return {ErrorCode::limit_reached, "all " + of_all + " are in use"};
  return {ErrorCode::limit_reached, name_of_sharer(user) + " " + std::to_string(pot.endpoints.of(user)) +
                                        " of the " + of_all + ", and the last " +
                                        std::to_string(pot.most - pot.endpoints.size()) +
                                        " are reserved for users with fewer"};
}

void EndpointShares::add(const Place& place) {
  const std::lock_guard lock(mutex_);
  remove(place.id);
  put(place, {}, Eviction::excluded);
}

void EndpointShares::put(const Place& place, Clock::time_point since, Eviction when) {
  held_.insert_or_assign(place.id, Held{place, since});
  all_.endpoints.put(place.id, place.user, when);
  if (place.is_tcp) ports_.endpoints.put(place.id, place.user, when);
}

void EndpointShares::used(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  all_.endpoints.set(id, Eviction::excluded);
  ports_.endpoints.set(id, Eviction::excluded);
}

void EndpointShares::give_back(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  remove(id);
}

void EndpointShares::remove(std::uint64_t id) {
  held_.erase(id);
  all_.endpoints.remove(id);
  ports_.endpoints.remove(id);
}

std::size_t EndpointShares::taken() const {
  const std::lock_guard lock(mutex_);
  return held_.size();
}

bool EndpointShares::is_to_be_said(Limit limit, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  const auto [said, first] = said_.try_emplace(limit, now);
  if (!first && now - said->second < said_again_after) return false;
  said->second = now;
  return true;
}

}  // namespace lightq::broker
