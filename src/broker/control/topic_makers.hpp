/// Who has made which topics, for their shares of what there may be. Layer: control.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include <lightq/base/types.hpp>

namespace lightq::broker {

/// Since the broker's start: those that were there before are nobody's, as are the administrators' (user 0).
/// The control thread.
class TopicMakers {
 public:
  /// `ring_bytes`: what its ring may take; 0: it has none.
  void made(TopicId topic, std::uint64_t user, std::uint64_t ring_bytes) {
    if (user == 0) return;
    by_topic_.emplace(topic.value, Made{user, ring_bytes});
    ++counts_[user];
    if (ring_bytes != 0) rings_[user] += ring_bytes;
  }
  /// Nothing happens for one that is nobody's.
  void gone(TopicId topic) {
    const auto found = by_topic_.extract(topic.value);
    if (found.empty()) return;
    const Made& made = found.mapped();
    came(made.user);
    if (made.ring_bytes != 0 && (rings_.at(made.user) -= made.ring_bytes) == 0) rings_.erase(made.user);
  }
  /// One of the user's is being made, and counts; came() when it is made, or is not to be.
  void coming(std::uint64_t user) {
    if (user != 0) ++counts_[user];
  }
  void came(std::uint64_t user) {
    if (const auto count = counts_.find(user); count != counts_.end() && --count->second == 0)
      counts_.erase(count);
  }
  /// How many of the user's there are.
  [[nodiscard]] std::size_t of(std::uint64_t user) const {
    const auto found = counts_.find(user);
    return found == counts_.end() ? 0 : found->second;
  }
  /// What the rings of the user's may take together.
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
  std::unordered_map<std::uint64_t, std::size_t> counts_;   // by user; those that have any
  std::unordered_map<std::uint64_t, std::uint64_t> rings_;  // likewise, in bytes
};

}  // namespace lightq::broker
