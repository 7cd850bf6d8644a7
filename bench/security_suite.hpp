/// Suite `security`: what tickets, encryption and sealed files cost. Layer: bench.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "support/report.hpp"
#include "support/suite_program.hpp"

namespace lightq::bench {

struct SecurityOptions {
  bool quick = false;  ///< shows that all works, not how fast
  std::string broker_binary;
  SuiteParts parts{{"tickets", "curve", "tls", "connects", "logins", "at-rest"}};

  std::uint64_t rounds_given = 0;  ///< 0: as many as usual

  [[nodiscard]] int rounds() const {
    return rounds_given > 0 ? static_cast<int>(std::min<std::uint64_t>(rounds_given, 1'000)) : quick ? 2 : 7;
  }
  /// Of payload, in a run over plain sockets in clear; over sessions six times that.
  [[nodiscard]] double plain_bytes() const { return quick ? 60e6 : 600e6; }
  [[nodiscard]] int connects() const { return quick ? 20 : 200; }
};

/// As measure_sessions.
Report measure_security(const SecurityOptions& options);

}  // namespace lightq::bench
