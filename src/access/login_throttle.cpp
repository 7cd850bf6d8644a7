/// Counts wrong passwords by source and user, and computes the delays that follow from them. Layer: access.
#include "access/login_throttle.hpp"

#include <algorithm>

namespace lightq::broker {

namespace {

std::string key_of(const std::string& source, const std::string& user) {
  return std::to_string(source.size()) + ":" + source + user;
}

}  // namespace

void LoginThrottle::Failures::add(Time now) {
  if (count > 0 && passed(now)) count = 0;
  last = now;
  ++count;
}

std::chrono::milliseconds LoginThrottle::Failures::delay() const {
  if (count <= failures_free) return std::chrono::milliseconds(0);
  constexpr unsigned doublings_max = 6;  // beyond that the delay exceeds delay_max
  const unsigned doublings = std::min(count - failures_free - 1, doublings_max);
  return std::min(delay_max, delay_first * (1U << doublings));
}

bool LoginThrottle::is_slowed(const std::string& source, Time now) const {
  const Failures* const known = sources_.find(source);
  return known != nullptr && !known->passed(now) && known->delay() > std::chrono::milliseconds(0);
}

LoginThrottle::Time LoginThrottle::next_computation(const std::string& source, Time now) const {
  if (!is_slowed(source, now)) return now;
  const Failures& known = *sources_.find(source);
  return known.computing + std::chrono::duration_cast<Time::duration>(known.delay()) / computations_per_delay;
}

void LoginThrottle::computing(const std::string& source, Time now) {
  if (sources_.find(source) != nullptr) sources_[source].computing = now;
}

bool LoginThrottle::has_failed(const std::string& source, const std::string& user, Time now) const {
  const Time* const last = names_.find(key_of(source, user));
  return last != nullptr && now - *last < forgotten_after;
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
  names_[key_of(source, user)] = now;
  User& of_user = users_[user];
  of_user.failures.add(now);
  const bool was_right = std::ranges::find(of_user.sources, source) != of_user.sources.end();
  return was_right ? of_source.delay() : std::max(of_source.delay(), of_user.failures.delay());
}

}  // namespace lightq::broker
