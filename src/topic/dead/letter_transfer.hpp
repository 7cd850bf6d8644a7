/// Moves the dead messages of one group to its dead-letter topic. Layer: topic.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <lightq/base/limits.hpp>
#include <lightq/base/result.hpp>

#include "base/log_sink.hpp"
#include "net/event_loop.hpp"
#include "topic/dead/letter_post.hpp"
#include "topic/dead/letter_source.hpp"

namespace lightq::broker {

/// Transfers the messages of a group's outbox, in order, each once. For a letter with number n the steps are:
///
/// 1. The outbox gives the message its number (LetterSource::begin), once the message survives a power cut in
///    its own topic. Otherwise a power cut could take messages out of the middle of a sequence of numbers.
/// 2. The group's cursor is saved with the number. Only then does the next step begin.
/// 3. The target appends the letter as the broker's own producer, whose id is the outbox's incarnation, with
///    the sequence number n (LetterInlet).
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
/// So a message is never in the target twice: the target appends n only while it expects n or less, and no
/// other message has the number n in this incarnation. It is never lost: it is finished only when the target
/// has it durably. A target that is not durable, or was deleted and created again, keeps its promise until it
/// ends. docs/adr/0062-*.md has the argument in full, and what it needs of the outbox and of the target.
///
/// The target may be missing, full or failing. Then the transfer waits, a second at first and a minute at
/// most, or until the target has space. Only this group's dead messages wait with it.
/// LetterOffice owns it. Thread: the reactor's of the group's topic.
class LetterTransfer {
 public:
  static constexpr std::chrono::seconds rest_min{1};
  static constexpr std::chrono::seconds rest_max{60};
  static constexpr std::size_t under_way_max = 256;
  static constexpr std::size_t sent_bytes_max = 256 * limits::KiB;  ///< one letter may be longer

  /// `saved` and `rested` call the functions of the same name, if the transfer still exists. Lifetime: the
  /// references outlive the transfer.
  struct Parts {
    EventLoop& loop;
    LetterPost& post;
    LogSink& sink;
    LetterSource::Saved saved;
    EventLoop::Task rested;
  };

  LetterTransfer(Parts parts, std::unique_ptr<LetterSource> source, LetterChannel channel)
      : parts_(std::move(parts)), source_(std::move(source)), channel_(channel) {}
  LetterTransfer(const LetterTransfer&) = delete;
  LetterTransfer& operator=(const LetterTransfer&) = delete;
  ~LetterTransfer();

  [[nodiscard]] LetterChannel channel() const { return channel_; }
  /// Returns true if nothing waits. The office then destroys the transfer.
  [[nodiscard]] bool is_done() const { return step_ == Step::done; }

  /// Begins the next step, unless a step is under way or the transfer rests.
  void work();
  /// Called by a timer: at the end of the rest, and while an answer is awaited.
  void rested();
  /// Called when the save that was asked for has ended.
  void saved(const Result<void>& result);

  // Reports of the target. The office passes on only those of the present channel.

  /// The target has all letters with numbers below `expected`, and no other.
  void settled(std::uint64_t expected);
  /// The target refuses this letter for good, and has all letters before it.
  void refused(std::uint64_t number, const Error& why);
  /// The target has ended the channel, or does not exist.
  void ended(const Error& why);

 private:
  enum class Step : std::uint8_t { idle, saving, opening, sending, resting, done };

  void open();
  void send();
  void finish_below(std::uint64_t expected);
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
  std::string target_name_;        // of the channel
  std::uint64_t incarnation_ = 0;  // of the channel
  Numbers saved_;
  Numbers saving_;
  std::chrono::seconds rest_ = rest_min;
  int durable_waits_ = 0;
  EventLoop::TimerId timer_ = 0;
  bool told_ = false;  // the log has a line about the present failure
};

}  // namespace lightq::broker
