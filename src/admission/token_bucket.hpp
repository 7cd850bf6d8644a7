/// Limits rates by token buckets: one bucket, and one for each user or source. Layer: admission.
/// docs/adr/0051-limit-by-quota-token-bucket-and-eviction-queue.md.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <optional>

#include "admission/no_mutex.hpp"
#include "admission/recent_map.hpp"

namespace lightq::broker {

/// A rate that permits bursts.
struct Rate {
  /// `per_second`: tokens. The burst is one second's tokens.
  explicit Rate(std::size_t tokens_per_second) : Rate(tokens_per_second, tokens_per_second) {}
  Rate(std::size_t tokens_per_second, std::size_t tokens_at_once)
      : per_second(static_cast<double>(tokens_per_second)), burst(static_cast<double>(tokens_at_once)) {}

  double per_second;
  double burst;  ///< the tokens of a full bucket
};

/// One token bucket. It is full at first. The caller passes its rate and the time. Thread: one.
class Tokens {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// Takes `amount` tokens. Returns false, and takes none, if there are too few. A time before that of the
  /// last call adds no tokens.
  bool take(const Rate& rate, Time now, double amount = 1) {
    if (now > seen_) {
      const std::chrono::duration<double> passed = now - seen_;
      spent_ = std::max(0.0, spent_ - passed.count() * rate.per_second);
      seen_ = now;
    }
    if (spent_ + amount > rate.burst) return false;
    spent_ += amount;
    return true;
  }
  /// Takes `amount` more tokens afterwards, or returns some if it is negative. The bucket may get into debt.
  void charge(double amount) { spent_ += amount; }
  /// Returns the tokens that are left, as of the last take(). Negative: the bucket is in debt.
  [[nodiscard]] double left(const Rate& rate) const { return rate.burst - spent_; }

 private:
  Time seen_;
  double spent_ = 0;  // the tokens that a full bucket has more
};

/// A token bucket for each key, for at most `keys_max` keys: beyond that, the bucket of the least recently
/// used key is dropped, and so is full when the key returns.
///
/// Thread: one with NoMutex. With std::mutex any, and each call is one atomic step. Listeners on several
/// threads then share one object, so a source has one rate on all of them. The lock costs tens of nanoseconds
/// for each request. No message takes it.
template <typename Key, typename Mutex = NoMutex>
class TokenBucket {
 public:
  using Time = Tokens::Time;

  TokenBucket(const Rate& rate, std::size_t keys_max) : rate_(rate), buckets_(keys_max) {}
  TokenBucket(const TokenBucket&) = delete;
  TokenBucket& operator=(const TokenBucket&) = delete;

  /// Takes `amount` tokens of the key. Returns false, and takes none, if there are too few.
  bool take(const Key& key, Time now, double amount = 1) {
    const std::lock_guard lock(mutex_);
    return buckets_[key].tokens.take(rate_, now, amount);
  }
  /// Takes tokens for work before its amount is known: as many as the key's largest amount so
  /// far, but at most 1/8 of a burst, and at least one. Returns them for `settle`; nothing if there are too
  /// few.
  std::optional<double> take_estimate(const Key& key, Time now) {
    const std::lock_guard lock(mutex_);
    Bucket& bucket = buckets_[key];
    const double estimate = std::clamp(bucket.largest, 1.0, std::max(1.0, rate_.burst / 8));
    if (!bucket.tokens.take(rate_, now, estimate)) return std::nullopt;
    return estimate;
  }
  /// Charges the difference when the amount is known. The bucket may get into debt. `taken`: as returned by
  /// take_estimate().
  void settle(const Key& key, double taken, double amount) {
    const std::lock_guard lock(mutex_);
    Bucket& bucket = buckets_[key];
    bucket.largest = std::max(bucket.largest, amount);
    bucket.tokens.charge(amount - taken);
  }
  /// Sets another rate. Tokens that were taken stay taken.
  void set_rate(const Rate& rate) {
    const std::lock_guard lock(mutex_);
    rate_ = rate;
  }
  /// Returns the number of keys that have a bucket.
  [[nodiscard]] std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return buckets_.size();
  }

 private:
  struct Bucket {
    Tokens tokens;
    double largest = 0;  // the largest amount of settle()
  };
  [[no_unique_address]] mutable Mutex mutex_;  // guards the members below
  Rate rate_;
  RecentMap<Key, Bucket> buckets_;
};

}  // namespace lightq::broker
