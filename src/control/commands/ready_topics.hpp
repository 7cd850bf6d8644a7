/// Records which topics of the catalogue requests may use. Layer: control.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>

#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>

#include "control/catalogue/catalogue.hpp"

namespace lightq::broker {

/// A topic of the catalogue is ready, starting, or could not start. TopicOperations reports the changes, and
/// all operations find topics here. Thread: the control thread. Lifetime: the catalogue must outlive it.
class ReadyTopics {
 public:
  explicit ReadyTopics(const Catalogue& catalogue) : catalogue_(catalogue) {}

  /// Returns the id of a topic that is ready. Call it only after the asker's credentials were verified: the
  /// result reveals whether the topic exists. Errors: topic_not_found; the reason why the topic could not
  /// start.
  [[nodiscard]] Result<TopicId> find(const TopicName& name) const;
  /// Returns the same for a topic that stores messages, so that it can be paused and purged. Errors also:
  /// not_supported.
  [[nodiscard]] Result<TopicId> find_with_messages(const TopicName& name) const;
  /// Returns the id of a topic that is ready or could not start. Errors: topic_not_found.
  [[nodiscard]] Result<TopicId> find_known(const TopicName& name) const;
  /// Returns true while the data plane does not have the topic yet.
  [[nodiscard]] bool is_starting(TopicId topic) const { return starting_.contains(topic.value); }

  void begin_start(TopicId topic) { starting_.insert(topic.value); }
  void end_start(TopicId topic) { starting_.erase(topic.value); }
  /// Records why requests for the topic fail.
  void failed(TopicId topic, const Error& error) { failed_.emplace(topic.value, error); }
  void removed(TopicId topic) { failed_.erase(topic.value); }

 private:
  const Catalogue& catalogue_;
  std::unordered_set<std::uint64_t> starting_;
  std::unordered_map<std::uint64_t, Error> failed_;  // topics that could not start
};

}  // namespace lightq::broker
