/// Finds topics and groups that do not move although they could. Layer: http.
#include "http/progress_watch.hpp"

#include <utility>

namespace lightq::broker {

namespace {

/// Returns a number that differs, except by chance of 2^-64, if a group has delivered or settled anything.
std::uint64_t state_of(const protocol::GroupStats& group) {
  std::uint64_t state = 0;
  for (const std::uint64_t part :
       {group.next_offset, group.acknowledged, group.redelivered, group.released, group.failed,
        group.timed_out, group.lost_with_session, group.revoked, group.lost, group.in_flight}) {
    state = (state ^ part) * 0x9E3779B97F4A7C15U;
    state ^= state >> 32U;
  }
  return state;
}

bool could_deliver(const protocol::TopicStats& topic, const protocol::GroupStats& group) {
  return !topic.paused && !group.paused && group.paused_by.empty() && group.ready > 0 &&
         group.free_consumers > 0;
}

bool is_in_files(const protocol::TopicStats& topic) {
  return topic.topic_type == protocol::BrokerType::file ||
         topic.topic_type == protocol::BrokerType::queue_file;
}

}  // namespace

void ProgressWatch::begin(Time now) {
  now_ = now;
  found_ = {};
  ++round_;
}

void ProgressWatch::see(const protocol::TopicStats& topic) {
  if (topic.blocked_by == "disk") ++found_.on_disk;
  const bool is_flushed = topic.durable_offset >= topic.next_offset;
  if (flushes_ && is_in_files(topic) && !is_flushed && stands_still(topic.topic, topic.durable_offset))
    ++found_.flushes;
  for (const protocol::GroupStats& group : topic.groups) {
    if (could_deliver(topic, group) && stands_still(topic.topic + " " + group.group, state_of(group)))
      ++found_.groups;
  }
}

bool ProgressWatch::stands_still(std::string name, std::uint64_t state) {
  Seen& seen = seen_[std::move(name)];
  if (seen.round == 0 || seen.state != state) seen = {.state = state, .since = now_};
  seen.round = round_;
  return now_ - seen.since >= stall_;
}

Standstill ProgressWatch::finish() {
  std::erase_if(seen_, [this](const auto& entry) { return entry.second.round != round_; });
  return found_;
}

}  // namespace lightq::broker
