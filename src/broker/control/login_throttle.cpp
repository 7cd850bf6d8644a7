/// Layer: control.
#include "broker/control/login_throttle.hpp"

#include <algorithm>

namespace lightq::broker {

void LoginThrottle::Failures::add(Time now) {
  if (count > 0 && now - last >= forgotten_after) count = 0;
  last = now;
  ++count;
}

std::chrono::milliseconds LoginThrottle::Failures::delay() const {
  if (count <= failures_free) return std::chrono::milliseconds(0);
  constexpr unsigned doublings_max = 6;  // there it is above the most
  const unsigned doublings = std::min(count - failures_free - 1, doublings_max);
  return std::min(delay_max, delay_first * (1U << doublings));
}

bool LoginThrottle::begin(const std::string& source) {
  auto& under_way = under_way_[source];
  if (under_way >= limits::logins_waiting_per_source_max) return false;
  ++under_way;
  return true;
}

bool LoginThrottle::is_slowed(const std::string& source) const {
  const Failures* const known = sources_.find(source);
  return known != nullptr && known->delay() > std::chrono::milliseconds(0);
}

void LoginThrottle::end(const std::string& source) {
  const auto found = under_way_.find(source);
  if (found != under_way_.end() && --found->second == 0) under_way_.erase(found);
}

void LoginThrottle::right(const std::string& source, const std::string& user) {
  auto& sources = users_[user].sources;
  if (const auto known = std::ranges::find(sources, source); known != sources.end()) sources.erase(known);
  sources.push_front(source);
  if (sources.size() > limits::login_sources_per_user_max) sources.pop_back();
}

std::chrono::milliseconds LoginThrottle::wrong(const std::string& source, const std::string& user, Time now) {
  Failures& of_source = sources_[source];
  of_source.add(now);
  User& of_user = users_[user];
  of_user.failures.add(now);
  const bool was_right = std::ranges::find(of_user.sources, source) != of_user.sources.end();
  return was_right ? of_source.delay() : std::max(of_source.delay(), of_user.failures.delay());
}

}  // namespace lightq::broker
