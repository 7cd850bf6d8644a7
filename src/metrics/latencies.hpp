/// The durations that each reactor measures. Layer: metrics. docs/operations.md, "Metrics".
#pragma once

#include "metrics/histogram.hpp"

namespace lightq::broker {

/// The durations of all reactors together, as counted at one moment. Plain data.
struct LatencyCounts {
  HistogramCounts append;
  HistogramCounts flush;
  HistogramCounts delivery;
  HistogramCounts due_lateness;

  LatencyCounts& operator+=(const LatencyCounts& other) {
    append += other.append;
    flush += other.flush;
    delivery += other.delivery;
    due_lateness += other.due_lateness;
    return *this;
  }
};

/// The durations of one reactor. Thread: the reactor records, any thread reads.
struct Latencies {
  Histogram append;        ///< of a batch: from the call that received it until it is in the log
  Histogram flush;         ///< of a sync: from its request until the reactor knows that it is done
  Histogram delivery;      ///< of a message: from its append to its first delivery, to each consumer group
  Histogram due_lateness;  ///< of a delayed message: from its due time until it is in the log

  [[nodiscard]] LatencyCounts counts() const {
    return {append.counts(), flush.counts(), delivery.counts(), due_lateness.counts()};
  }
};

}  // namespace lightq::broker
