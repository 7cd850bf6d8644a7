/// The permissions that a session's tickets give. Layer: session.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "access/ticket.hpp"

namespace lightq::broker {

/// A ticket's grant and its holder.
struct SessionPermit {
  Grant grant;
  TicketHolder holder;
  friend bool operator==(const SessionPermit&, const SessionPermit&) = default;
};

/// Stores permits by the topic's name. A session may present thousands of tickets, and each frame that opens
/// a channel or reads looks one up.
/// Thread: the reactor's.
class SessionPermits {
 public:
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  /// Returns the permits for the topic of this name, and for earlier topics with this name. Lifetime: until
  /// the next change.
  [[nodiscard]] std::span<const SessionPermit> of(const std::string& topic) const {
    const auto found = by_topic_.find(topic);
    return found == by_topic_.end() ? std::span<const SessionPermit>() : found->second;
  }
  [[nodiscard]] bool contains(const std::string& topic, const SessionPermit& permit) const {
    return std::ranges::find(of(topic), permit) != of(topic).end();
  }
  /// Adds a permit. Requires: it is not contained.
  void add(const std::string& topic, const SessionPermit& permit) {
    by_topic_[topic].push_back(permit);
    ++size_;
  }
  /// Removes the permits for which `is_gone(permit)` returns true. Returns their number.
  template <typename IsGone>
  std::size_t erase_if(IsGone&& is_gone) {
    std::size_t gone = 0;
    for (auto at = by_topic_.begin(); at != by_topic_.end();) {
      gone += std::erase_if(at->second, is_gone);
      at = at->second.empty() ? by_topic_.erase(at) : std::next(at);
    }
    size_ -= gone;
    return gone;
  }

 private:
  std::unordered_map<std::string, std::vector<SessionPermit>> by_topic_;
  std::size_t size_ = 0;
};

}  // namespace lightq::broker
