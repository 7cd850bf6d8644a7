/// Suite `security`: the cost of tickets, encryption and encryption at rest. Layer: bench.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "support/report.hpp"
#include "support/suite_program.hpp"

namespace lightq::bench {

struct SecurityOptions {
  bool quick = false;  ///< a short run that only shows that everything works
  std::string broker_binary;
  SuiteParts parts{{"tickets", "curve", "tls", "connects", "logins", "at-rest"}};

  std::uint64_t rounds_given = 0;  ///< 0: the default number

  [[nodiscard]] int rounds() const {
    return rounds_given > 0 ? static_cast<int>(std::min<std::uint64_t>(rounds_given, 1'000)) : quick ? 2 : 7;
  }
  /// The payload of a run over unencrypted plain sockets, in bytes; a run over sessions sends six times as
  /// much.
  [[nodiscard]] double plain_bytes() const { return quick ? 60e6 : 600e6; }
  [[nodiscard]] int connects() const { return quick ? 20 : 200; }
};

/// Runs the suite. Failures are noted in the report. Progress goes to standard error.
Report measure_security(const SecurityOptions& options);

}  // namespace lightq::bench
