/// Seeded randomness for tests: the seed is printed when a test fails, and LIGHTQ_SEED replays it.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

namespace lightq::test {

/// A random source with a seed that a failure reports. LIGHTQ_SEED=N in the environment replays seed N.
class Random {
 public:
  Random() : Random(seed_from_environment()) {}
  explicit Random(std::uint64_t seed)
      : seed_(seed),
        trace_(__FILE__, __LINE__, "replay with LIGHTQ_SEED=" + std::to_string(seed)),
        engine_(seed) {}

  [[nodiscard]] std::uint64_t seed() const { return seed_; }
  /// Evenly in [0, bound); bound >= 1.
  std::uint64_t below(std::uint64_t bound) {
    return std::uniform_int_distribution<std::uint64_t>(0, bound - 1)(engine_);
  }
  /// Evenly in [low, high].
  std::uint64_t between(std::uint64_t low, std::uint64_t high) { return low + below(high - low + 1); }
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  std::vector<std::byte> bytes(std::size_t count) {
    std::vector<std::byte> made(count);
    for (auto& byte : made) byte = static_cast<std::byte>(engine_());
    return made;
  }

 private:
  static std::uint64_t seed_from_environment() {
    const char* given = std::getenv("LIGHTQ_SEED");
    return given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
  }
  std::uint64_t seed_;
  testing::ScopedTrace trace_;
  std::mt19937_64 engine_;
};

}  // namespace lightq::test
