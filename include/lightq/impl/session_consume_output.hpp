/// The frames that a consumer sends on its open channel. docs/session.md, "Consuming". Layer: client.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lightq/base/types.hpp>
#include <lightq/detail/session_clock.hpp>
#include <lightq/detail/session_route.hpp>
#include <lightq/detail/session_settling.hpp>
#include <lightq/impl/session_credit.hpp>
#include <lightq/impl/session_leases.hpp>
#include <lightq/protocol/session_consuming.hpp>

namespace lightq::inline v1 {

/// Puts a consumer's frames into the connection: acknowledgements, rejections and credit, which it gathers
/// ("news"), other rejections, extensions and requests. Does not send them: see SessionConnection::send.
/// Owned by a SessionConsumeLink. Lifetime: the constructor's references outlive it. Requires, for each call
/// that puts frames: the channel is open. For one thread.
class SessionConsumeOutput {
 public:
  /// `settling`: the acknowledgements to send, and the credit to give back. `leases`: numbers the requests.
  SessionConsumeOutput(SessionRoute& route, SessionSettling& settling, const SessionLeases& leases,
                       const SessionCredit& credit)
      : route_(route), settling_(settling), leases_(leases), credit_(credit) {}
  SessionConsumeOutput(const SessionConsumeOutput&) = delete;
  SessionConsumeOutput& operator=(const SessionConsumeOutput&) = delete;

  /// Returns the credit that the broker has.
  [[nodiscard]] SessionCredit& credit() { return credit_; }
  [[nodiscard]] const SessionCredit& credit() const { return credit_; }

  /// Records that the broker has opened the channel. `ack_timeout_ms`: that of the channel; 0: none.
  void opened(std::uint32_t channel, std::uint32_t ack_timeout_ms, SessionTime now) {
    channel_ = channel;
    ack_timeout_ms_ = ack_timeout_ms;
    plan_to_keep(now);
  }
  /// Records that the connection has ended: nothing waits any more.
  void drop() {
    news_since_ = session_never;
    rejected_.clear();
  }
  /// Returns the number of the channel that was opened last.
  [[nodiscard]] std::uint32_t channel() const { return channel_; }

  // --- News: acknowledgements, rejections, and credit while the consumer is not paused.

  [[nodiscard]] bool has_news() const {
    return !settling_.acknowledged.empty() || !rejected_.empty() || credit_.is_due(settling_.back);
  }
  /// Rejects messages. The rejections that follow each other with the same delay are gathered in one frame.
  void reject(HandOutRanges messages, std::uint32_t delay_ms) {
    if (delay_ms != rejected_delay_ms_) put_rejections();
    rejected_delay_ms_ = delay_ms;
    while (!messages.empty()) {
      const HandOutRanges::Part part = messages.take_first(ranges_max);
      for (const OffsetRange& range : part.ranges) rejected_.add(range, part.hand_out);
    }
  }
  /// Puts all news if `all` is true, if there is much, or if it has waited for 100 ms. Puts rejections at
  /// least once in a millisecond, and always if the program is not `at_work` on a batch.
  void put_news(SessionTime now, bool all, bool at_work) {
    if (all || !at_work || now >= rejects_after_ || rejected_.size() >= many_ranges) {
      if (!rejected_.empty()) rejects_after_ = now + news_pause;
      put_rejections();
    }
    if (!has_news()) return;
    if (news_since_ == session_never) news_since_ = now;
    if (all || has_much_news() || now >= news_since_ + news_wait) put_news();
  }
  /// Puts all news.
  void put_news() {
    news_since_ = session_never;
    put_rejections();
    if (!settling_.acknowledged.empty()) route_.worked();
    while (!settling_.acknowledged.empty()) {
      HandOutRanges::Part part = settling_.acknowledged.take_first(ranges_max);
      put(session::Acknowledge{std::nullopt, std::move(part.ranges), leases_.number_of(part.hand_out)});
    }
    if (!credit_.is_due(settling_.back)) return;
    const SessionAmount given = credit_.give(settling_.back);
    put(session::Credit{static_cast<std::uint32_t>(given.messages), given.bytes});
  }
  /// Returns until when news may wait for more before the program waits for input. So messages that arrive
  /// one by one are acknowledged several at a time.
  [[nodiscard]] SessionTime gathers_until(SessionTime now) const { return begun(now) + news_pause; }
  /// Returns when `put_news` puts what waits, or session_never if nothing waits.
  [[nodiscard]] SessionTime news_timer(SessionTime now) const {
    if (!rejected_.empty()) return now;
    return has_news() ? begun(now) + news_wait : session_never;
  }

  // --- Other frames.

