/// The metrics of the broker as a whole. Layer: metrics.
#include "metrics/broker_metrics.hpp"

#include <string>

#include <lightq/version.hpp>

namespace lightq::broker {

void write_build_metric(MetricText& text) {
  text.begin({"lightq_build_info", MetricType::gauge, "Always 1; the label has the version."});
  text.sample("version=\"" + escaped_label(version_text) + "\"", std::uint64_t{1});
}

void write_broker_metrics(const protocol::BrokerStats& stats, const ConnectionCounts& connections,
                          MetricText& text) {
  constexpr auto counter = MetricType::counter;
  constexpr auto gauge = MetricType::gauge;
  text.begin({"lightq_start_time_seconds", gauge, "When the broker began to count, in seconds since 1970."});
  text.sample({}, static_cast<double>(stats.since_ms) / 1000);
  text.begin({"lightq_connections", gauge, "Connections, by their purpose."});
  text.sample("kind=\"producer\"", connections.producers);
  text.sample("kind=\"consumer\"", connections.consumers);
  text.sample("kind=\"control\"", connections.control);
  text.sample("kind=\"http\"", connections.http);
  text.begin({"lightq_limits_reached_total", counter, "Refusals, by the limit that was reached."});
  for (const auto& [name, refused] : stats.limits_reached)
    text.sample("limit=\"" + escaped_label(name) + "\"", refused);
  text.begin({"lightq_auth_failures_total", counter, "Refused logins, by the kind of secret."});
  text.sample("kind=\"password\"", stats.auth_failures);
  text.sample("kind=\"ticket\"", stats.refused_connections);
}

void write_latency_metrics(const LatencyCounts& latencies, MetricText& text) {
  constexpr auto histogram = MetricType::histogram;
  text.begin({"lightq_append_seconds", histogram,
              "Time from the arrival of a batch in the broker until it is in the log."});
  text.histogram(latencies.append);
  text.begin({"lightq_flush_seconds", histogram, "Time from the request of a sync until it is done."});
  text.histogram(latencies.flush);
  text.begin({"lightq_delivery_seconds", histogram,
              "Time from the append of a message to its first delivery, to each cursor."});
  text.histogram(latencies.delivery);
  text.begin({"lightq_due_lateness_seconds", histogram,
              "Time from the due time of a delayed message until it is in the log."});
  text.histogram(latencies.due_lateness);
}

}  // namespace lightq::broker
