/// Counts what each user or source has of a shared limit, and refuses what exceeds it. Layer: admission.
/// docs/adr/0051-limit-by-quota-token-bucket-and-eviction-queue.md.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <limits>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "admission/fair_share.hpp"
#include "admission/no_mutex.hpp"

namespace lightq::broker {

/// Counts units (connections, requests, bytes) by key. A key is a user or a source.
///
/// - `Bounds::total` bounds the units of all keys together. A key with half of it leaves its last eighth to
///   other keys (FairShare).
/// - `Bounds::per_key` bounds the units of one key.
/// - Key 0 of a quota by number is no user: the administrator, or an unknown one. Only the total bounds it.
///
/// Example: of `Quota<std::uint64_t>({.total = 16})`, user 7 can take 14 units. Other users can take the last
/// two.
///
/// Thread: one with NoMutex. With std::mutex any, and each call is one atomic step; `take` checks and counts
/// in one. Listeners on several threads then share one object, so a user has the same bound on one listener
/// as on all of them. The lock costs tens of nanoseconds for each connection or control request. No message
/// takes it.
template <typename Key, typename Mutex = NoMutex>
class Quota {
  struct Count {
    std::size_t units = 0;
    std::size_t holdings = 0;
  };
  using Counts = std::unordered_map<Key, Count>;

 public:
  using Verdict = FairShare::Verdict;
  static constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();
  struct Bounds {
    std::size_t total = unlimited;
    std::size_t per_key = unlimited;
  };

  /// Without bounds it only counts.
  Quota() = default;
  explicit Quota(const Bounds& bounds) : bounds_(bounds) {}
  Quota(const Quota&) = delete;
  Quota& operator=(const Quota&) = delete;
  /// Requires: neither has a Holding; `from` is not used any more.
  Quota(Quota&& from) = default;
  Quota& operator=(Quota&& from) = default;

  /// Checks whether the key may take `more` units.
  [[nodiscard]] Verdict ask(const Key& key, std::size_t more = 1) const {
    const std::lock_guard lock(mutex_);
    return verdict(key, units_of(key), more);
  }
  /// Takes `more` units if the verdict is `room`. Returns the verdict.
  Verdict take(const Key& key, std::size_t more = 1) {
    const std::lock_guard lock(mutex_);
    const Verdict found = verdict(key, units_of(key), more);
    if (found == Verdict::room) change_by(key, 0, more);
    return found;
  }
  /// Counts `more` units of the key, even beyond the bounds.
  void add(const Key& key, std::size_t more = 1) { change(key, 0, more); }
  /// Returns units. Does nothing beyond those that the key has.
  void give_back(const Key& key, std::size_t fewer = 1) {
    const std::lock_guard lock(mutex_);
    change_by(key, std::min(fewer, units_of(key)), 0);
  }
  /// Counts `now` units of a part of the key's units that had `before`, even beyond the bounds.
  void change(const Key& key, std::size_t before, std::size_t now) {
    const std::lock_guard lock(mutex_);
    change_by(key, before, now);
  }

  [[nodiscard]] std::size_t of(const Key& key) const {
    const std::lock_guard lock(mutex_);
    return units_of(key);
  }
  [[nodiscard]] std::size_t total() const {
    const std::lock_guard lock(mutex_);
    return total_;
  }
  [[nodiscard]] Bounds bounds() const {
    const std::lock_guard lock(mutex_);
    return bounds_;
  }
  /// Sets other bounds. Units beyond them stay until they are given back.
  void set_bounds(const Bounds& bounds) {
    const std::lock_guard lock(mutex_);
    bounds_ = bounds;
  }

  /// The units of one holder, which change often. It finds the key's count once; after that, a change is two
  /// additions. Lifetime: the quota outlives it. Requires: the quota has NoMutex.
  class Holding {
   public:
    /// Without a quota nothing is counted or bounded.
    Holding(Quota* quota, const Key& key) : quota_(quota) {
      if (quota_ == nullptr) return;
      own_ = &*quota_->counts_.try_emplace(key).first;
      ++own_->second.holdings;
    }
    Holding(const Holding&) = delete;
    Holding& operator=(const Holding&) = delete;
    ~Holding() {
      if (quota_ == nullptr) return;
      set(0);
      --own_->second.holdings;
      quota_->drop_if_empty(quota_->counts_.find(own_->first));
    }

    /// Charges all units to another key from now on.
    void move_to(const Key& key) {
      if (quota_ == nullptr) return;
      const std::size_t units = units_;
      Holding moved(quota_, key);
      set(0);
      std::swap(own_, moved.own_);
      set(units);
    }
    /// The holder has so many units now, even beyond the bounds.
    void set(std::size_t units) {
      if (units == units_ || quota_ == nullptr) return;
      quota_->total_ = quota_->total_ - units_ + units;
      own_->second.units = own_->second.units - units_ + units;
      units_ = units;
    }
    /// Returns the units of the last set(); 0 without a quota.
    [[nodiscard]] std::size_t units() const { return units_; }
    /// Returns true if the key may take one more unit.
    [[nodiscard]] bool has_room() const {
      return quota_ == nullptr || quota_->verdict(own_->first, own_->second.units, 1) == Verdict::room;
    }

   private:
    static_assert(std::same_as<Mutex, NoMutex>);
    std::size_t units_ = 0;  // first, because mostly it alone is read
    Quota* const quota_;
    typename Counts::value_type* own_ = nullptr;
  };

 private:
  [[nodiscard]] static bool is_exempt(const Key& key) {
    if constexpr (std::integral<Key>) return key == 0;
    return false;
  }
  [[nodiscard]] Verdict verdict(const Key& key, std::size_t own, std::size_t more) const {
    const bool exempt = is_exempt(key);
    if (!exempt && (own >= bounds_.per_key || more > bounds_.per_key - own)) return Verdict::own;
    return FairShare(bounds_.total).ask(total_, exempt ? 0 : 1, own, more);
  }
  [[nodiscard]] std::size_t units_of(const Key& key) const {
    const auto found = counts_.find(key);
    return found == counts_.end() ? 0 : found->second.units;
  }
  void change_by(const Key& key, std::size_t fewer, std::size_t more) {
    if (fewer == more) return;
    const auto found = counts_.try_emplace(key).first;
    found->second.units = found->second.units - fewer + more;
    total_ = total_ - fewer + more;
    drop_if_empty(found);
  }
  void drop_if_empty(typename Counts::iterator count) {
    if (count->second.units == 0 && count->second.holdings == 0) counts_.erase(count);
  }

  [[no_unique_address]] mutable Mutex mutex_;  // guards the members below
  Bounds bounds_;
  Counts counts_;  // keys with units or holdings; nodes keep their address
  std::size_t total_ = 0;
};

}  // namespace lightq::broker
