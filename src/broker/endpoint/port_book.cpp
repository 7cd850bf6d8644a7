/// Layer: endpoint.
#include "broker/endpoint/port_book.hpp"

#include <vector>

namespace lightq::broker {

namespace {
constexpr int tries_for_any_port = 64;
}

void PortBook::rest_until(std::uint16_t port, Clock::time_point when) {
  if (port == 0) return;
  const std::lock_guard lock(mutex_);
  resting_[port] = when;
}

void PortBook::reserve(std::uint16_t port) {
  if (port == 0) return;
  const std::lock_guard lock(mutex_);
  reserved_.insert(port);
}

Result<ListeningSocket> PortBook::listen_again(std::uint16_t port) {
  const std::lock_guard lock(mutex_);
  reserved_.erase(port);
  return listen_tcp(host_, port);
}

bool PortBook::not_to_be_given(std::uint16_t port) {
  if (reserved_.contains(port)) return true;
  const auto found = resting_.find(port);
  if (found == resting_.end()) return false;
  if (found->second > Clock::now()) return true;
  resting_.erase(found);
  return false;
}

Result<ListeningSocket> PortBook::listen() {
  const std::lock_guard lock(mutex_);
  return range_ ? listen_in(*range_) : listen_any();
}

/// The system's refusals are for want of descriptors.
Result<ListeningSocket> PortBook::counted(Result<ListeningSocket> socket) {
  if (!socket && socket.error().code == ErrorCode::limit_reached)
    count(refusals_, Limit::descriptors_reserved);
  return socket;
}

Error PortBook::no_port(const std::string& why) {
  count(refusals_, Limit::ports);
  return {ErrorCode::limit_reached, why};
}

Result<ListeningSocket> PortBook::listen_any() {
  std::vector<ListeningSocket> unwanted;  // kept open meanwhile, so that the system offers others
  for (int tried = 0; tried < tries_for_any_port; ++tried) {
    auto socket = listen_tcp(host_, 0);
    if (!socket || !not_to_be_given(socket->port)) return counted(std::move(socket));
    unwanted.push_back(std::move(*socket));
  }
  return no_port("every port the system offered rests or is another endpoint's");
}

Result<ListeningSocket> PortBook::listen_in(Range range) {
  const int count = range.last - range.first + 1;
  int rests = 0;
  for (int tried = 0; tried < count; ++tried) {
    const std::uint16_t port = next_;
    next_ = port == range.last ? range.first : static_cast<std::uint16_t>(port + 1);
    if (not_to_be_given(port)) {
      ++rests;
      continue;
    }
    auto socket = listen_tcp(host_, port);
    if (socket || socket.error().code != ErrorCode::address_in_use) return counted(std::move(socket));
  }
  return no_port("no free port in " + std::to_string(range.first) + "-" + std::to_string(range.last) + " (" +
                 std::to_string(rests) +
                 " rest for a while after their endpoints closed, or are about to be used again)");
}

}  // namespace lightq::broker