  /// Rejects messages as dead. Requires: the broker accepts that.
  void reject_dead(HandOutRanges messages, std::string_view reason) {
    put_parts(session::Reject{0, {}, std::nullopt, false, std::string(reason)}, std::move(messages),
              dead_ranges_max);
  }
  /// Gives messages back that the program has not begun. A broker without leases counts this delivery.
  void release(HandOutRanges messages) {
    put_parts(session::Reject{0, {}, std::nullopt, leases_.is_on()}, std::move(messages));
  }
  /// Without leases: `ranges` may have offsets that are not in flight.
  void extend(std::vector<OffsetRange> ranges, std::uint32_t ms) {
    put_ranges(session::Extend{ms, {}}, std::move(ranges));
  }
  void extend(HandOutRanges messages, std::uint32_t ms) {
    put_parts(session::Extend{ms, {}}, std::move(messages));
  }
  void started(OffsetRange range, HandOut hand_out) {
    put(session::Started{wire_number(hand_out), std::nullopt, {range}});
  }
  /// Returns true if `ack_timeout` should be restarted for messages that the program has not received: after
  /// each sixteenth of `ack_timeout`.
  [[nodiscard]] bool is_time_to_keep(SessionTime now) const {
    return now >= keeps_at_ && ack_timeout_ms_ != 0;
  }
  /// Restarts `ack_timeout` for all messages in flight except those that the program has received. `waiting`:
  /// the messages of the present batch that it has not received.
  void keep(const OffsetRange& waiting, SessionTime now) {
    plan_to_keep(now);
    extend(settling_.unsettled.gaps(waiting), ack_timeout_ms_);
  }
  /// Puts a request. Returns its number, which the answer has too.
  template <typename Body>
  std::uint32_t request(const Body& body) {
    const std::uint32_t number = route_.connection().next_request();
    route_.connection().put(body, channel_, number);
    return number;
  }

 private:
  static constexpr Timeout news_wait{100};  // the longest that an acknowledgement waits for others
  static constexpr Timeout news_pause{1};   // the longest while the program waits for input
  static constexpr std::size_t many_ranges = 1024;
  static constexpr std::uint32_t keep_parts = 16;                                       // of ack_timeout
  static constexpr std::size_t ranges_max = (session::ranges_body_bytes_max - 8) / 16;  // of one frame
  // The most in a frame with a reason and its length.
  static constexpr std::size_t dead_ranges_max = ranges_max - (session::dead_reason_bytes_max + 2 + 15) / 16;

  template <typename Body>
  void put(const Body& body) {
    route_.connection().put(body, channel_, 0);
  }
  /// Puts as many frames like `body` as `ranges` need.
  template <typename Body>
  void put_ranges(Body body, std::vector<OffsetRange> ranges) {
    for (std::size_t at = 0; at < ranges.size(); at += ranges_max) {
      const auto begin = ranges.begin() + static_cast<std::ptrdiff_t>(at);
      body.ranges.assign(begin,
                         begin + static_cast<std::ptrdiff_t>(std::min(ranges_max, ranges.size() - at)));
      put(body);
    }
  }

  /// Puts as many frames like `body` as the ranges of `messages` need, with the numbers of their hand-outs.
  template <typename Body>
  void put_parts(Body body, HandOutRanges messages, std::size_t most = ranges_max) {
    while (!messages.empty()) {
      HandOutRanges::Part part = messages.take_first(most);
      body.hand_out = leases_.number_of(part.hand_out);
      body.ranges = std::move(part.ranges);
      put(body);
    }
  }

  void put_rejections() { put_parts(session::Reject{rejected_delay_ms_, {}}, std::exchange(rejected_, {})); }

  /// Returns since when news has waited.
  [[nodiscard]] SessionTime begun(SessionTime now) const {
    return news_since_ == session_never ? now : news_since_;
  }
  /// Returns true if there is so much news that waiting for more would slow the broker down.
  [[nodiscard]] bool has_much_news() const {
    return settling_.acknowledged.size() >= many_ranges || credit_.is_much(settling_.back);
  }
  void plan_to_keep(SessionTime now) {
    keeps_at_ = now + std::max(Timeout(ack_timeout_ms_ / keep_parts), Timeout(1));
  }

  SessionRoute& route_;
  SessionSettling& settling_;
  const SessionLeases& leases_;
  SessionCredit credit_;
  HandOutRanges rejected_;  // rejections to send, all with one delay
  std::uint32_t rejected_delay_ms_ = 0;
  SessionTime rejects_after_;  // until then, rejections are gathered while the program works on a batch
  std::uint32_t channel_ = 0;
  std::uint32_t ack_timeout_ms_ = 0;
  SessionTime keeps_at_;
  SessionTime news_since_ = session_never;  // session_never: no `put_news` has found news since the last
};

}  // namespace lightq::inline v1
