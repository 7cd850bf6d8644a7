/// Carries dead letters from the reactor of one topic to that of another. Layer: topic.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <lightq/base/types.hpp>

namespace lightq::broker {

class LetterOffice;

/// Names one attempt of a group's transfer to use a target. No name is used again while the process runs.
struct LetterChannel {
  TopicId source;  ///< the topic of the group
  std::uint64_t transfer = 0;
  std::uint64_t attempt = 0;
  friend constexpr auto operator<=>(LetterChannel, LetterChannel) = default;
};

/// Runs tasks on the reactors of other topics. Thread: any.
class LetterPost {
 public:
  using Task = std::function<void(LetterOffice&)>;

  virtual ~LetterPost() = default;
  /// Returns the topic with this name, or nothing if there is none.
  [[nodiscard]] virtual std::optional<TopicId> find(const std::string& topic) const = 0;
  /// Returns the name of the topic, or nothing if it was deleted. A topic that is not open yet, or cannot be
  /// opened, has a name.
  [[nodiscard]] virtual std::optional<std::string> name_of(TopicId topic) const = 0;
  /// Runs `task` on the reactor of the topic, which may not exist any more, in a later turn. Tasks for the
  /// same topic run in their order. Returns false, and does not run it, if that reactor has too many tasks.
  [[nodiscard]] virtual bool send(TopicId to, Task task) = 0;
  /// Runs `task` as `send` does, without the bound: for answers, and to close channels.
  virtual void answer(TopicId to, Task task) = 0;
};

}  // namespace lightq::broker
