/// Chooses TCP ports for endpoints and listens on them. Layer: topic.
#include "topic/port_book.hpp"

#include <fstream>
#include <utility>
#include <vector>

namespace lightq::broker {

namespace {

constexpr int tries_for_any_port = 64;
constexpr int tries_for_resting_port = 16;
constexpr std::size_t ports_of_the_system = 28'232;  // if /proc does not tell the range

}  // namespace

std::size_t PortBook::count_of(const std::optional<Range>& range) {
  if (range) return static_cast<std::size_t>(range->last) - range->first + 1;
  std::ifstream file("/proc/sys/net/ipv4/ip_local_port_range");  // valid for IPv6, too
  std::size_t first = 0;
  std::size_t last = 0;
  if (!(file >> first >> last) || last < first) return ports_of_the_system;
  return last - first + 1;
}

void PortBook::rest_until(std::uint16_t port, Clock::time_point when) {
  const std::lock_guard lock(mutex_);
  put_to_rest(port, {}, false, when);
}

void PortBook::release(std::uint16_t port, const PortUse& had, bool unused) {
  const std::lock_guard lock(mutex_);
  in_use_.erase(port);
  reserved_.erase(port);
  put_to_rest(port, had, unused, Clock::now() + rest_);
}

/// Quarantines a port, unless it is outside the range: no endpoint will listen on such a port again.
void PortBook::put_to_rest(std::uint16_t port, const PortUse& had, bool unused, Clock::time_point until) {
  if (port == 0 || (range_ && (port < range_->first || port > range_->last))) return;
  resting_.put(port, had, unused, until);
}

void PortBook::reserve(std::uint16_t port) {
  if (port == 0) return;
  const std::lock_guard lock(mutex_);
  reserved_.insert(port);
}

Result<ListeningSocket> PortBook::listen_again(std::uint16_t port) {
  const std::lock_guard lock(mutex_);
  auto socket = listen_tcp(host_, port);
  if (socket || socket.error().code == ErrorCode::address_in_use) reserved_.erase(port);
  if (socket) taken(port);
  return socket;
}

void PortBook::taken(std::uint16_t port) {
  resting_.remove(port);
  in_use_.insert(port);
}

bool PortBook::not_to_be_given(std::uint16_t port) const {
  return reserved_.contains(port) || resting_.contains(port);
}

Result<ListeningSocket> PortBook::listen(const PortUse& use) {
  const std::lock_guard lock(mutex_);
  resting_.forget_rested(Clock::now());
  auto found = find(use);
  if (!found) {
    count(counts_, Limit::ports);
    return no_port();
  }
  if (*found) taken((*found)->port);
  if (!*found && found->error().code == ErrorCode::limit_reached) count(counts_, Limit::descriptors_reserved);
  return std::move(*found);
}

/// Finds a port for `use`. Prefers a quarantined port once more than half of all ports are in use or
/// quarantined. So the fresh half is left to endpoints that cannot use a quarantined port.
PortBook::Found PortBook::find(const PortUse& use) {
  if (use.role == EndpointRole::produce) {
    if (auto own = listen_at_own(use)) return own;
  }
  const bool few_are_fresh = resting_.size() + in_use_.size() > ports_in_all_ / 2;
  if (few_are_fresh) {
    if (auto best = listen_at_best(use)) return best;
  }
  auto fresh = range_ ? listen_in(*range_) : listen_any();
  if (fresh || few_are_fresh) return fresh;
  return listen_at_best(use);
}

PortBook::Found PortBook::listen_any() {
  std::vector<ListeningSocket> unwanted;  // kept open until the end, so that the system offers other ports
  for (int tried = 0; tried < tries_for_any_port; ++tried) {
    auto socket = listen_tcp(host_, 0);
    if (!socket && socket.error().code == ErrorCode::address_in_use) break;  // the system has no free port
    if (!socket || !not_to_be_given(socket->port)) return socket;
    unwanted.push_back(std::move(*socket));
  }
  return std::nullopt;
}

PortBook::Found PortBook::listen_in(Range range) {
  for (std::size_t tried = 0; tried < ports_in_all_; ++tried) {
    const std::uint16_t port = next_;
    next_ = port == range.last ? range.first : static_cast<std::uint16_t>(port + 1);
    if (not_to_be_given(port)) continue;
    auto socket = listen_tcp(host_, port);
    if (socket || socket.error().code != ErrorCode::address_in_use) return socket;
  }
  return std::nullopt;
}

PortBook::Found PortBook::listen_at_own(const PortUse& use) {
  const auto port = resting_.own(use);
  return port ? listen_at_resting(*port) : std::nullopt;
}

PortBook::Found PortBook::listen_at_best(const PortUse& use) {
  for (int tried = 0; tried < tries_for_resting_port; ++tried) {
    const auto port = resting_.best(use);
    if (!port) break;
    if (auto found = listen_at_resting(*port)) return found;
  }
  return std::nullopt;
}

/// Listens on a quarantined port. If another program uses the port now, its quarantine begins again, with its
/// use unknown.
PortBook::Found PortBook::listen_at_resting(std::uint16_t port) {
  auto socket = listen_tcp(host_, port);
  if (socket || socket.error().code == ErrorCode::limit_reached) return socket;
  resting_.put(port, {}, false, Clock::now() + rest_);
  return std::nullopt;
}

Error PortBook::no_port() const {
  const std::string rest =
      std::to_string(resting_.size()) +
      " are quarantined because their endpoints closed lately, and others may be about to be reused";
  if (!range_)
    return {ErrorCode::limit_reached,
            "no free port: the ports that the system offers are unavailable; " + rest};
  return {ErrorCode::limit_reached, "no free port in " + std::to_string(range_->first) + "-" +
                                        std::to_string(range_->last) + " (" + rest + ")"};
}

}  // namespace lightq::broker
