/// The operations that read statistics. Layer: control.
#include "control/commands/stats_operations.hpp"

#include <unistd.h>

#include <memory>
#include <utility>

#include <lightq/protocol/topic_pattern.hpp>
#include <lightq/version.hpp>

#include "admission/turn_work.hpp"

namespace lightq::broker {

void StatsOperations::topic(const Asker& asker, const TopicName& name, std::uint64_t members_max,
                            const Done<protocol::TopicStats>& done) {
  const auto id = parts_.ready.find(name);
  if (!id) return done(id.error());
  const auto answer = [this, asker, topic = name.text(), done](Result<protocol::TopicStats> stats) {
    if (stats && parts_.rights.manages(asker, topic)) name_members(*stats);
    done(std::move(stats));
  };
  parts_.data_plane.topic_stats(id.value(), members_max, answer);
}

/// Sets the names of the members' users. A user that was deleted meanwhile has none.
void StatsOperations::name_members(protocol::TopicStats& stats) const {
  for (protocol::GroupStats& group : stats.groups) {
    if (!group.members) continue;
    for (protocol::MemberStats& member : *group.members) {
      const UserRecord* const user = parts_.catalogue.state().user_of_id(member.user);
      if (user != nullptr) member.user_id = user->name();
    }
  }
}

namespace {

/// The topics of a page, before their statistics are known.
struct Range {
  TopicsAsked asked;
  std::vector<std::string> names;  // of the topics in `asked`
  bool is_last = true;             // no further topic may follow
  std::uint64_t work_bytes = 0;
};

StatsPage page_of(Range& range, TopicsStats counted) {
  const std::size_t many = counted.topics.size();
  const bool ends_early = many < range.names.size();
  StatsPage page{
      .topics = {}, .continue_after = {}, .work_bytes = range.work_bytes, .connections = counted.connections};
  if (many > 0 && (ends_early || !range.is_last)) page.continue_after = std::move(range.names[many - 1]);
  for (auto& stats : counted.topics) {
    if (stats) page.topics.push_back(std::move(*stats));
  }
  return page;
}

}  // namespace

void StatsOperations::topics(const Asker& asker, const TopicsWanted& wanted, const Done<StatsPage>& done) {
  const auto& topics = parts_.catalogue.state().topics();
  const UserRecord* const user = parts_.rights.user_of(asker);
  const auto range = std::make_shared<Range>();
  range->asked.entries_max = wanted.entries_max;
  range->asked.with_connections = wanted.with_connections;
  auto next = wanted.after ? topics.upper_bound(wanted.after->text()) : topics.begin();
  for (; next != topics.end() && range->names.size() < wanted.topics_max; ++next) {
    const auto& [name, entry] = *next;
    if (!wanted.pattern.empty() && !protocol::fits_pattern(name, wanted.pattern)) continue;
    TurnWork::add(TurnWork::range_passed);
    if (user != nullptr) range->work_bytes += user->rights.size() * pattern_work_bytes;
    if (!AskerRights::sees(asker, user, name) || !parts_.ready.find(entry.definition.name)) continue;
    range->asked.topics.push_back(entry.definition.id);
    range->names.push_back(name);
  }
  TurnWork::add(range->work_bytes);
  range->is_last = next == topics.end();
  parts_.data_plane.stats_of(std::move(range->asked), [range, done](Result<TopicsStats> counted) {
    if (!counted) return done(counted.error());
    done(page_of(*range, std::move(counted).value()));
  });
}

void StatsOperations::broker(const Done<protocol::BrokerStats>& done) {
  parts_.data_plane.broker_stats([this, done](Result<protocol::BrokerStats> result) {
    if (!result) return done(result.error());
    protocol::BrokerStats stats = std::move(result).value();
    add_own(stats);
    done(std::move(stats));
  });
}

void StatsOperations::add_own(protocol::BrokerStats& stats) const {
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
}

}  // namespace lightq::broker
