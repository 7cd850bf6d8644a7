/// Suite `sessions`: what is measured in which rounds, and what came out. Layer: bench.
#pragma once

#include <cstdint>
#include <string>

#include "support/report.hpp"
#include "support/suite_program.hpp"

namespace lightq::bench {

struct SessionsOptions {
  bool quick = false;  ///< shows that all works, not how fast
  std::string broker_binary;
  std::uint64_t window_bytes = 0;  ///< of producers on sessions; 0: their own choice
  SuiteParts parts{{"throughput", "latency", "flat-out", "fan-out", "crowd", "topics", "single", "lag"}};

  [[nodiscard]] int rounds() const { return quick ? 1 : 5; }
  /// Of payload, in a run for throughput.
  [[nodiscard]] double throughput_bytes() const { return quick ? 100e6 : 2e9; }
  [[nodiscard]] double paced_seconds() const { return quick ? 0.5 : 2; }
};

/// Starts what is needed, runs everything in alternating rounds, and stops it again. What fails is noted in
/// the report. Progress goes to standard error.
Report measure_sessions(const SessionsOptions& options);

}  // namespace lightq::bench
