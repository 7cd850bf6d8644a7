/// The question for the statistics of many topics, and its answer. Layer: topic.
#pragma once

#include <cstddef>
#include <cstdint>
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
  bool with_connections = false;  ///< the answer also has ConnectionsRefused, which asks every reactor
};

/// The connections that reactors have refused or evicted since the start.
struct ConnectionsRefused {
  std::uint64_t refused = 0;  ///< without a ticket that admits them
  std::uint64_t evicted = 0;  ///< unauthenticated ones, to make room for others
};

/// The statistics of the first topics of the question: of all, unless entries_max was reached. Empty for a
/// topic that does not exist any more.
struct TopicsStats {
  std::vector<std::optional<protocol::TopicStats>> topics;
  ConnectionsRefused connections = {};  ///< with with_connections
};

/// Returns the number of objects in a topic's statistics: the topic, its groups and its subscribers. The time
/// and the bytes that the statistics take grow with it.
inline std::size_t entries_of(const protocol::TopicStats& stats) {
  return 1 + stats.groups.size() + stats.subscribers.size();
}

}  // namespace lightq::broker
