/// Names the entry to evict when something is full. Layer: admission.
/// docs/adr/0051-limit-by-quota-token-bucket-and-eviction-queue.md.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

namespace lightq::broker {

/// When an entry of an EvictionQueue is evicted, compared with other entries.
enum class Eviction : std::uint8_t {
  first,
  later,     ///< after all entries of the key with `first`
  excluded,  ///< it only counts for its key, and is not evicted
};

/// Entries by age, and by the user or source (the key) for which each counts. An entry to evict is the oldest
/// of all, or the oldest of the key with most entries. So a key that adds many entries loses its own. The
/// caller knows the bound: it compares size() with it, asks for an entry, ends the thing that the entry
/// stands for, and removes the entry.
///
/// Example: entry 1 is bob's, and the newer entries 2, 3 and 4 are ann's. Then oldest() returns 1, and
/// oldest_of_most() returns 2. After set(2, Eviction::excluded) it returns 3; ann still has three entries.
///
/// Each call takes the logarithm of the number of entries, except find(). Thread: one. Only the thread of a
/// connection may end it, so each thread has a queue of its own connections, with its own bound.
template <typename Key, typename Id = std::uint64_t>
class EvictionQueue {
 public:
  EvictionQueue() = default;
  EvictionQueue(const EvictionQueue&) = delete;
  EvictionQueue& operator=(const EvictionQueue&) = delete;
  /// Requires: `from` is not used any more.
  EvictionQueue(EvictionQueue&& from) = default;
  EvictionQueue& operator=(EvictionQueue&& from) = default;

  /// Adds an entry as the newest. If there is one with this id, makes it the newest, and `key` its key.
  void put(const Id& id, const Key& key, Eviction when = Eviction::first) {
    remove(id);
    Owner& owner = *owners_.try_emplace(key).first;
    const Order order{when, ++last_};
    entries_.emplace(id, Entry{&owner, order});
    change(owner, [&](Owned& owned) {
      ++owned.entries;
      list(owned, order, id);
    });
  }
  /// Changes when an entry is evicted. Its age stays. Does nothing if there is no such entry.
  void set(const Id& id, Eviction when) {
    const auto found = entries_.find(id);
    if (found == entries_.end() || found->second.order.when == when) return;
    Order& order = found->second.order;
    change(*found->second.owner, [&](Owned& owned) {
      unlist(owned, order);
      order.when = when;
      list(owned, order, id);
    });
  }
  /// Removes an entry. Does nothing if there is no such entry.
  void remove(const Id& id) {
    const auto found = entries_.find(id);
    if (found == entries_.end()) return;
    const Entry entry = found->second;
    entries_.erase(found);
    change(*entry.owner, [&](Owned& owned) {
      --owned.entries;
      unlist(owned, entry.order);
    });
  }

  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  /// Returns the number of the key's entries.
  [[nodiscard]] std::size_t of(const Key& key) const {
    const auto found = owners_.find(key);
    return found == owners_.end() ? 0 : found->second.entries;
  }
  /// Returns when the entry is evicted. Requires: there is such an entry.
  [[nodiscard]] Eviction when(const Id& id) const { return entries_.at(id).order.when; }

  // The functions below return no entry with Eviction::excluded. They return nothing if there is no other.

  /// Returns the oldest entry of all with Eviction::first; without such entries the oldest of the others.
  [[nodiscard]] std::optional<Id> oldest() const { return first_of(all_); }
  /// Returns the entry of the key that is evicted before its others.
  [[nodiscard]] std::optional<Id> oldest_of(const Key& key) const {
    const auto found = owners_.find(key);
    return found == owners_.end() ? std::nullopt : first_of(found->second.evictable);
  }
  /// Returns the entry to evict of the key with most entries. On a tie, the entry that oldest() would prefer.
  /// Returns nothing if all entries of the keys with most have Eviction::excluded.
  [[nodiscard]] std::optional<Id> oldest_of_most() const {
    if (ranks_.empty()) return std::nullopt;
    const auto unevictable = ranks_.lower_bound({true, std::numeric_limits<std::size_t>::max(), {}, nullptr});
    if (unevictable != ranks_.end() && unevictable->entries > ranks_.begin()->entries) return std::nullopt;
    return first_of(ranks_.begin()->owner->second.evictable);
  }
  /// Returns the entry to evict of the key with most entries, if that has more than `share`. Otherwise
  /// returns oldest(). Keys without an entry to evict do not matter.
  [[nodiscard]] std::optional<Id> to_evict(std::size_t share) const {
    const bool has_much = !ranks_.empty() && ranks_.begin()->entries > share;
    return has_much ? first_of(ranks_.begin()->owner->second.evictable) : oldest();
  }
  /// Returns the first entry for which `accept(key, entries of the key, id)` returns true. It is called with
  /// oldest_of() of each key, keys with more entries first.
  template <typename Accept>
  [[nodiscard]] std::optional<Id> find(Accept accept) const {
    for (const Rank& rank : ranks_) {
      if (rank.has_none) break;
      const Id& id = rank.owner->second.evictable.begin()->second;
      if (accept(rank.owner->first, rank.entries, id)) return id;
    }
    return std::nullopt;
  }

 private:
  /// The order of eviction.
  struct Order {
    Eviction when = Eviction::first;
    std::uint64_t age = 0;  // larger is newer
    auto operator<=>(const Order&) const = default;
  };
  using ByOrder = std::map<Order, Id>;
  struct Owned {
    std::size_t entries = 0;
    ByOrder evictable;  // without those of Eviction::excluded
  };
  using Owners = std::unordered_map<Key, Owned>;
  using Owner = typename Owners::value_type;
  struct Entry {
    Owner* owner;
    Order order;
  };
  /// Orders keys: first those with an entry to evict, and of these the one with most entries.
  struct Rank {
    bool has_none;  // nothing to evict
    std::size_t entries;
    Order first;  // of the entry to evict
    const Owner* owner;
    bool operator<(const Rank& other) const {
      if (has_none != other.has_none) return other.has_none;
      if (entries != other.entries) return entries > other.entries;
      if (first != other.first) return first < other.first;
      return std::less<>()(owner, other.owner);
    }
  };

  static std::optional<Id> first_of(const ByOrder& entries) {
    return entries.empty() ? std::nullopt : std::optional(entries.begin()->second);
  }
  static Rank rank_of(const Owner& owner) {
    const ByOrder& evictable = owner.second.evictable;
    return {evictable.empty(), owner.second.entries, evictable.empty() ? Order{} : evictable.begin()->first,
            &owner};
  }
  void list(Owned& owned, const Order& order, const Id& id) {
    if (order.when == Eviction::excluded) return;
    owned.evictable.emplace(order, id);
    all_.emplace(order, id);
  }
  void unlist(Owned& owned, const Order& order) {
    owned.evictable.erase(order);
    all_.erase(order);
  }
  /// Applies `change` to the owner and keeps the ranks sorted. Forgets an owner that has no entry left.
  template <typename Change>
  void change(Owner& owner, Change&& change) {
    ranks_.erase(rank_of(owner));
    change(owner.second);
    if (owner.second.entries > 0) {
      ranks_.insert(rank_of(owner));
    } else {
      owners_.erase(owners_.find(owner.first));
    }
  }

  std::uint64_t last_ = 0;  // the age of the newest entry
  std::unordered_map<Id, Entry> entries_;
  Owners owners_;  // keys with entries; nodes keep their address
  std::set<Rank> ranks_;
  ByOrder all_;  // of all keys
};

}  // namespace lightq::broker
