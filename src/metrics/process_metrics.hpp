/// The broker's process as the system sees it. Layer: metrics.
#pragma once

#include <cstdint>

#include "metrics/metric_text.hpp"

namespace lightq::broker {

/// The process's use of the system's resources. Plain data.
struct ProcessUse {
  double cpu_seconds = 0;
  std::uint64_t resident_bytes = 0;
  std::uint64_t memory_max_bytes = 0;  ///< that the process can have: of the machine or its control group
  std::uint64_t open_descriptors = 0;
  std::uint64_t descriptors_max = 0;
  double start_seconds = 0;  ///< since 1970
};

/// Reads the use of this process from /proc and the system. A number that cannot be read is 0. Opens up to
/// three files, so it takes tens of microseconds. Thread: any.
ProcessUse process_use();

/// Writes it with the names that Prometheus's own libraries use.
void write_process_metrics(const ProcessUse& use, MetricText& text);

}  // namespace lightq::broker
