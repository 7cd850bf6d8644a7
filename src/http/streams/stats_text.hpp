/// Statistics as server-sent events. Layer: http. docs/http.md, "Live statistics".
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include <lightq/protocol/control.hpp>

#include "metrics/broker_metrics.hpp"
#include "metrics/disk_use.hpp"
#include "metrics/process_metrics.hpp"

namespace lightq::broker {

/// The part of an event that only administrators receive.
struct BrokerFigures {
  protocol::BrokerStats stats;
  std::optional<ProcessUse> process;  ///< nothing: not read this time
  std::optional<DiskUse> disk;        ///< nothing: not read this time, or the system does not say
  ConnectionCounts connections;
};

/// Makes the events of one viewer. Remembers which state of each topic the viewer has, so that an event has
/// only topics that have changed. An age that grows because nothing happens is no change. A round has the
/// first `topics_max` topics. It keeps a number for each, and until the end of a round also those of topics
/// that the round before had. Thread: one.
class StatsText {
 public:
  explicit StatsText(std::size_t topics_max) : topics_max_(topics_max) {}

  /// Begins a round: a look at all topics that the viewer knows.
  void begin_round();
  /// Adds a topic to the event, if the viewer has another state of it. Returns false if there are too many
  /// topics: then the round is to end.
  [[nodiscard]] bool add(const protocol::TopicStats& stats);
  /// Returns the event with the topics added since the last one.
  [[nodiscard]] std::string take();
  /// Returns the event that ends the round: it names the topics that are gone.
  [[nodiscard]] std::string take_last(const std::optional<BrokerFigures>& figures);

 private:
  struct Known {
    std::uint64_t digest = 0;
    std::uint64_t round = 0;
  };

  [[nodiscard]] std::string gone();

  const std::size_t topics_max_;
  std::unordered_map<std::string, Known> known_;
  std::uint64_t round_ = 0;
  std::size_t seen_ = 0;  // topics in this round
  std::string topics_;    // the objects of the next event, separated by commas
  bool is_partial_ = false;
};

}  // namespace lightq::broker
