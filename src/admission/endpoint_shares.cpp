/// Counts endpoints and chooses which to evict. Layer: admission.
#include "admission/endpoint_shares.hpp"

#include <algorithm>
#include <string>

#include "base/log_sink.hpp"

namespace lightq::broker {

std::size_t EndpointShares::own(Pot pot, std::uint64_t user) const {
  const auto share = shares_.find(user);
  if (share == shares_.end()) return 0;
  return pot == Pot::ports ? share->second.ports : share->second.endpoints;
}

Result<std::vector<EndpointShares::Place>> EndpointShares::take(const Place& wanted, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  std::vector<Held> evicted;
  for (const Pot pot : {Pot::endpoints, Pot::ports}) {
    if (pot == Pot::ports && !wanted.is_tcp) continue;
    const bool has_room_now = std::any_of(evicted.begin(), evicted.end(), [pot](const Held& each) {
      return pot == Pot::endpoints || each.place.is_tcp;
    });
    const auto verdict = FairShare(most(pot)).ask(taken(pot), wanted.user, own(pot, wanted.user));
    if (has_room_now || verdict == FairShare::Verdict::room) continue;
    const Held* const found = to_make_room(pot, wanted.user, verdict == FairShare::Verdict::others, now);
    if (found == nullptr) {
      count(refusals_, pot == Pot::ports ? Limit::ports : Limit::endpoints_max);
      Error error = refusal(pot, verdict, wanted.user);
      for (const Held& each : evicted) put(each.place, each.since, true);  // not evicted after all
      return error;
    }
    evicted.push_back(*found);
    remove(evicted.back().place.id);
  }
  put(wanted, now, true);
  std::vector<Place> places;
  for (const Held& each : evicted) places.push_back(each.place);
  return places;
}

/// Returns the endpoint to evict, or null if there is none. No user loses an endpoint to a user with more
/// endpoints.
const EndpointShares::Held* EndpointShares::to_make_room(Pot pot, std::uint64_t user, bool only_own,
                                                         Clock::time_point now) const {
  const Held* best = nullptr;
  std::size_t most_of_one = own(pot, user);
  for (const auto& [each, share] : shares_) {
    const std::size_t has = own(pot, each);
    if (has < most_of_one || (only_own && each != user)) continue;
    const Held* const oldest = oldest_unused(pot, share);
    if (oldest == nullptr || now - oldest->since < bounds_.unused_time_min) continue;
    best = oldest;
    most_of_one = has;
  }
  return best;
}

const EndpointShares::Held* EndpointShares::oldest_unused(Pot pot, const Share& share) const {
  const auto& tcp = share.unused_tcp;
  const auto& ipc = share.unused_ipc;
  const bool is_ipc = pot == Pot::endpoints && !ipc.empty() && (tcp.empty() || *ipc.begin() < *tcp.begin());
  if (!is_ipc && tcp.empty()) return nullptr;
  return &held_.at(is_ipc ? *ipc.begin() : *tcp.begin());
}

Error EndpointShares::refusal(Pot pot, FairShare::Verdict verdict, std::uint64_t user) const {
  const std::string all = pot == Pot::ports ? "TCP ports for endpoints" : "endpoints (endpoints_max)";
  const std::string of_all = std::to_string(most(pot)) + " " + all;
  if (verdict == FairShare::Verdict::full) return {ErrorCode::limit_reached, "all " + of_all + " are in use"};
  return {ErrorCode::limit_reached, name_of_sharer(user) + " " + std::to_string(own(pot, user)) + " of the " +
                                        of_all + ", and the last " + std::to_string(most(pot) - taken(pot)) +
                                        " are reserved for users with fewer"};
}

void EndpointShares::add(const Place& place) {
  const std::lock_guard lock(mutex_);
  remove(place.id);
  put(place, {}, false);
}

void EndpointShares::put(const Place& place, Clock::time_point since, bool unused) {
  held_.insert_or_assign(place.id, Held{place, since});
  Share& share = shares_[place.user];
  ++share.endpoints;
  if (place.is_tcp) ++share.ports;
  if (place.is_tcp) ++ports_;
  if (unused) (place.is_tcp ? share.unused_tcp : share.unused_ipc).insert(place.id);
}

void EndpointShares::used(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  const auto found = held_.find(id);
  if (found == held_.end()) return;
  Share& share = shares_.at(found->second.place.user);
  share.unused_tcp.erase(id);
  share.unused_ipc.erase(id);
}

void EndpointShares::give_back(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  remove(id);
}

void EndpointShares::remove(std::uint64_t id) {
  const auto found = held_.find(id);
  if (found == held_.end()) return;
  const Place place = found->second.place;
  held_.erase(found);
  const auto of_user = shares_.find(place.user);
  Share& share = of_user->second;
  share.unused_tcp.erase(id);
  share.unused_ipc.erase(id);
  if (place.is_tcp) --share.ports;
  if (place.is_tcp) --ports_;
  if (--share.endpoints == 0) shares_.erase(of_user);
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
