/// The operations that read statistics. Layer: control.
#include "control/commands/stats_operations.hpp"

#include <unistd.h>

#include <lightq/version.hpp>

namespace lightq::broker {

void StatsOperations::topic(const TopicName& name, const Done<protocol::TopicStats>& done) {
  const auto id = parts_.ready.find(name);
  if (!id) return done(id.error());
  parts_.data_plane.topic_stats(id.value(), done);
}

void StatsOperations::broker(const Done<protocol::BrokerStats>& done) {
  parts_.data_plane.broker_stats([this, done](Result<protocol::BrokerStats> result) {
    if (!result) return done(result.error());
    protocol::BrokerStats stats = std::move(result).value();
    const OperationSettings& settings = parts_.settings;
    const LoginCounts logins = parts_.logins();
    const auto now_ms = settings.now().us / 1000;
    stats.version = version_text;
    stats.pid = static_cast<std::uint64_t>(getpid());
    stats.since_ms = static_cast<std::uint64_t>(since_ms_);
    stats.uptime_ms = now_ms > since_ms_ ? static_cast<std::uint64_t>(now_ms - since_ms_) : 0;
    stats.topics = parts_.catalogue.state().topics().size();
    stats.auth_failures = logins.failures;
    stats.throttled_requests = logins.throttled + settings.throttled();
    stats.evicted_connections += settings.evicted();
    if (settings.limits_reached != nullptr) stats.limits_reached = settings.limits_reached->all();
    stats.limits_reached["handshakes_max"] = stats.evicted_connections;
    stats.limits_reached["requests_per_second"] = settings.throttled();
    stats.limits_reached["log_queue_bytes"] = parts_.sink.lost();
    stats.data_dir = settings.data_dir;
    stats.encrypted = !settings.server_key.empty();
    stats.insecure = settings.insecure;
    done(std::move(stats));
  });
}

}  // namespace lightq::broker
