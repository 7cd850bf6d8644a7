/// Reports the fate of a producer's messages on a session to its callbacks. Layer: client.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <lightq/base/result.hpp>

namespace lightq::inline v1 {

/// The final state of a message for its producer.
enum class Fate {
  confirmed,  ///< stored at the confirm level
  refused,    ///< certainly not stored
  unknown,    ///< it is unknown whether it is stored
};

/// The fate of the messages with the numbers [begin, end), which `send` returned.
struct SendReport {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  Fate fate = Fate::confirmed;
  const Error* error = nullptr;  ///< the reason if they were not confirmed; valid during the call
  /// The number of the first message in the topic's schedule, see DelayedControl. The others have the numbers
  /// that follow. Set for confirmed messages of a producer with ProducerOptions::delayed, unless the
  /// connection ended before the confirm came.
  std::optional<std::uint64_t> number = {};
};

/// Receives the fate of every message exactly once, in ranges. Confirmed messages come in order; others may
/// come before messages sent earlier. It runs inside a call of the producer and may call its `send`, which
/// then does not wait. It must not call anything else that waits. An exception from it leaves the producer's
/// call when that call's work is done; of several exceptions, the first.
using ReportCallback = std::function<void(const SendReport&)>;
/// Receives the fate of one message; `error` as in SendReport.
using MessageCallback = std::function<void(Fate fate, const Error* error)>;

/// Counts the fates of a producer's messages and calls the callbacks. Without callbacks it costs nothing per
/// message. Movable. For one thread.
class SendReports {
 public:
  void on_report(ReportCallback callback) { callback_ = std::move(callback); }
  /// Gives the message `number` a callback of its own. Requires: a higher number than any before.
  void watch(std::uint64_t number, MessageCallback callback) {
    watched_.push_back({number, std::move(callback)});
  }
  /// Removes the newest callback, because its message was not sent.
  void unwatch() { watched_.pop_back(); }

  /// `number`: see SendReport.
  void settled(std::uint64_t begin, std::uint64_t end, Fate fate, const Error* error,
               std::optional<std::uint64_t> number = {}) {
    counts_[static_cast<std::size_t>(fate)] += end - begin;
    if (fate != Fate::confirmed) remember_failure(end - begin, fate, error);
    if (!watched_.empty()) tell_watchers(begin, end, fate, error);
    if (callback_) call([&] { callback_({begin, end, fate, error, number}); });
  }
  /// Throws the first exception that a callback has thrown since the last call; does nothing if there was
  /// none.
  void rethrow() {
    if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
  }

  [[nodiscard]] std::uint64_t count(Fate fate) const { return counts_[static_cast<std::size_t>(fate)]; }
  /// Returns the number of all settled messages, of any fate.
  [[nodiscard]] std::uint64_t count() const { return counts_[0] + counts_[1] + counts_[2]; }
  /// Returns the error of the messages that were not confirmed since the last call; nothing if all were.
  std::optional<Error> take_failure() { return std::exchange(failure_, std::nullopt); }

 private:
  struct Watched {
    std::uint64_t number;
    MessageCallback callback;
  };

  void remember_failure(std::uint64_t messages, Fate fate, const Error* error) {
    failed_ = (failure_ ? failed_ : 0) + messages;
    const char* what = fate == Fate::refused ? " were not stored: " : " may be stored or not: ";
    failure_ = *error;
    failure_->message = std::to_string(failed_) + " messages were not confirmed; the last " +
                        std::to_string(messages) + what + error->message;
  }

  /// Moves the callbacks out before it calls them, because they may add new ones.
  void tell_watchers(std::uint64_t begin, std::uint64_t end, Fate fate, const Error* error) {
    const auto before = [](const Watched& watched, std::uint64_t number) { return watched.number < number; };
    const auto first = std::lower_bound(watched_.begin(), watched_.end(), begin, before);
    const auto last = std::lower_bound(first, watched_.end(), end, before);
    std::vector<Watched> told(std::make_move_iterator(first), std::make_move_iterator(last));
    watched_.erase(first, last);
    for (const Watched& watched : told) call([&] { watched.callback(fate, error); });
  }

  /// Calls a callback and keeps its exception, so that the others are still called.
  template <typename Callback>
  void call(Callback&& callback) {
    try {
      callback();
    } catch (...) {
      if (!thrown_) thrown_ = std::current_exception();
    }
  }

  ReportCallback callback_;
  std::deque<Watched> watched_;  // ordered by number
  std::uint64_t counts_[3] = {};
  std::exception_ptr thrown_;
  std::optional<Error> failure_;
  std::uint64_t failed_ = 0;  // messages that `failure_` describes
};

}  // namespace lightq::inline v1
