/// The errors of a producer's calls. Layer: client.
#pragma once

#include <cstdint>
#include <string>

#include <lightq/base/home_process.hpp>
#include <lightq/base/result.hpp>
#include <lightq/detail/session_state.hpp>
#include <lightq/impl/session_produce_link.hpp>
#include <lightq/options.hpp>

namespace lightq::inline v1 {

/// Words the errors of a producer, each with its topic and the reason for it. Reads the state of the link.
/// Lifetime: the link outlives it. For one thread.
class ProducerErrors {
 public:
  /// `moved`: for producers that were moved from.
  ProducerErrors(const SessionProduceLink& link, bool moved) : link_(link), moved_(moved) {}

  /// Returns why the last connection ended or the last batch was refused; after a move, that error.
  [[nodiscard]] const Error& last() const {
    static const Error moved{ErrorCode::closed, "the producer was moved from"};
    return moved_ ? moved : link_.last_error();
  }
  /// Returns an error if the producer can send nothing more: it was closed, has failed, is in doubt, or is of
  /// the parent process.
  [[nodiscard]] Result<void> usable() const {
    if (!is_here()) return of_topic(opened_before_fork("the producer"));
    switch (link_.state()) {
      case SessionState::connecting:
      case SessionState::open: return {};
      case SessionState::closed: return closed();
      case SessionState::failed: return last();
      case SessionState::in_doubt: break;
    }
    return Error{ErrorCode::closed, of_topic("the broker does not know this producer any more; " +
                                             std::to_string(link_.batches().doubtful()) +
                                             " messages may be stored or not: see Producer::resolve")};
  }
  /// Returns false in a child that was forked after the producer was opened.
  [[nodiscard]] bool is_here() const { return link_.route().is_here(); }
  [[nodiscard]] Error closed() const {
    if (moved_) return last();
    return {ErrorCode::closed, of_topic("the producer is closed")};
  }
  /// Returns the error of a call that is refused in a callback, or with `writing`, in a function that writes
  /// a message.
  [[nodiscard]] Error inside(bool writing) const {
    return {ErrorCode::invalid_argument,
            of_topic(writing ? "a function that writes a message must not use its producer"
                             : "a callback must not wait")};
  }
  /// Returns the error of a message for which there is no memory. `unconfirmed`: the number of unconfirmed
  /// messages.
  [[nodiscard]] Error no_room(ErrorCode code, std::uint64_t unconfirmed) const {
    return {code, of_topic("no memory is left for another message (memory_bytes_max): " +
                           std::to_string(unconfirmed) +
                           " messages are not confirmed; last error: " + last().text())};
  }
  /// Returns the error of a wait that took longer than `timeout`. `otherwise` begins its text.
  [[nodiscard]] Error not_in_time(const char* otherwise, Timeout timeout, std::uint64_t unconfirmed) const {
    return {ErrorCode::timeout, of_topic(otherwise) + " within " + std::to_string(timeout.count()) + " ms; " +
                                    std::to_string(unconfirmed) +
                                    " messages are not confirmed; last error: " + last().text()};
  }
  /// Returns the error with the topic's name before its text.
  [[nodiscard]] Error of_topic(const Error& error) const { return {error.code, of_topic(error.message)}; }

 private:
  [[nodiscard]] std::string of_topic(const std::string& what) const {
    return "topic '" + link_.topic() + "': " + what;
  }

  const SessionProduceLink& link_;
  bool moved_;
};

}  // namespace lightq::inline v1
