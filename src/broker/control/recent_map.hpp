/// A map of bounded size that forgets what was used longest ago. Layer: control.
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

  /// The key's value, a new one where there is none; it is the one used last now. Valid until the next call.
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
  /// Null: there is none. Valid until the next change.
  [[nodiscard]] const Value* find(const Key& key) const {
    const auto found = by_key_.find(key);
    return found == by_key_.end() ? nullptr : &found->second->second;
  }
  [[nodiscard]] std::size_t size() const { return recent_.size(); }

 private:
  const std::size_t entries_max_;
  std::list<std::pair<Key, Value>> recent_;  // used last: first
  std::unordered_map<Key, typename std::list<std::pair<Key, Value>>::iterator> by_key_;
};

}  // namespace lightq::broker
