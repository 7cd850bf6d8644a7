/// What became of the messages of a producer on a session, and who is told. Layer: client.
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

/// What became of a message.
enum class Fate {
  confirmed,  ///< stored, as the confirm level says
  refused,    ///< surely not stored
  unknown,    ///< stored or not: nobody can tell any more
};

/// What became of the messages with the numbers [begin, end), as `send` answered them.
struct SendReport {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  Fate fate = Fate::confirmed;
  const Error* error = nullptr;  ///< why, where they were not confirmed; valid during the call
};

/// Told of every message exactly once, in one range with others. Confirmed ones come in order; others may
/// come before messages sent earlier. Runs inside a call of the producer's and may call its `send`, which
/// then does not wait; nothing else that waits. What it throws comes out of that call when its work is done;
/// of several the first.
using ReportCallback = std::function<void(const SendReport&)>;
/// What became of one message; `error` as in SendReport.
using MessageCallback = std::function<void(Fate fate, const Error* error)>;

/// Counts what became of a producer's messages and tells whoever wants to know. Costs nothing by the message
/// where nobody does. Movable. One thread.
class SendReports {
 public:
  void on_report(ReportCallback callback) { callback_ = std::move(callback); }
  /// The message `number`, higher than any before, has a callback of its own.
  void watch(std::uint64_t number, MessageCallback callback) {
    watched_.push_back({number, std::move(callback)});
  }
  /// The one that was watched last was not sent after all.
  void unwatch() { watched_.pop_back(); }

  void settled(std::uint64_t begin, std::uint64_t end, Fate fate, const Error* error) {
    counts_[static_cast<std::size_t>(fate)] += end - begin;
    if (fate != Fate::confirmed) remember_failure(end - begin, fate, error);
    if (!watched_.empty()) tell_watchers(begin, end, fate, error);
    if (callback_) call([&] { callback_({begin, end, fate, error}); });
  }
  /// Throws what a callback has thrown since the last time, the first of all; nothing where none has.
  void rethrow() {
    if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
  }

  [[nodiscard]] std::uint64_t count(Fate fate) const { return counts_[static_cast<std::size_t>(fate)]; }
  /// All that are settled, whatever became of them.
  [[nodiscard]] std::uint64_t count() const { return counts_[0] + counts_[1] + counts_[2]; }
  /// What was not confirmed since this was asked last; nothing: all was.
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

  /// Callbacks are taken out before they are called, since they may bring new ones.
  void tell_watchers(std::uint64_t begin, std::uint64_t end, Fate fate, const Error* error) {
    const auto before = [](const Watched& watched, std::uint64_t number) { return watched.number < number; };
    const auto first = std::lower_bound(watched_.begin(), watched_.end(), begin, before);
    const auto last = std::lower_bound(first, watched_.end(), end, before);
    std::vector<Watched> told(std::make_move_iterator(first), std::make_move_iterator(last));
    watched_.erase(first, last);
    for (const Watched& watched : told) call([&] { watched.callback(fate, error); });
  }

  /// What one throws keeps the others from nothing.
  template <typename Callback>
  void call(Callback&& callback) {
    try {
      callback();
    } catch (...) {
      if (!thrown_) thrown_ = std::current_exception();
    }
  }

  ReportCallback callback_;
  std::deque<Watched> watched_;  // by number
  std::uint64_t counts_[3] = {};
  std::exception_ptr thrown_;
  std::optional<Error> failure_;
  std::uint64_t failed_ = 0;  // messages that `failure_` speaks of
};

}  // namespace lightq::inline v1
