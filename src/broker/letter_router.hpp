/// Finds the reactors of topics for dead letters. Layer: broker.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "topic/dead/letter_post.hpp"
#include "topic/reactor/reactor.hpp"

namespace lightq::broker {

/// Knows the names and ids of all topics, and posts tasks to the reactors of topics. ReactorPool owns it.
/// Thread: any.
class LetterRouter final : public LetterPost {
 public:
  /// Returns the reactor of a topic.
  using ReactorOf = std::function<Reactor&(TopicId)>;

  explicit LetterRouter(ReactorOf reactor_of) : reactor_of_(std::move(reactor_of)) {}

  /// Called when the topic is added or expected to be, and when it is removed.
  void add(const std::string& name, TopicId topic);
  void remove(TopicId topic);

  [[nodiscard]] std::optional<TopicId> find(const std::string& topic) const override;
  [[nodiscard]] std::optional<std::string> name_of(TopicId topic) const override;
  [[nodiscard]] bool send(TopicId to, Task task) override;
  void answer(TopicId to, Task task) override;

 private:
  const ReactorOf reactor_of_;
  mutable std::mutex mutex_;
  std::map<std::string, TopicId> topics_;  // by name; guarded by mutex_
  std::map<TopicId, std::string> names_;   // guarded by mutex_
};

}  // namespace lightq::broker
