/// How many messages a consumer requests ahead of its program. Layer: client.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include <lightq/detail/session_clock.hpp>
#include <lightq/options.hpp>

namespace lightq::inline v1 {

/// Measures how long the program works on each message, and adapts the number of messages that wait for it:
/// together they need about `time` of its work. As long as the program has worked for less than 8 times that
/// time altogether, they need an eighth of what it has worked, or 2 ms if that is more. So a slow member of a
/// group is late by a part of the time only that the whole backlog takes.
///
/// The number begins at 16, so that a slow program receives no more before it was measured. Each message that
/// the program has done adds at most one, so the number at most doubles while the program works through it.
/// It is between 1 and 10,000.
///
/// The time from the delivery of a batch until the program asks for the next one is work; waiting for a
/// delivery is not. Work is measured when a batch ends, and inside it after the first message and after each
/// sixteenth of `time`. The average extends over as many messages as are requested, because that is how many
/// will wait. So a pause of some milliseconds among thousands of short messages changes little. But a
/// measurement of `time` or more replaces the average: after a single slow message, the number is small at
/// once.
///
/// Example, `time` 100 ms: each message takes 25 ms. After the first one the number falls from 16 to 1. No
/// credit is given until fewer messages wait. When the program has worked for 400 ms, it is 2; from 800 ms
/// on, it is 4. Owned by a SessionCredit. For one thread.
class SessionPrefetch {
 public:
  static constexpr std::uint64_t first = 16;
  static constexpr std::uint64_t least = 1;
  static constexpr std::uint64_t most = 10'000;

  /// Requires: `time` is more than 0.
  explicit SessionPrefetch(Timeout time) : time_(time) {}

  /// Returns how many messages to request ahead of the one that the program works on.
  [[nodiscard]] std::uint64_t messages() const { return messages_; }
  /// Returns how many messages of the present batch wait in the consumer, without the one that the program
  /// takes next.
  [[nodiscard]] std::uint64_t waiting() const { return waiting_ == 0 ? 0 : waiting_ - 1; }

  /// Records that a batch of `messages` was delivered at `now`.
  void delivered(std::uint64_t messages, SessionTime now) {
    waiting_ = waited_ = messages;
    since_ = now;
  }
  /// Records that the program has not begun `waiting` messages of the batch at `now`.
  void look(std::uint64_t waiting, SessionTime now) {
    waiting_ = waiting;
    if (!is_measured_ || now - since_ >= time_ / looks_per_time) measure(now);
  }
  /// Records that the program has done all messages of the batch, if there is one.
  void finished(SessionTime now) {
    waiting_ = 0;
    measure(now);
  }
  /// Records that the batch was dropped.
  void dropped() { waiting_ = waited_ = 0; }
  /// Records that the next `messages` of the batch were dropped. They do not count as done.
  void dropped(std::uint64_t messages) {
    waiting_ -= std::min(waiting_, messages);
    waited_ -= std::min(waited_, messages);
  }

 private:
  using Nanoseconds = std::chrono::duration<double, std::nano>;
  static constexpr int looks_per_time = 16;
  static constexpr std::chrono::milliseconds time_at_first{2};
  static constexpr int ahead_part = 8;  // of the time that the program has worked

  /// Counts the messages that were done since the last measurement, and the time that they took.
  void measure(SessionTime now) {
    if (waited_ <= waiting_) return;  // the time counts for the next message
    const std::uint64_t done = waited_ - waiting_;
    const std::chrono::nanoseconds took = now - since_;
    waited_ = waiting_;
    since_ = now;
    worked_ += took;
    average(Nanoseconds(took) / static_cast<double>(done), is_measured_ && took < time_ ? done : messages_);
    const std::uint64_t fits = fitting();
    messages_ = fits < messages_ ? fits : std::min(fits, messages_ + done);
  }
  /// Takes a measurement of `done` messages into the average. With `done` as large as the number of messages
  /// requested, it becomes the average.
  void average(Nanoseconds each, std::uint64_t done) {
    const double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(messages_));
    each_ += (each - each_) * share;
    is_measured_ = true;
  }
  /// Returns how many messages may wait by the time that they need.
  [[nodiscard]] std::uint64_t fitting() const {
    const Nanoseconds ahead =
        std::min(time_, std::max<std::chrono::nanoseconds>(worked_ / ahead_part, time_at_first));
    if (each_ * static_cast<double>(most) <= ahead) return most;
    return std::max(static_cast<std::uint64_t>(ahead / each_), least);
  }

  std::chrono::nanoseconds time_;
  std::chrono::nanoseconds worked_{0};  // altogether
  std::uint64_t messages_ = first;
  Nanoseconds each_{0};  // the average work on a message
  bool is_measured_ = false;
  std::uint64_t waiting_ = 0;  // of the present batch, not begun by the program
  std::uint64_t waited_ = 0;   // `waiting_` at the last measurement
  SessionTime since_;          // the last measurement, or the delivery
};

}  // namespace lightq::inline v1
