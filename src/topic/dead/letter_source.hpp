/// The dead messages of one group that wait for their transfer, as the transfer sees them. Layer: topic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>

#include "delivery/letters/dead_letter.hpp"

namespace lightq::broker {

/// A letter with its transfer number.
struct NumberedLetter {
  std::uint64_t number = 0;  ///< at least 1
  DeadLetter letter;
};

/// A group's outbox. The first messages of an outbox may be *under way*: they have transfer numbers, which
/// ascend without gaps within an incarnation. LetterTransfer says how they are used. If the group is gone,
/// the outbox is empty. Thread: the reactor's of the group's topic.
class LetterSource {
 public:
  /// A message under way.
  struct Message {
    std::uint64_t number = 0;
    DeathAccount death;
  };
  /// A dead-letter topic.
  struct Target {
    TopicId topic;     ///< the topic that had the name when it was set
    std::string name;  ///< empty: the group has no dead-letter topic
  };
  /// The result of reading a message.
  struct Read {
    enum class Outcome {
      letter,
      lost,      ///< the message is damaged, or the log no longer has it
      pending,   ///< the disk is reading it
      later,     ///< it cannot be read now
      too_large  ///< with the headers of its death it exceeds the limits of a message
    };
    Outcome outcome = Outcome::later;
    std::optional<DeadLetter> letter;
  };
  using Saved = std::function<void(const Result<void>&)>;

  LetterSource() = default;
  LetterSource(const LetterSource&) = delete;
  LetterSource& operator=(const LetterSource&) = delete;
  virtual ~LetterSource() = default;

  /// Returns a text that names the group in log lines.
  [[nodiscard]] virtual std::string name() const = 0;
  /// Returns the group's present dead-letter topic.
  [[nodiscard]] virtual Target target() const = 0;
  /// Returns a random number that changes when messages under way leave without `done`. Never 0 while a
  /// message is under way.
  [[nodiscard]] virtual std::uint64_t incarnation() const = 0;
  /// Returns the topic that may have the messages under way, which need not be target() any more. 0: no
  /// message is under way.
  [[nodiscard]] virtual TopicId bound_to() const = 0;
  /// Returns the number that `begin` would give next. 0: it would begin a new incarnation, because there is
  /// none, or because its letters do not go to target().
  [[nodiscard]] virtual std::uint64_t next_number() const = 0;
  /// Gives numbers to messages, so that at most `most` are under way to target(). Returns how many are. In a
  /// durable topic only messages that survive a power cut get numbers. Requires: none is under way to another
  /// topic.
  virtual std::size_t begin(std::size_t most) = 0;
  /// Returns true if a message waits, with or without a number.
  [[nodiscard]] virtual bool has_any() const = 0;
  /// Returns the messages under way, in order.
  [[nodiscard]] virtual std::vector<Message> under_way() const = 0;
  /// Calls `saved` when the numbers of the messages under way survive a crash, or cannot be saved.
  virtual void save(Saved saved) = 0;
  /// Makes the letter of a message under way. Does not wait for the disk.
  virtual Read read(const Message& message) = 0;
  /// Finishes the first message under way if it has this number in this incarnation.
  virtual void done(std::uint64_t incarnation, std::uint64_t number) = 0;
  /// Finishes the first message under way if it has this number in this incarnation, and counts it as lost:
  /// it can no longer be read, and the target does not have it.
  virtual void lose(std::uint64_t incarnation, std::uint64_t number) = 0;
  /// Parks the first message under way if it has this number in this incarnation. A new incarnation begins,
  /// so the number is not used again. Requires: the target has none of the messages under way.
  virtual void give_up(std::uint64_t incarnation, std::uint64_t number) = 0;
  /// Begins a new incarnation. Messages under way wait again, or are parked if the group has no dead-letter
  /// topic. Requires: the topic bound_to() has none of them, or was deleted.
  virtual void renew() = 0;
  /// Keeps the reason why messages wait, for the statistics; empty: they move.
  virtual void set_trouble(const std::string& why) = 0;
};

}  // namespace lightq::broker
