/// Suite `hostile`: who belongs here, while thousands who do not come in masses. Layer: bench.
#pragma once

#include <cstdint>
#include <string>

#include "support/report.hpp"
#include "support/suite_program.hpp"

namespace lightq::bench {

struct HostileOptions {
  bool quick = false;  ///< shows that all works, not how fast
  std::string broker_binary;
  std::uint64_t connections = 0;    ///< 0: 10,000, or 1,000 if quick
  std::uint64_t rounds_wanted = 0;  ///< 0: 5, or 1 if quick
  SuiteParts parts{{"sessions", "plain"}};

  [[nodiscard]] int rounds() const {
    return rounds_wanted != 0 ? static_cast<int>(rounds_wanted) : quick ? 1 : 5;
  }
  [[nodiscard]] std::uint64_t crowd() const {
    return connections != 0 ? connections : quick ? 1'000 : 10'000;
  }
  /// Of payload, in a run over sessions; over plain sockets a tenth.
  [[nodiscard]] double stream_bytes() const { return quick ? 200e6 : 4e9; }
};

/// As measure_sessions.
Report measure_hostile(const HostileOptions& options);

}  // namespace lightq::bench
