/// Records which user created each topic, to enforce each user's share of the limits. Layer: control.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include <lightq/base/types.hpp>

namespace lightq::broker {

/// Covers topics created since the broker's start. Topics from before, and those that administrators (user 0)
/// create, count for no user. Thread: the control thread.
class TopicMakers {
 public:
  /// Records a created topic. `ring_bytes`: the maximum size of its ring; 0: it has none.
  void made(TopicId topic, std::uint64_t user, std::uint64_t ring_bytes) {
    if (user == 0) return;
    by_topic_.emplace(topic.value, Made{user, ring_bytes});
    ++counts_[user];
    if (ring_bytes != 0) rings_[user] += ring_bytes;
  }
  /// Removes a deleted topic. Does nothing if it counts for no user.
  void gone(TopicId topic) {
    const auto found = by_topic_.extract(topic.value);
    if (found.empty()) return;
    const Made& made = found.mapped();
    came(made.user);
    if (made.ring_bytes != 0 && (rings_.at(made.user) -= made.ring_bytes) == 0) rings_.erase(made.user);
  }
  /// Counts a topic that the user is creating. Call came() when it exists or its creation has failed.
  void coming(std::uint64_t user) {
    if (user != 0) ++counts_[user];
  }
  void came(std::uint64_t user) {
    if (const auto count = counts_.find(user); count != counts_.end() && --count->second == 0)
      counts_.erase(count);
  }
  /// Returns the number of the user's topics.
  [[nodiscard]] std::size_t of(std::uint64_t user) const {
    const auto found = counts_.find(user);
    return found == counts_.end() ? 0 : found->second;
  }
  /// Returns the sum of the maximum ring sizes of the user's topics.
  [[nodiscard]] std::uint64_t ring_bytes_of(std::uint64_t user) const {
    const auto found = rings_.find(user);
    return found == rings_.end() ? 0 : found->second;
  }

 private:
  struct Made {
    std::uint64_t user = 0;
    std::uint64_t ring_bytes = 0;
  };
  std::unordered_map<std::uint64_t, Made> by_topic_;
  std::unordered_map<std::uint64_t, std::size_t> counts_;   // by user, without zeros
  std::unordered_map<std::uint64_t, std::uint64_t> rings_;  // by user, in bytes, without zeros
};

}  // namespace lightq::broker
