/// Statistics as server-sent events. Layer: http.
#include "http/streams/stats_text.hpp"

#include <functional>
#include <string_view>
#include <utility>

#include <lightq/protocol/json.hpp>
#include <lightq/protocol/json_fields.hpp>

namespace lightq::broker {

namespace {

constexpr std::string_view begin_text = "event: stats\ndata: {\"topics\":[";

/// Returns statistics as an object in JSON: the reply of the command without its head.
template <typename Stats>
std::string object_of(const Stats& stats) {
  constexpr std::string_view head = R"({"cmd":"stats","status":"ok",)";
  std::string text = protocol::to_json(protocol::Reply(stats));
  return text.replace(0, head.size(), "{");
}

/// Returns a number that differs if the statistics differ in more than their ages.
std::uint64_t digest_of(protocol::TopicStats stats) {
  stats.oldest_ms = 0;
  for (protocol::GroupStats& group : stats.groups) group.oldest_ms = 0;
  return std::hash<std::string>()(object_of(stats));
}

std::string object_of(const ProcessUse& use) {
  const protocol::detail::OrderedJson document{{"cpu_seconds", use.cpu_seconds},
                                               {"resident_bytes", use.resident_bytes},
                                               {"memory_max_bytes", use.memory_max_bytes},
                                               {"open_descriptors", use.open_descriptors},
                                               {"descriptors_max", use.descriptors_max}};
  return protocol::detail::dump(document);
}

std::string object_of(const DiskUse& disk) {
  const protocol::detail::OrderedJson document{{"size_bytes", disk.size_bytes},
                                               {"free_bytes", disk.free_bytes},
                                               {"free_bytes_min", disk.free_bytes_min}};
  return protocol::detail::dump(document);
}

std::string object_of(const ConnectionCounts& counts) {
  const protocol::detail::OrderedJson document{{"producers", counts.producers},
                                               {"consumers", counts.consumers},
                                               {"control", counts.control},
                                               {"http", counts.http}};
  return protocol::detail::dump(document);
}

}  // namespace

void StatsText::begin_round() {
  ++round_;
  seen_ = 0;
  topics_.clear();
  is_partial_ = false;
}

bool StatsText::add(const protocol::TopicStats& stats) {
  if (seen_ == topics_max_) {
    is_partial_ = true;
    return false;
  }
  ++seen_;
  const std::uint64_t digest = digest_of(stats);
  Known& known = known_[stats.topic];
  const bool is_new = known.round == 0;
  known.round = round_;
  if (!is_new && known.digest == digest) return true;
  known.digest = digest;
  if (!topics_.empty()) topics_ += ',';
  topics_ += object_of(stats);
  return true;
}

std::string StatsText::take() {
  std::string text(begin_text);
  return text.append(std::exchange(topics_, {})).append("],\"complete\":false}\n\n");
}

std::string StatsText::take_last(const std::optional<BrokerFigures>& figures) {
  std::string text(begin_text);
  text.append(std::exchange(topics_, {})).append("],\"complete\":true,\"gone\":").append(gone());
  text.append(",\"partial\":").append(is_partial_ ? "true" : "false");
  if (figures) {
    text.append(",\"broker\":").append(object_of(figures->stats));
    text.append(",\"connections\":").append(object_of(figures->connections));
    if (figures->process) text.append(",\"process\":").append(object_of(*figures->process));
    if (figures->disk) text.append(",\"disk\":").append(object_of(*figures->disk));
  }
  return text.append("}\n\n");
}

/// Forgets the topics that this round did not have; returns their names.
std::string StatsText::gone() {
  auto names = protocol::detail::OrderedJson::array();
  for (auto each = known_.begin(); each != known_.end();) {
    if (each->second.round == round_) {
      ++each;
      continue;
    }
    names.push_back(each->first);
    each = known_.erase(each);
  }
  return protocol::detail::dump(names);
}

}  // namespace lightq::broker
