/// Suite `sessions`: what is measured in which rounds, and what came out. Layer: bench.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "support/report.hpp"

namespace lightq::bench {

struct SessionsOptions {
  bool quick = false;  ///< shows that all works, not how fast
  std::string broker_binary;
  std::vector<std::string> parts;  ///< throughput, latency, flat-out, fan-out; none: all

  [[nodiscard]] bool wants(const std::string& part) const {
    return parts.empty() || std::find(parts.begin(), parts.end(), part) != parts.end();
  }
  [[nodiscard]] int rounds() const { return quick ? 1 : 5; }
  /// Of payload, in a run for throughput.
  [[nodiscard]] double throughput_bytes() const { return quick ? 100e6 : 2e9; }
  [[nodiscard]] double paced_seconds() const { return quick ? 0.5 : 2; }
};

/// Starts what is needed, runs everything in alternating rounds, and stops it again. What fails is noted in
/// the report. Progress goes to standard error.
Report measure_sessions(const SessionsOptions& options);

}  // namespace lightq::bench
