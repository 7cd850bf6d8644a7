/// Retries endpoints that could not be opened, twice a second. Layer: plain.
#include "plain/unopened_endpoints.hpp"

#include <algorithm>
#include <chrono>

namespace lightq::broker {

namespace {
constexpr auto open_again_interval = std::chrono::milliseconds(500);
}  // namespace

void UnopenedEndpoints::add(const One& one) {
  all_.insert_or_assign(one.record.id, one);
  if (timer_ == 0) try_later();
}

void UnopenedEndpoints::try_later() {
  if (stopped_) return;
  timer_ = loop_.at(EventLoop::Clock::now() + open_again_interval, [this] {
    timer_ = 0;
    try_all();
    if (!all_.empty()) try_later();
  });
}

void UnopenedEndpoints::try_all() {
  for (auto at = all_.begin(); !stopped_ && at != all_.end();) {
    const auto opened = open_(at->second);
    if (!opened && opened.error().code == ErrorCode::limit_reached) return;
    at = opened ? all_.erase(at) : std::next(at);
  }
}

std::optional<UnopenedEndpoints::One> UnopenedEndpoints::take(
    const std::function<bool(const EndpointRecord&)>& matches) {
  const auto found =
      std::ranges::find_if(all_, [&matches](const auto& each) { return matches(each.second.record); });
  if (found == all_.end()) return std::nullopt;
  const One one = found->second;
  all_.erase(found);
  return one;
}

void UnopenedEndpoints::stop() {
  stopped_ = true;
  loop_.cancel(timer_);
}

}  // namespace lightq::broker
