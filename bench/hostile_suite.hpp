/// Suite `hostile`: legitimate clients beside thousands of hostile connections. Layer: bench.
#pragma once

#include <cstdint>
#include <string>

#include "support/report.hpp"
#include "support/suite_program.hpp"

namespace lightq::bench {

struct HostileOptions {
  bool quick = false;  ///< a short run that only shows that everything works
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
  /// The payload of a run over sessions, in bytes; a run over plain sockets sends a tenth.
  [[nodiscard]] double stream_bytes() const { return quick ? 200e6 : 4e9; }
};

/// Runs the suite. Failures are noted in the report. Progress goes to standard error.
Report measure_hostile(const HostileOptions& options);

}  // namespace lightq::bench
