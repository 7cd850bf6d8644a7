/// Moves the dead messages of one group to its dead-letter topic. Layer: topic.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <lightq/base/limits.hpp>
#include <lightq/base/result.hpp>

#include "base/log_sink.hpp"
#include "net/event_loop.hpp"
#include "net/turn_queue.hpp"
#include "topic/dead/letter_post.hpp"
#include "topic/dead/letter_source.hpp"
#include "topic/dead/letters_in_transit.hpp"

namespace lightq::broker {

/// Transfers the messages of a group's outbox, in order, each once. For a letter with number n the steps are:
///
/// 1. The outbox gives the message its number (LetterSource::begin), once the message survives a power cut in
///    its own topic. Otherwise a power cut could take messages out of the middle of a sequence of numbers. If
///    the incarnation is older than the transfer, the target first reports which numbers it knows.
/// 2. The group's cursor is saved with the number. Only then does the next step begin.
/// 3. The target appends the letter as the broker's own producer, whose id is the outbox's incarnation, with
///    the sequence number n (LetterProducer).
/// 4. The target makes it durable, and reports that all letters up to n are.
/// 5. The message is finished in the group (LetterSource::done). The next save of the cursor contains that.
///
/// A crash of the broker or of the machine leaves one of these states, and a start continues from it:
///
/// | the group's file has | the target has | the start does |
/// |---|---|---|
/// | no number n (before the end of step 2) | nothing: step 3 has not begun | gives a number again |
/// | message and n | nothing, or has lost it before step 4 | appends the letter; the target expects n |
/// | message and n | the letter | finds that the target expects n + 1, and finishes the message |
/// | the message as finished (after step 5) | the letter, durably | nothing |
///
/// A number belongs to one target: the one that was the group's dead-letter topic when the incarnation began,
/// by its id. If the group has another dead-letter topic now, or none, and messages are under way, the former
/// target is asked first which of them it has. These are finished. The others get numbers of a new
/// incarnation for the present target, or are parked. They are sent again unasked only if the former target
/// was deleted.
///
/// So a message is never in the target twice: the target appends n only while it expects n or less, and no
/// other message has the number n in this incarnation. It is never lost: it is finished only when the target
/// has it durably. A target that is not durable keeps its promise until it ends. A topic that is created
/// later under the name of the target is another topic, and receives nothing. docs/adr/0062-*.md has the
/// argument in full, and what it needs of the outbox and of the target.
///
/// The target may be missing, full or failing. Then the transfer waits, a second at first and a minute at
/// most, or until the target has space. Only this group's dead messages wait with it.
/// LetterOffice owns it. Thread: the reactor's of the group's topic.
class LetterTransfer final : public TurnQueue::Waiter {
 public:
  static constexpr std::chrono::seconds rest_min{1};
  static constexpr std::chrono::seconds rest_max{60};
  /// The wait for a disk that is reading a message doubles from the first to the second of these.
  static constexpr std::chrono::milliseconds read_rest_min{1};
  static constexpr std::chrono::milliseconds read_rest_max{128};
  /// The wait until other threads have taken letters, if too many are on their way.
  static constexpr std::chrono::milliseconds sent_rest{20};
  static constexpr std::size_t under_way_max = 256;
  static constexpr std::size_t sent_bytes_max = 256 * limits::KiB;  ///< one letter may be longer

  /// `turns`: gives the transfers of a reactor their turns to read and send letters. `saved`, `rested` and
  /// `turned` call the functions of the same name, if the transfer still exists. Lifetime: the references
  /// outlive the transfer.
  struct Parts {
    EventLoop& loop;
    LetterPost& post;
    LogSink& sink;
    TurnQueue& turns;
    LetterSource::Saved saved;
    EventLoop::Task rested;
    EventLoop::Task turned;
    LettersInTransit* sent = nullptr;  ///< those of the reactor's transfers; null: without a bound
  };

  LetterTransfer(Parts parts, std::unique_ptr<LetterSource> source, LetterChannel channel)
      : parts_(std::move(parts)), source_(std::move(source)), channel_(channel) {}
  ~LetterTransfer() override;

  [[nodiscard]] LetterChannel channel() const { return channel_; }
  /// Returns true if nothing waits. The office then destroys the transfer.
  [[nodiscard]] bool is_done() const { return step_ == Step::done; }

  /// Begins the next step, unless a step is under way or the transfer rests.
  void work();
  /// Called when the group may have another dead-letter topic. Ends a rest if it has.
  void woken();
  /// Called by a timer: at the end of the rest, and while an answer is awaited.
  void rested();
  /// Called when the save that was asked for has ended.
  void saved(const Result<void>& result);
  /// Called when the transfer may read and send letters.
  void turned();
  void on_turn() override {
    const EventLoop::Task turned = parts_.turned;  // which may destroy the transfer
    turned();
  }

  // Reports of the target. The office passes on only those of the present channel.

  /// The target has all letters with numbers below `expected`, and no other.
  void settled(std::uint64_t expected);
  /// The target refuses this letter for good, and has all letters before it.
  void refused(std::uint64_t number, const Error& why);
  /// The target has ended the channel, or does not exist.
  void ended(const Error& why);
  /// The letters wait for space in the target. Another report follows.
  void held(const Error& why);

 private:
  enum class Step : std::uint8_t { idle, saving, opening, queued, sending, resting, done };

  /// Letters that were read, or the message that stopped the reading before there was one.
  struct Round {
    struct Obstacle {
      std::uint64_t number = 0;
      LetterSource::Read::Outcome outcome = LetterSource::Read::Outcome::later;
    };
    std::vector<NumberedLetter> letters;
    std::size_t bytes = 0;  // of the letters
    std::optional<Obstacle> obstacle;
  };

  void save();
  void open();
  [[nodiscard]] Round read_round();
  void send();
  [[nodiscard]] Error why_missing(const LetterSource::Target& wanted) const;
  bool finish_below(std::uint64_t expected);
  void give_up(std::uint64_t number, const std::string& why);
  void rest(const Error& why);
  [[nodiscard]] bool is_present() const;
  void await_answer();
  void work_at(EventLoop::Clock::time_point when);
  void close();
  void proceed();

  /// Numbers of an incarnation below an end.
  struct Numbers {
    std::uint64_t incarnation = 0;
    std::uint64_t end = 0;
  };

  const Parts parts_;
  const std::unique_ptr<LetterSource> source_;
  LetterChannel channel_;
  Step step_ = Step::idle;
  std::optional<TopicId> target_;  // while the channel is open
  std::string target_name_;        // of the channel, or of the topic that the transfer waits for
  TopicId wanted_;                 // the group's dead-letter topic at the last step
  bool asks_ = false;              // the channel only asks a former target what it has
  std::uint64_t incarnation_ = 0;  // of the channel
  std::uint64_t known_ = 0;  // the incarnation of which the target knows no number that the group does not
  Numbers saved_;
  Numbers saving_;
  std::chrono::seconds rest_ = rest_min;
  int durable_waits_ = 0;
  std::chrono::milliseconds read_rest_ = read_rest_min;
  EventLoop::TimerId timer_ = 0;
  bool told_ = false;  // the log has a line about the present failure
};

}  // namespace lightq::broker
