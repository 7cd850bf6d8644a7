/// Suite `sessions`: the measurements, their rounds and results. Layer: bench.
#pragma once

#include <cstdint>
#include <string>

#include "support/report.hpp"
#include "support/suite_program.hpp"

namespace lightq::bench {

struct SessionsOptions {
  bool quick = false;  ///< a short run that only shows that everything works
  std::string broker_binary;
  std::uint64_t window_bytes = 0;  ///< for producers on sessions; 0: their default
  SuiteParts parts{{"throughput", "latency", "flat-out", "fan-out", "crowd", "topics", "single", "lag"}};

  [[nodiscard]] int rounds() const { return quick ? 1 : 5; }
  /// The payload of a throughput run, in bytes.
  [[nodiscard]] double throughput_bytes() const { return quick ? 100e6 : 2e9; }
  [[nodiscard]] double paced_seconds() const { return quick ? 0.5 : 2; }
};

/// Starts the processes, runs every measurement in alternating rounds, and stops everything. Failures are
/// noted in the report. Progress goes to standard error.
Report measure_sessions(const SessionsOptions& options);

}  // namespace lightq::bench
