/// Seeded random numbers for tests. Every run uses the same seed; with LIGHTQ_SEED=random each run uses
/// another one. A failing test prints the seed, and LIGHTQ_SEED replays it.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace lightq::test {

/// A random source. A failing test reports its seed.
class Random {
 public:
  /// Uses the seed of this process, or another seed of a series that begins with it.
  explicit Random(int in_series = 0)
      : Random(seed_of_process() + static_cast<std::uint64_t>(in_series), FromSeed{}) {}
  [[nodiscard]] std::uint64_t seed() const { return seed_; }
  /// Returns a uniform number in [0, bound). Requires: bound >= 1.
  std::uint64_t below(std::uint64_t bound) {
    return std::uniform_int_distribution<std::uint64_t>(0, bound - 1)(engine_);
  }
  /// Returns a uniform number in [low, high].
  std::uint64_t between(std::uint64_t low, std::uint64_t high) { return low + below(high - low + 1); }
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  std::vector<std::byte> bytes(std::size_t count) {
    std::vector<std::byte> made(count);
    for (auto& byte : made) byte = static_cast<std::byte>(engine_());
    return made;
  }

 private:
  struct FromSeed {};
  Random(std::uint64_t seed, FromSeed /*tag*/)
      : seed_(seed),
        trace_(__FILE__, __LINE__,
               "seed " + std::to_string(seed) + "; LIGHTQ_SEED=" + std::to_string(seed_of_process()) +
                   " replays this run"),
        engine_(seed) {}

  static std::uint64_t seed_of_process() {
    static const std::uint64_t seed = [] {
      const char* given = std::getenv("LIGHTQ_SEED");
      if (given == nullptr) return std::uint64_t{1};
      if (std::string_view(given) == "random") return std::uint64_t{std::random_device()()};
      return std::uint64_t{std::strtoull(given, nullptr, 10)};
    }();
    return seed;
  }
  std::uint64_t seed_;
  ::testing::ScopedTrace trace_;
  std::mt19937_64 engine_;
};

}  // namespace lightq::test
