/// Connects a producer or consumer to its topic: joins, connects, and starts again when a connection has
/// ended. Layer: client.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <lightq/base/home_process.hpp>
#include <lightq/base/result.hpp>
#include <lightq/detail/session_address.hpp>
#include <lightq/detail/session_backoff.hpp>
#include <lightq/detail/session_connection.hpp>
#include <lightq/detail/session_failure.hpp>

namespace lightq::inline v1 {

/// A series of connections, one at a time. Calls do not wait, except that the join may. Not movable. For one
/// thread.
class SessionRoute {
 public:
  /// Requires: `options` has the members that check_session_patience checks, and a `clock`.
  template <typename Options>
  SessionRoute(std::string topic, SessionJoin join, const Options& options, SessionConnection connection)
      : topic_(std::move(topic)),
        join_(std::move(join)),
        attempt_timeout_(options.attempt_timeout),
        clock_(options.clock),
        backoff_(options.backoff, options.backoff_max, jitter_seed()),
        connection_(std::move(connection)) {}
  SessionRoute(const SessionRoute&) = delete;
  SessionRoute& operator=(const SessionRoute&) = delete;

  [[nodiscard]] SessionConnection& connection() { return connection_; }
  [[nodiscard]] const SessionConnection& connection() const { return connection_; }
  [[nodiscard]] bool is_connected() const { return connection_.phase() != SessionConnection::Phase::closed; }
  [[nodiscard]] const std::string& topic() const { return topic_; }
  [[nodiscard]] SessionTime now() const { return clock_.now(); }

  /// Connects if it is time, and passes the broker's frames to `take` (see SessionConnection::receive). Calls
  /// `ask()` once per connection, to request the channel. `open()` returns whether the channel is open, so
  /// that the time limit for attempts no longer applies. Advances `now` if a join takes long. Errors: why the
  /// connection or attempt has ended; pass the error to `ended`.
  template <typename Open, typename Take, typename Ask>
  Result<void> receive(SessionTime& now, Open&& open, Take&& take, Ask&& ask) {
    if (!home_.is_here()) {
      consequence_ = Consequence::fail;
      return opened_before_fork("the session");
    }
    if (!is_connected()) {
      if (now < next_attempt_) return {};
      if (Result<void> begun = attempt(now); !begun) return begun;
    }
    Result<void> done = connection_.receive(now, std::forward<Take>(take));
    if (done) done = connection_.tick(now);
    if (!done) {
      // The broker that the join has just named is not at this address. Another join would not help.
      const bool of_connecting = connection_.phase() == SessionConnection::Phase::connecting;
      if (of_connecting && joined_now_ && done.error().code == ErrorCode::unauthorized_access)
        consequence_ = Consequence::fail;
      return done;
    }
    if (connection_.phase() == SessionConnection::Phase::open && !std::exchange(asked_, true)) ask();
    if (!open() && now >= attempt_ends_)
      return Error{ErrorCode::timeout, "the broker did not open the topic in time"};
    return {};
  }

  /// Drops the connection and schedules the next one. Returns the consequence for the producer or consumer.
  Consequence ended(const Error& error, bool was_open, SessionTime now) {
    if (is_connected() && error.code == ErrorCode::invalid_request) ++violations_;
    connection_.drop();
    last_error_ = of_topic(error);
    if (was_open && now - opened_at_ >= backoff_.longest()) backoff_.reset();
    const Consequence consequence = std::exchange(consequence_, Consequence::again);
    // The address or the ticket may be the cause.
    if (!was_open || consequence == Consequence::join) address_.reset();
    next_attempt_ = now + backoff_.next();
    return consequence;
  }

  /// Records that the channel is open.
  void opened(SessionTime now) {
    opened_at_ = now;
    if (address_ && address_->opened != nullptr) *address_->opened = true;
  }
  /// Records a success, so that the next failure starts with the shortest wait.
  void worked() { backoff_.reset(); }
  /// Returns how long to wait before a refused batch is sent again.
  [[nodiscard]] std::chrono::microseconds next_wait() { return backoff_.next(); }
  /// Returns true if the channel was requested on this connection.
  [[nodiscard]] bool asked() const { return asked_; }

  /// Returns the error for a code from the broker. `ended` will then return its consequence.
  Error ends_with(session::Code code, const std::string& sentence) {
    return ends_with(code, sentence, consequence_of(code));
  }
  Error ends_with(session::Code code, const std::string& sentence, Consequence consequence) {
    consequence_ = consequence;
    return error_of(code, sentence);
  }
  static Error violation(const std::string& what) {
    return {ErrorCode::invalid_request, "the broker " + what};
  }

  [[nodiscard]] Error of_topic(Error error) const {
    error.message = "topic '" + topic_ + "': " + error.message;
    return error;
  }
  /// Returns why the last connection or attempt ended.
  [[nodiscard]] const Error& last_error() const { return last_error_; }
  void set_last_error(Error error) { last_error_ = of_topic(std::move(error)); }
  /// Returns the number of protocol violations by the broker.
  [[nodiscard]] std::uint64_t violations() const { return violations_; }

  /// Returns when `receive` has something to do even if nothing arrives.
  [[nodiscard]] SessionTime next_timer(bool open) const {
    if (!is_connected()) return next_attempt_;
    const SessionTime next = connection_.next_timer();
    return open ? next : std::min(next, attempt_ends_);
  }

  /// Returns false in a child that was forked later, where nothing may be sent or read.
  [[nodiscard]] bool is_here() const { return home_.is_here(); }

 private:
  static std::uint64_t jitter_seed() {
    return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  }

  Result<void> attempt(SessionTime& now) {
    joined_now_ = !address_;
    if (joined_now_) {
      Result<SessionAddress> joined = join_();
      now = clock_.now();
      if (!joined) {
        if (is_final(joined.error().code)) consequence_ = Consequence::fail;
        return joined.error();
      }
      address_ = std::move(*joined);
    }
    asked_ = false;
    attempt_ends_ = session_deadline(now, attempt_timeout_);
    return connection_.begin(*address_, now);
  }

  std::string topic_;
  SessionJoin join_;
  Timeout attempt_timeout_;
  SessionClock clock_;
  SessionBackoff backoff_;
  SessionConnection connection_;
  const HomeProcess home_;
  std::optional<SessionAddress> address_;         // nothing: join first
  Consequence consequence_ = Consequence::again;  // of the error that `ended` will get
  Error last_error_{ErrorCode::closed, "not connected yet"};
  SessionTime next_attempt_ = SessionTime::min();
  SessionTime attempt_ends_;
  SessionTime opened_at_;
  bool asked_ = false;       // the channel was requested on this connection
  bool joined_now_ = false;  // the join was for this connection
  std::uint64_t violations_ = 0;
};

/// Decodes a frame's body and passes it to `use`; returns an error if it cannot be decoded.
template <typename Body, typename Use>
Result<void> with_body(const SessionFrame& frame, Use&& use) {
  const Result<Body> body = Body::decode(frame.body, frame.header.flags);
  if (!body) return body.error();
  return use(*body);
}

}  // namespace lightq::inline v1
