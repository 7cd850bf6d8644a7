/// Posts tasks about dead letters to the reactors of topics. Layer: broker.
#include "broker/letter_router.hpp"

namespace lightq::broker {

void LetterRouter::add(const std::string& name, TopicId topic) {
  const std::lock_guard lock(mutex_);
  topics_[name] = topic;
  names_[topic] = name;
}

void LetterRouter::remove(TopicId topic) {
  const std::lock_guard lock(mutex_);
  const auto name = names_.extract(topic);
  if (name.empty()) return;
  // A topic of the same name may have been added since.
  const auto found = topics_.find(name.mapped());
  if (found != topics_.end() && found->second == topic) topics_.erase(found);
}

std::optional<TopicId> LetterRouter::find(const std::string& topic) const {
  const std::lock_guard lock(mutex_);
  const auto found = topics_.find(topic);
  return found == topics_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::string> LetterRouter::name_of(TopicId topic) const {
  const std::lock_guard lock(mutex_);
  const auto found = names_.find(topic);
  return found == names_.end() ? std::nullopt : std::optional(found->second);
}

bool LetterRouter::send(TopicId to, Task task) {
  Reactor& reactor = reactor_of_(to);
  return reactor.loop().post([&reactor, task = std::move(task)] { task(reactor.letters()); });
}

void LetterRouter::answer(TopicId to, Task task) {
  Reactor& reactor = reactor_of_(to);
  reactor.loop().post_answer([&reactor, task = std::move(task)] { task(reactor.letters()); });
}

}  // namespace lightq::broker
