/// The question for the statistics of many topics, and its answer. Layer: topic.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <vector>

#include <lightq/base/types.hpp>
#include <lightq/protocol/control.hpp>

namespace lightq::broker {

/// Topics whose statistics are wanted, in the order of the answer.
struct TopicsAsked {
  std::vector<TopicId> topics;
  /// The answer ends early, after the topic that reaches this number of entries (see entries_of).
  std::size_t entries_max = std::numeric_limits<std::size_t>::max();
};

/// The statistics of the first topics of the question: of all, unless entries_max was reached. Empty for a
/// topic that does not exist any more.
struct TopicsStats {
  std::vector<std::optional<protocol::TopicStats>> topics;
};

/// Returns the number of objects in a topic's statistics: the topic, its groups and its subscribers. The time
/// and the bytes that the statistics take grow with it.
inline std::size_t entries_of(const protocol::TopicStats& stats) {
  return 1 + stats.groups.size() + stats.subscribers.size();
}

}  // namespace lightq::broker
