/// The metrics of topics and groups, made of their statistics. Layer: metrics.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <lightq/protocol/control.hpp>

#include "metrics/metric_text.hpp"

namespace lightq::broker {

/// Which series of topics a text has.
struct TopicDetail {
  /// Topics with series of their own, in the order in which they are added; the others are summed in
  /// `topic="_other"`.
  std::size_t topics_max = 1000;
  /// Also writes counters that are 0 and have no other use than to be noticed when they grow.
  bool zeros = false;
};

/// Collects the statistics of topics, and writes them as metrics. The tables in topic_metrics.cpp define
/// each metric of a topic and of a group once: its name, its labels, and the fields it is read from. Groups
/// that serve one consumer each (mode `own`) are summed in `group="_own"`. Thread: one.
class TopicMetrics {
 public:
  explicit TopicMetrics(const TopicDetail& detail);
  TopicMetrics(const TopicMetrics&) = delete;
  TopicMetrics& operator=(const TopicMetrics&) = delete;
  ~TopicMetrics();

  void add(const protocol::TopicStats& topic);
  void write(MetricText& text) const;

 private:
  struct Sums;
  /// The values of one topic or group in the order of its table, with their labels.
  struct Row {
    std::string labels;
    std::vector<std::uint64_t> values;
  };

  void add_groups(const protocol::TopicStats& topic, const std::string& topic_label);

  const TopicDetail detail_;
  std::vector<Row> topics_;
  std::vector<Row> groups_;
  std::unique_ptr<Sums> other_;
};

}  // namespace lightq::broker
