/// A histogram of durations. Layer: metrics.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace lightq::broker {

/// The buckets of every histogram of durations: log-linear, in microseconds. Each power of two is divided
/// into 4 buckets of equal width, so that a bucket is at most a quarter as wide as its values are large.
/// Example: the values 8 and 9 share a bucket, and so do 16 to 19.
struct DurationBuckets {
  static constexpr unsigned steps = 4;     ///< of each power of two
  static constexpr unsigned octaves = 27;  ///< the last bucket begins at 2^27 µs, which are 134 s
  static constexpr std::size_t count = std::size_t{steps} * (octaves - 1) + 1;

  /// Returns the bucket of a duration. One that is negative, because a clock was set back, counts as 0.
  static constexpr std::size_t of(std::int64_t us) {
    const auto value = static_cast<std::uint64_t>(std::max<std::int64_t>(us, 0));
    if (value < steps) return static_cast<std::size_t>(value);
    const auto shift = static_cast<unsigned>(std::bit_width(value)) - 3;
    return std::min<std::size_t>(steps * (shift + std::size_t{1}) + ((value >> shift) & (steps - 1)),
                                 count - 1);
  }
  /// Returns the least duration behind a bucket. Requires: it is not the last one.
  static constexpr std::uint64_t end_of(std::size_t bucket) {
    if (bucket < steps) return bucket + 1;
    return (bucket % steps + steps + 1) << (bucket / steps - 1);
  }
};

/// The counts of a histogram at one moment, or the sum of several. Plain data.
struct HistogramCounts {
  std::array<std::uint64_t, DurationBuckets::count> buckets{};
  std::uint64_t count = 0;
  std::uint64_t sum_us = 0;

  HistogramCounts& operator+=(const HistogramCounts& other) {
    for (std::size_t i = 0; i < buckets.size(); ++i) buckets[i] += other.buckets[i];
    count += other.count;
    sum_us += other.sum_us;
    return *this;
  }
};

/// Counts durations. Thread: one thread records, any thread reads. Recording takes a few instructions and no
/// lock: two plain stores. A reader sees each counter whole, but may see some of them before an update that
/// it sees in others.
class Histogram {
 public:
  Histogram() = default;
  Histogram(const Histogram&) = delete;
  Histogram& operator=(const Histogram&) = delete;

  /// Counts `times` events that each took `us`.
  void record(std::int64_t us, std::uint64_t times = 1) {
    add(buckets_[DurationBuckets::of(us)], times);
    if (us > 0) add(sum_us_, static_cast<std::uint64_t>(us) * times);
  }
  /// Returns the counts so far. Thread: any.
  [[nodiscard]] HistogramCounts counts() const {
    HistogramCounts counts;
    counts.sum_us = sum_us_.load(std::memory_order_relaxed);
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      counts.buckets[i] = buckets_[i].load(std::memory_order_relaxed);
      counts.count += counts.buckets[i];
    }
    return counts;
  }

 private:
  using Counter = std::atomic<std::uint64_t>;
  /// Only one thread writes, so no other update comes in between.
  static void add(Counter& counter, std::uint64_t amount) {
    counter.store(counter.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  }

  std::array<Counter, DurationBuckets::count> buckets_{};
  Counter sum_us_{0};
};

}  // namespace lightq::broker
