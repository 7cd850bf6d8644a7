/// A map of bounded size that evicts the least recently used entry. Layer: admission.
#pragma once

#include <cstddef>
#include <list>
#include <unordered_map>
#include <utility>

namespace lightq::broker {

/// One thread.
template <typename Key, typename Value>
class RecentMap {
 public:
  explicit RecentMap(std::size_t entries_max) : entries_max_(entries_max) {}

  /// Returns the key's value, creates it if needed, and marks it as most recently used. Valid until the next
  /// call.
  Value& operator[](const Key& key) {
    if (const auto found = by_key_.find(key); found != by_key_.end()) {
      recent_.splice(recent_.begin(), recent_, found->second);
      return recent_.front().second;
    }
    recent_.emplace_front(key, Value{});
    by_key_.emplace(key, recent_.begin());
    if (recent_.size() > entries_max_) {
      by_key_.erase(recent_.back().first);
      recent_.pop_back();
    }
    return recent_.front().second;
  }
  /// Returns null if there is no entry. Does not count as a use. Valid until the next change.
  [[nodiscard]] const Value* find(const Key& key) const {
    const auto found = by_key_.find(key);
    return found == by_key_.end() ? nullptr : &found->second->second;
  }
  [[nodiscard]] std::size_t size() const { return recent_.size(); }

 private:
  const std::size_t entries_max_;
  std::list<std::pair<Key, Value>> recent_;  // most recently used first
  std::unordered_map<Key, typename std::list<std::pair<Key, Value>>::iterator> by_key_;
};

}  // namespace lightq::broker
