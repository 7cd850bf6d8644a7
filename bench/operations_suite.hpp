/// Suite `operations`: the cost of watching a broker, messages over HTTP, and starts. Layer: bench.
#pragma once

#include <string>

#include "support/report.hpp"
#include "support/suite_program.hpp"

namespace lightq::bench {

struct OperationsOptions {
  bool quick = false;  ///< a short run that only shows that everything works
  std::string broker_binary;
  SuiteParts parts{{"scrape", "idle", "http", "start"}};

  [[nodiscard]] int topics() const { return quick ? 50 : 1000; }
  [[nodiscard]] int scrapes() const { return quick ? 3 : 31; }
  [[nodiscard]] int starts() const { return quick ? 2 : 11; }
  [[nodiscard]] int posts() const { return quick ? 200 : 20'000; }  ///< of one run
  [[nodiscard]] int contents() const { return quick ? 3 : 60; }     ///< with many messages, of one run
  [[nodiscard]] int runs() const { return quick ? 1 : 5; }
  [[nodiscard]] double idle_seconds() const { return quick ? 2 : 20; }
};

/// Runs the suite. Failures are noted in the report. Progress goes to standard error.
Report measure_operations(const OperationsOptions& options);

}  // namespace lightq::bench
