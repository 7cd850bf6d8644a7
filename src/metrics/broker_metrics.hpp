/// The metrics of the broker as a whole. Layer: metrics.
#pragma once

#include <cstdint>

#include <lightq/protocol/control.hpp>

#include "metrics/latencies.hpp"
#include "metrics/metric_text.hpp"

namespace lightq::broker {

/// Connections, by their purpose. Plain data.
struct ConnectionCounts {
  std::uint64_t producers = 0;
  std::uint64_t consumers = 0;
  std::uint64_t control = 0;
  std::uint64_t http = 0;
};

void write_build_metric(MetricText& text);
void write_broker_metrics(const protocol::BrokerStats& stats, const ConnectionCounts& connections,
                          MetricText& text);
void write_latency_metrics(const LatencyCounts& latencies, MetricText& text);

}  // namespace lightq::broker
