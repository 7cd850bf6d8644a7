/// The commands stats, ping and version. Layer: control.
#include <unistd.h>

#include <utility>

#include <lightq/version.hpp>

#include "control/commands/command_handler.hpp"

namespace lightq::broker {

void CommandHandler::execute(protocol::Stats request, const Answer& answer) {
  if (!request.topic) {
    return permit_admin("stats", std::move(request.user), answer, [this, answer] { broker_stats(answer); });
  }
  const auto topic = *request.topic;
  permit_topic("stats", std::move(request.user), request.as_admin, {}, topic, answer,
               [=, this](TopicId id, const TicketHolder&) {
                 data_plane_.topic_stats(id, [answer](Result<protocol::TopicStats> stats) {
                   if (!stats) return answer(error_reply("stats", stats.error()));
                   answer(std::move(stats).value());
                 });
               });
}

void CommandHandler::broker_stats(const Answer& answer) {
  data_plane_.broker_stats([this, answer](Result<protocol::BrokerStats> result) {
    if (!result) return answer(error_reply("stats", result.error()));
    protocol::BrokerStats stats = std::move(result).value();
    const auto now_ms = settings_.now().us / 1000;
    stats.version = version_text;
    stats.pid = static_cast<std::uint64_t>(getpid());
    stats.since_ms = static_cast<std::uint64_t>(since_ms_);
    stats.uptime_ms = now_ms > since_ms_ ? static_cast<std::uint64_t>(now_ms - since_ms_) : 0;
    stats.topics = catalogue_.state().topics().size();
    stats.auth_failures = authenticator_.failures();
    stats.throttled_requests = authenticator_.throttled() + settings_.throttled();
    stats.evicted_connections += settings_.evicted();
    if (settings_.limits_reached != nullptr) stats.limits_reached = settings_.limits_reached->all();
    stats.limits_reached["handshakes_max"] = stats.evicted_connections;
    stats.limits_reached["requests_per_second"] = settings_.throttled();
    stats.limits_reached["log_queue_bytes"] = sink_.lost();
    stats.data_dir = settings_.data_dir;
    stats.encrypted = !settings_.server_key.empty();
    stats.insecure = settings_.insecure;
    answer(std::move(stats));
  });
}

void CommandHandler::execute(protocol::Ping, const Answer& answer) {
  answer(protocol::OkReply{"ping", {}, {}});
}

void CommandHandler::execute(protocol::Version, const Answer& answer) {
  answer(protocol::VersionReply{std::string(version_text), 1});
}

}  // namespace lightq::broker
