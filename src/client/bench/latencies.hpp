/// Counts latencies in buckets of about 3 %, with constant memory for any number of messages. Layer: cli.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace lightq::cli {

/// Counts durations in nanoseconds. For one thread.
class Latencies {
 public:
  void add(std::uint64_t ns) {
    ++buckets_[bucket_of(ns)];
    ++count_;
  }
  /// Adds all durations of another object.
  void add(const Latencies& others) {
    for (std::size_t at = 0; at < buckets_.size(); ++at) buckets_[at] += others.buckets_[at];
    count_ += others.count_;
  }
  [[nodiscard]] std::uint64_t count() const { return count_; }

  /// Returns the duration that a share of all (0 to 1) did not exceed, in seconds, within 3.2 %. 0 if there
  /// are none.
  [[nodiscard]] double percentile(double share) const {
    const auto rank = static_cast<std::uint64_t>(share * static_cast<double>(count_));
    std::uint64_t seen = 0;
    for (std::size_t at = 0; at < buckets_.size(); ++at) {
      seen += buckets_[at];
      if (seen > rank || (seen == count_ && seen > 0)) return static_cast<double>(upper_end(at)) / 1e9;
    }
    return 0;
  }

  /// Returns how many durations are in [from_ns, to_ns), rounded to whole buckets.
  [[nodiscard]] std::uint64_t between(std::uint64_t from_ns, std::uint64_t to_ns) const {
    std::uint64_t seen = 0;
    for (std::size_t at = bucket_of(from_ns); at < bucket_of(to_ns); ++at) seen += buckets_[at];
    return seen;
  }

 private:
  static constexpr unsigned fine_bits = 5;  // 32 buckets for each doubling
  static constexpr std::uint64_t fine = 1U << fine_bits;

  static std::size_t bucket_of(std::uint64_t ns) {
    if (ns < fine) return ns;
    const auto shift = static_cast<unsigned>(std::bit_width(ns)) - fine_bits - 1;
    return (shift + 1) * fine + ((ns >> shift) - fine);
  }
  static std::uint64_t upper_end(std::size_t bucket) {
    if (bucket < fine) return bucket;
    const std::size_t shift = bucket / fine - 1;
    return ((fine + bucket % fine + 1) << shift) - 1;
  }

  std::array<std::uint64_t, (65 - fine_bits) * fine> buckets_{};
  std::uint64_t count_ = 0;
};

}  // namespace lightq::cli
