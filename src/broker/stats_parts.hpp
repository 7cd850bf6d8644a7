/// Divides a question for the statistics of many topics among the reactors. Layer: broker.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>
#include <lightq/protocol/control.hpp>

#include "topic/reactor/stats_of_topics.hpp"

namespace lightq::broker {

/// Gives each reactor the part of a question that concerns its topics, so that one message to each reactor is
/// enough, and joins the answers in the order of the question. ReactorPool makes one for each question.
/// Example: of the topics a b c d, reactor 0 has a c and reactor 1 has b d. If entries_max stops reactor 1
/// after b, the answer has a b c: what comes behind d's place would leave a gap. Thread: `put` and `joined`
/// are called on one thread.
class StatsParts {
 public:
  /// `reactor_of`: the index of a topic's reactor, less than `reactors`.
  StatsParts(TopicsAsked asked, std::size_t reactors, const std::function<std::size_t(TopicId)>& reactor_of)
      : entries_max_(asked.entries_max), counted_(asked.topics.size()), parts_(reactors) {
    for (std::size_t place = 0; place < asked.topics.size(); ++place) {
      Part& part = parts_[reactor_of(asked.topics[place])];
      part.asked.topics.push_back(asked.topics[place]);
      part.places.push_back(place);
    }
    for (Part& part : parts_) {
      part.asked.entries_max = entries_max_;
      part.is_asked = !part.places.empty() || asked.with_connections;
      if (part.is_asked) ++missing_;
    }
  }

  /// Returns true if the reactor has to answer.
  [[nodiscard]] bool asks(std::size_t reactor) const { return parts_[reactor].is_asked; }
  /// Returns a reactor's part of the question, which may have no topics. Call it once for each reactor.
  [[nodiscard]] TopicsAsked take_part(std::size_t reactor) { return std::move(parts_[reactor].asked); }
  /// Returns true if no answer is missing.
  [[nodiscard]] bool complete() const { return missing_ == 0; }
  /// Takes a reactor's answer.
  void put(std::size_t reactor, Result<TopicsStats> answer) {
    --missing_;
    if (!answer) {
      failed_ = answer.error();
      return;
    }
    connections_.refused += answer->connections.refused;
    connections_.evicted += answer->connections.evicted;
    const std::vector<std::size_t>& places = parts_[reactor].places;
    for (std::size_t i = 0; i < answer->topics.size(); ++i)
      counted_[places[i]] = {true, std::move(answer->topics[i])};
  }
  /// Returns the answer to the whole question: it ends in front of the first topic that a reactor left out,
  /// and after the topic that reaches entries_max. Requires: complete(). Call it once. Errors: those of the
  /// reactors.
  [[nodiscard]] Result<TopicsStats> joined() {
    if (failed_) return *failed_;
    TopicsStats joined;
    joined.connections = connections_;
    std::size_t entries = 0;
    for (Counted& counted : counted_) {
      if (!counted.is_known || entries >= entries_max_) break;
      if (counted.stats) entries += entries_of(*counted.stats);
      joined.topics.push_back(std::move(counted.stats));
    }
    return joined;
  }

 private:
  struct Part {
    TopicsAsked asked;
    std::vector<std::size_t> places;  // of its topics in the question
    bool is_asked = false;
  };
  struct Counted {
    bool is_known = false;
    std::optional<protocol::TopicStats> stats;
  };

  const std::size_t entries_max_;
  std::vector<Counted> counted_;  // in the order of the question
  std::vector<Part> parts_;       // by reactor
  std::size_t missing_ = 0;
  ConnectionsRefused connections_;
  std::optional<Error> failed_;
};

}  // namespace lightq::broker
