/// Does the work that is due in a consumer's calls: connects, reads, sends and waits. Layer: client.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <lightq/base/home_process.hpp>
#include <lightq/base/reset_by_move.hpp>
#include <lightq/base/result.hpp>
#include <lightq/base/separate.hpp>
#include <lightq/base/types.hpp>
#include <lightq/consumer_options.hpp>
#include <lightq/detail/calls/consumer_pace.hpp>
#include <lightq/detail/calls/present_batch.hpp>
#include <lightq/detail/session_address.hpp>
#include <lightq/detail/session_clock.hpp>
#include <lightq/detail/session_settling.hpp>

namespace lightq::inline v1 {

class SessionConsumeLink;

/// Drives a consumer's channel, which it owns, inside the program's calls. Owned by a Consumer. Receiving and
/// acknowledging a message touch only this object, unless the call looks at the connection (ConsumerPace).
/// Movable: the object that was moved from has a closed channel. For one thread.
class ConsumerDriver {
 public:
  ConsumerDriver(std::string topic, SessionJoin join, const ConsumerOptions& options);
  ConsumerDriver(ConsumerDriver&&) noexcept;
  /// Does for the present channel what the destructor does.
  ConsumerDriver& operator=(ConsumerDriver&&) noexcept;
  /// Gives back the messages that the broker believes begun and that the program has not received.
  void release_not_begun();
  /// Sends all due frames, without waiting, and ends the connection.
  ~ConsumerDriver();

  /// Returns the channel; after a move, a closed one.
  [[nodiscard]] SessionConsumeLink& link() const;
  [[nodiscard]] PresentBatch& batch() { return batch_; }
  [[nodiscard]] const PresentBatch& batch() const { return batch_; }

  /// Waits until there are messages, and returns the result of `take()`. `is_whole`: it takes a whole batch.
  /// Returns nothing if none arrived within `timeout`. Errors: those of `usable`.
  template <typename Value, typename Take>
  Result<std::optional<Value>> receive_by(Timeout timeout, bool is_whole, Take&& take) {
    const bool away = was_away();
    if (batch_.is_ready()) look(away);
    if (!batch_.is_begun() || is_whole || away) [[unlikely]] {
      const Result<bool> begun = begin_next(timeout, is_whole, away);
      if (!begun) return begun.error();
      if (!*begun) return std::optional<Value>();
    }
    return Result<std::optional<Value>>(std::in_place, take());
  }
  /// Acknowledges messages. Returns how many of them were in flight to this consumer.
  std::uint64_t acknowledge(OffsetRange range) {
    return acknowledge_by(range, [&] { return settling_->acknowledge(range); });
  }
  /// Acknowledges a message if it is in flight since this hand-out.
  std::uint64_t acknowledge(Offset offset, HandOut hand_out) {
    return acknowledge_by({offset, offset + 1}, [&] { return settling_->acknowledge(offset, hand_out); });
  }
  /// Counts a call of the program, and sends due frames.
  void look() { look(was_away()); }
  /// Sends all acknowledgements and credit now.
  void send_all();
  /// Connects, reads up to the next batch, and sends everything.
  void drive();

  /// Drives the channel until `done()` returns true. Errors: timeout, if that takes until `deadline`
  /// (`otherwise` begins its text); those of `usable`.
  template <typename Done>
  Result<void> wait_until(Done done, SessionTime deadline, const char* otherwise);
  /// Returns the time at which to call `drive` even if the descriptor reports nothing.
  [[nodiscard]] SessionTime next_timer() const;
  [[nodiscard]] SessionTime now() const { return clock_.now(); }

  /// Returns why the last connection or attempt to connect ended; after a move, an error that says so.
  [[nodiscard]] const Error& last_error() const;
  /// Returns an error if the consumer was closed or has failed.
  [[nodiscard]] Result<void> usable() const;
  /// Returns the error for acknowledgements that were sent, but perhaps not received by the broker.
  [[nodiscard]] Error lost_error() const;
  [[nodiscard]] std::string of_topic(const std::string& what) const;

 private:
  template <typename Settle>
  std::uint64_t acknowledge_by(OffsetRange range, Settle&& settle) {
    const bool is_slow = was_away();
    if (is_slow) [[unlikely]] {
      if (!home_.is_here()) return 0;
      look_for_end();
    }
    if (settling_ == nullptr) [[unlikely]]
      return 0;  // after a move
    const std::uint64_t done = settle();
    batch_.acknowledged(range);
    look(is_slow);
    return done;
  }
  /// Tells the broker that the program begins the next messages. Drops those that the broker has taken back,
  /// and waits for others if none is left, for `timeout` in all. `away`: the program had not called for
  /// 100 ms, so the broker may have taken messages back that arrived since. Returns false if none arrived in
  /// time.
  Result<bool> begin_next(Timeout timeout, bool is_whole, bool away);
  /// Drops the messages at the front of the batch that the broker has taken back.
  void drop_revoked();
  /// Learns of messages that the broker has taken back. See SessionConsumeLink::look_for_revocations.
  void look_for_revocations(SessionTime time, bool at_once);
  /// Returns true if the program has not called for 100 ms, and in a forked child.
  [[nodiscard]] bool was_away() const { return pace_.was_away(clock_.coarse_now()) || !home_.is_here(); }
  /// Checks for the end of the connection while the program has a batch.
  void look_for_end();
  void look(bool at_once) {
    if (pace_.call() || at_once) [[unlikely]]
      send_due();
  }
  /// Sends everything that is due. If the program has not called for 100 ms, also sends acknowledgements that
  /// are not due yet: the next call may be far away.
  void send_due();

  void receive_from(SessionTime time);
  /// Extends the time of messages that the program has not begun to process.
  void keep_waiting(SessionTime time);
  /// Releases the present batch and waits for the next one until `deadline`. If there is none yet, sets it:
  /// `timeout` from now. Returns false if no batch arrived in time.
  Result<bool> next_batch(Timeout timeout, std::optional<SessionTime>& deadline);
  /// Waits for the descriptor and timers. Waits for input only while the connection reads.
  void wait_for_io(SessionTime until) const;

  PresentBatch batch_;
  ConsumerPace pace_;
  SessionClock clock_;
  HomeProcess home_;
  ResetByMove<SessionSettling*> settling_;    // that of `link_`
  std::unique_ptr<SessionConsumeLink> link_;  // null after a move: use link()
};

}  // namespace lightq::inline v1

#if defined(LIGHTQ_WITH_DEFINITIONS)
#include <lightq/impl/consumer_driver.hpp>  // IWYU pragma: export
#endif
