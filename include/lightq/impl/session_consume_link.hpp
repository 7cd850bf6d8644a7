/// Keeps a consumer's channel open: opens it on each connection, takes delivered batches, and sends
/// acknowledgements and credit. docs/session.md, "Consuming". Layer: client.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>
#include <lightq/consumer_options.hpp>
#include <lightq/consumer_stats.hpp>
#include <lightq/detail/session_patience.hpp>
#include <lightq/detail/session_route.hpp>
#include <lightq/detail/session_state.hpp>
#include <lightq/impl/session_consume_output.hpp>
#include <lightq/impl/session_consume_requests.hpp>
#include <lightq/impl/session_deliveries.hpp>
#include <lightq/impl/session_leases.hpp>
#include <lightq/impl/session_position.hpp>

namespace lightq::inline v1 {

/// Returns the first frame of a consumer's session.
inline session::Hello consumer_hello(const ConsumerOptions& options) {
  session::Hello hello = session_hello(options);
  hello.frame_bytes_max = options.frame_bytes_max;
  hello.codecs =
      CodecSet(CodecSet::known().bits() | session::hello_hears_late | session::hello_knows_leases |
               session::hello_knows_dead_letters | (options.may_be_busy ? session::hello_may_be_busy : 0U));
  return hello;
}

/// The channel of a consumer, opened again on each new connection. Owns the parts that each know one thing
/// about it: the messages that were delivered, the position, the frames to send, the unanswered requests.
/// This class takes the broker's frames and connects the parts. Calls do not wait, except that the join may.
/// Not movable. One thread.
class SessionConsumeLink {
 public:
  SessionConsumeLink(std::string topic, SessionJoin join, const ConsumerOptions& options)
      : options_(options),
        route_(std::move(topic), std::move(join), options,
               SessionConnection(consumer_hello(options), read_bytes,
                                 session_memory(options, memory_to_receive))),
        deliveries_(options.acknowledgement == Acknowledgement::automatic),
        position_(options),
        leases_(deliveries_.settling()),
        output_(route_, deliveries_.settling(), leases_, SessionCredit::requested_by(options)) {}
  SessionConsumeLink(const SessionConsumeLink&) = delete;
  SessionConsumeLink& operator=(const SessionConsumeLink&) = delete;
  ~SessionConsumeLink() { say_goodbye(); }

  /// Connects if it is time, and handles the broker's frames up to the next batch. While the application has
  /// a batch this does no more than open the channel again.
  void receive(SessionTime now) {
    if (route_.connection().is_held() || !is_alive()) return;
    const Result<void> done = route_.receive(
        now, [this] { return state_ == SessionState::open; },
        [&](const SessionFrame& frame) { return take(frame, now); }, [this] { ask(); });
    if (!done) ended(done.error(), now);
  }
  /// Checks for the end of the connection even while the application has a batch and nothing is read.
  void look_for_end(SessionTime now) {
    if (state_ != SessionState::open || !route_.connection().is_held() || !route_.connection().has_hung_up())
      return;
    ended({ErrorCode::closed, "the broker has ended the connection"}, now);
  }
  /// Learns of messages that the broker has taken back, even while the application has a batch and nothing is
  /// taken. Reads the bytes that have arrived, at most every 100 ms unless `at_once`. Returns true if there
  /// were such messages.
  bool look_for_revocations(SessionTime now, bool at_once) {
    if (!leases_.is_on() || state_ != SessionState::open || (now < look_ahead_at_ && !at_once)) return false;
    look_ahead_at_ = now + look_ahead_interval;
    bool any = false;
    const Result<void> done =
        route_.connection().look_ahead(session::Op::revoked, [&](const SessionFrame& frame) {
          const auto revoked = session::Revoked::decode(frame.body, frame.header.flags);
          if (!revoked || frame.header.channel != output_.channel()) return;  // found again in its turn
          const HandOut before = leases_.came_early(*revoked);
          for (const OffsetRange& range : revoked->ranges) deliveries_.revoke(range, before, true);
          any = true;
        });
    if (any) leases_.stop_unheld();
    if (!done) ended(done.error(), now);
    return any;
  }
  struct Begun {
    Offset end;             ///< the messages before it are started
    bool is_named = false;  ///< a frame that says so waits to be sent
  };
  /// Names the messages at the front of `left`, a part of the present batch, as started, unless they are.
  /// `is_whole`: the program receives all of `left` at once. `is_again`: these messages were delivered
  /// before, see SessionLeases::start.
  Begun start(OffsetRange left, HandOut hand_out, bool is_whole, bool is_again) {
    const Offset end = leases_.started_end(left, hand_out);
    if (end >= left.end || (left.begin < end && !is_whole)) return {end};
    const OffsetRange window = leases_.start(left, hand_out, is_whole, route_.now(), is_again);
    if (state_ == SessionState::open) output_.started(window, hand_out);
    return {std::min({window.end, left.end, leases_.first_revoked(left, hand_out).begin}), true};
  }
  /// Gives back the messages that were named as started and that the program has not received. `left`: those
  /// of the present batch that it has not received, or nothing. Called before the channel is closed: gives no
  /// more credit.
  void release_not_begun(std::optional<OffsetRange> left) {
    const Offset next = left ? left->begin : batch_end_;
    const auto window = leases_.not_begun(next);
    if (!window || state_ != SessionState::open) return;
    output_.credit().pause(true);
    output_.put_news();  // first: the broker ignores the release of messages that are acknowledged
    HandOutRanges messages;
    for (const OffsetRange& gap :
         deliveries_.settling().unsettled.gaps(left.value_or(OffsetRange{next, next}))) {
      const OffsetRange part{std::max(gap.begin, window->begin), std::min(gap.end, window->end)};
      if (part.begin < part.end) messages.add(part, leases_.window_hand_out());
    }
    output_.release(std::move(messages));
  }
  [[nodiscard]] SessionLeases& leases() { return leases_; }
  /// Releases the present batch, because the application asks for more messages.
  void release(SessionTime now) {
    if (auto& prefetch = output_.credit().prefetch()) prefetch->finished(now);
    release_batch();
  }

  /// Sends heartbeats that are due, acknowledgements and credit. `all`: sends all acknowledgements and
  /// credit; otherwise only once there are many or they have waited for 100 ms.
  void transmit(SessionTime now, bool all) {
    if (!route_.is_connected() || !route_.is_here()) return;
    if (state_ == SessionState::open) output_.put_news(now, all, route_.connection().is_held());
    route_.connection().beat(now);
    const Result<void> sent = route_.connection().send(now, nullptr);
    if (!sent) ended(sent.error(), now);
  }

  // --- Acknowledging. Messages that are no longer in flight to this consumer are skipped. Acknowledgements
  // go directly to SessionDeliveries::settling.

  /// Rejects messages, or releases them if there is no delay.
  void reject(OffsetRange range, std::optional<std::uint32_t> delay_ms) {
    HandOutRanges rejected = deliveries_.reject(range);
    if (state_ != SessionState::open) return;
    if (delay_ms) return output_.reject(std::move(rejected), *delay_ms);
    output_.release(std::move(rejected));
  }
  /// Rejects messages as dead. A broker that does not know dead messages delivers them again.
  void reject_dead(OffsetRange range, std::string_view reason) {
    HandOutRanges rejected = deliveries_.reject(range);
    if (state_ != SessionState::open) return;
    if (!opened_->dead_letters) return output_.reject(std::move(rejected), 0);
    output_.reject_dead(std::move(rejected), reason);
  }
  void extend(OffsetRange range, std::uint32_t ms) {
    if (state_ != SessionState::open || range.begin >= range.end || deliveries_.unsettled() == 0) return;
    if (!leases_.is_on()) return output_.extend(std::vector{range}, ms);
    HandOutRanges extended;
    deliveries_.settling().unsettled.for_each_in(
        range, [&](OffsetRange part, HandOut hand_out) { extended.add(part, hand_out); });
    output_.extend(std::move(extended), ms);
  }
  /// Keeps the broker from redelivering messages that the program has not received yet because it works on
  /// earlier ones. Restarts `ack_timeout` for all messages in flight except those that the program has
  /// received. `waiting`: the messages of the present batch that it has not received. Called in every call of
  /// the program; sends one frame per sixteenth of `ack_timeout`.
  void keep(OffsetRange waiting, SessionTime now) {
    if (!output_.is_time_to_keep(now) || state_ != SessionState::open) return;
    if (waiting.begin < waiting.end && !deliveries_.is_automatic()) output_.keep(waiting, now);
  }
  /// Asks the broker to move the position of the group or cursor. Forgets all unacknowledged messages.
  /// Requires: the channel is open.
  void seek(const session::Place& to) {
    output_.put_news();
    forget();
    requests_.seek(output_.request(session::Seek{to}));
  }

  /// Asks the broker to close the channel. Its answer means that it has received all acknowledgements.
  /// Requires: the channel is open.
  void begin_close() {
    output_.credit().pause(true);
    drop_batch();
    output_.put_news();
    requests_.close(output_.request(session::Close{}));
  }
  /// Ends the connection.
  void close() {
    say_goodbye();
    state_ = SessionState::closed;
    forget();
  }

  // --- State.

  [[nodiscard]] SessionState state() const { return state_; }
  /// Returns the broker's answer when it last opened the channel, or nothing if it has not yet.
  [[nodiscard]] const std::optional<session::ConsumeOpened>& opened() const { return opened_; }
  [[nodiscard]] SessionDeliveries& deliveries() { return deliveries_; }
  [[nodiscard]] SessionConsumeOutput& output() { return output_; }
  [[nodiscard]] SessionConsumeRequests& requests() { return requests_; }
  [[nodiscard]] const SessionRoute& route() const { return route_; }
  [[nodiscard]] ConsumerStats stats() const {
    ConsumerStats stats = deliveries_.stats();
    stats.opens = opens_;
    stats.new_logs = new_logs_;
    stats.violations = route_.violations();
    if (is_alive()) stats.prefetch_messages = output_.credit().prefetch_messages();
    return stats;
  }
  /// Returns true if all acknowledgements and credit have left this process.
  [[nodiscard]] bool is_all_said() const { return !output_.has_news() && !route_.connection().has_unsent(); }
  /// Returns when something is due even if the descriptor reports nothing.
  [[nodiscard]] SessionTime next_timer(SessionTime now) const {
    if (!is_alive()) return session_never;
    if (route_.connection().pending()) return now;
    const SessionTime next = route_.next_timer(state_ == SessionState::open);
    return state_ == SessionState::open ? std::min(next, output_.news_timer(now)) : next;
  }

 private:
  static constexpr std::size_t read_bytes = 256 * limits::KiB;

  static constexpr Timeout look_ahead_interval{100};

  [[nodiscard]] bool is_alive() const {
    return state_ == SessionState::connecting || state_ == SessionState::open;
  }

  // --- From one connection to the next.

  void ended(const Error& error, SessionTime now) {
    Consequence consequence = route_.ended(error, state_ == SessionState::open, now);
    if (consequence == Consequence::doubt) consequence = Consequence::again;
    state_ = consequence == Consequence::fail ? SessionState::failed : SessionState::connecting;
    requests_.forget();
    deliveries_.drop();
    output_.drop();
    leases_.stop_unheld();
  }
  void forget() {
    deliveries_.forget();
    leases_.stop_unheld();
    drop_batch();
  }
  void drop_batch() {
    if (auto& prefetch = output_.credit().prefetch()) prefetch->dropped();
    release_batch();
  }
  void release_batch() {
    if (deliveries_.release()) route_.connection().release();
  }
  void say_goodbye() {
    if (route_.connection().phase() == SessionConnection::Phase::open && route_.is_here()) {
      if (state_ == SessionState::open) output_.put_news();
      route_.connection().put(session::Goodbye{}, 0, 0);
      (void)route_.connection().send(route_.now(), nullptr);
    }
    route_.connection().drop();
  }

  void ask() {
    session::ConsumeOpen open;
    open.mode = options_.mode;
    open.acknowledgement = options_.acknowledgement;
    position_.begin(open);
    open.holds = options_.holds && options_.mode == ConsumeMode::own;
    const SessionAmount credit = output_.credit().begin(deliveries_.settling().back);
    open.credit_messages = static_cast<std::uint32_t>(credit.messages);
    open.credit_bytes = credit.bytes;
    open.ack_timeout_ms = static_cast<std::uint32_t>(options_.ack_timeout.count());
    open.topic = route_.topic();
    open.group = options_.group;
    open_request_ = route_.connection().next_request();
    route_.connection().put(open, 0, open_request_);
  }

  // --- Frames from the broker.

  Result<void> take(const SessionFrame& frame, SessionTime now) {
    using session::Op;
    const session::FrameHeader& header = frame.header;
    switch (header.op) {
      case Op::deliver: return take_batch(frame, now);
      case Op::consume_opened:
        return with_body<session::ConsumeOpened>(
            frame, [&](const auto& opened) { return take_opened(header, opened, now); });
      case Op::late:
        return with_body<session::Late>(frame, [&](const auto& late) { return take_late(header, late); });
      case Op::revoked:
        return with_body<session::Revoked>(
            frame, [&](const auto& revoked) { return take_revoked(header, revoked); });
      case Op::done:
        return with_body<session::Done>(frame, [&](const auto& done) { return take_done(header, done); });
      case Op::error:
        return with_body<session::ErrorAnswer>(
            frame, [&](const auto& answer) { return take_error(header, answer); });
      case Op::goodbye:
        return with_body<session::Goodbye>(frame, [&](const auto& goodbye) {
          return Result<void>(route_.ends_with(goodbye.code, goodbye.sentence));
        });
      default:
        return SessionRoute::violation("sent " + std::string(rule_of(header.op).name) + " to a consumer");
    }
  }
  Result<void> take_opened(const session::FrameHeader& header, const session::ConsumeOpened& opened,
                           SessionTime now) {
    if (!route_.asked() || state_ == SessionState::open || header.request != open_request_)
      return SessionRoute::violation("opened a channel that was not requested");
    if (header.channel == 0) return SessionRoute::violation("opened channel 0");
    if (position_.opened(opened)) ++new_logs_;
    opened_ = opened;
    state_ = SessionState::open;
    if (deliveries_.batch()) route_.connection().hold();
    leases_.opened(opened.leases);
    // With leases there is no time for messages that wait in the consumer.
    output_.opened(header.channel, opened.leases ? 0 : opened.ack_timeout_ms, now);
    ++opens_;
    route_.opened(now);
    return {};
  }

  Result<void> take_error(const session::FrameHeader& header, const session::ErrorAnswer& answer) {
    if (requests_.is_seek(header.request)) {
      requests_.sought(route_.of_topic(error_of(answer.code, answer.sentence)));
      return {};
    }
    if (requests_.closed(header.request)) return {};
    if (answer.code != session::Code::incarnation_changed)
      return route_.ends_with(answer.code, answer.sentence);
    const bool goes_on = position_.log_was_replaced();
    return route_.ends_with(answer.code, answer.sentence, goes_on ? Consequence::again : Consequence::fail);
  }

  Result<void> take_done(const session::FrameHeader& header, const session::Done& done) {
    if (requests_.closed(header.request)) return {};
    if (!requests_.is_seek(header.request))
      return SessionRoute::violation("answered a request that was not sent");
    requests_.sought(Offset{done.value});
    position_.sought(Offset{done.value});
    return {};
  }

  Result<void> take_late(const session::FrameHeader& header, const session::Late& late) {
    if (state_ != SessionState::open || header.channel != output_.channel())
      return SessionRoute::violation("reported late acknowledgements on a channel that is not open");
    deliveries_.were_late(late.ranges);
    return {};
  }

  Result<void> take_revoked(const session::FrameHeader& header, const session::Revoked& revoked) {
    if (state_ != SessionState::open || header.channel != output_.channel() || !leases_.is_on())
      return SessionRoute::violation("revoked messages of a channel that is not open or has no leases");
    if (leases_.was_early()) return {};
    for (const OffsetRange& range : revoked.ranges)
      deliveries_.revoke(range, leases_.hand_out(revoked.before), true);
    leases_.stop_unheld();
    return {};
  }

  Result<void> take_batch(const SessionFrame& frame, SessionTime now) {
    if (state_ != SessionState::open || frame.header.channel != output_.channel() ||
        frame.header.request != 0)
      return SessionRoute::violation("delivered on a channel that is not open");
    const Result<SessionDeliveries::Checked> checked = SessionDeliveries::check(frame);
    if (!checked) return checked.error();
    if ((checked->head.hand_out != 0) != leases_.is_on())
      return SessionRoute::violation(leases_.is_on() ? "delivered messages without a hand-out"
                                                     : "delivered a hand-out to a consumer without leases");
    const BatchView& batch = checked->batch;
    if (!position_.permits(batch.base_offset(), checked->head.delivery, checked->head.hand_out))
      return SessionRoute::violation("delivered offsets in descending order");
    if (!output_.credit().use(checked->amount()))
      return SessionRoute::violation("delivered more messages than the credit permits");
    if (requests_.any()) {  // sent before the broker knew
      deliveries_.settling().back += checked->amount();
      return {};
    }
    const std::optional<BatchView> plain = deliveries_.unpack(batch);
    if (!plain) return SessionRoute::violation("delivered a batch that cannot be unpacked");
    const std::uint64_t lost_before = position_.delivered({batch.base_offset(), batch.end_offset()});
    const HandOut hand_out = leases_.hand_out(checked->head.hand_out);
    deliveries_.hand_over(*checked, *plain, checked->head.lost + lost_before, hand_out);
    if (auto& prefetch = output_.credit().prefetch()) prefetch->delivered(checked->amount().messages, now);
    batch_end_ = batch.end_offset();
    leases_.for_each_early(
        [&](OffsetRange range, HandOut before) { deliveries_.revoke(range, before, false); });
    route_.connection().hold();
    return {};
  }

  ConsumerOptions options_;
  SessionRoute route_;
  SessionDeliveries deliveries_;
  SessionPosition position_;
  SessionConsumeRequests requests_;
  SessionLeases leases_;         // refers to the deliveries
  SessionConsumeOutput output_;  // refers to the route, the deliveries and the leases
  SessionState state_ = SessionState::connecting;
  std::optional<session::ConsumeOpened> opened_;
  std::uint32_t open_request_ = 0;
  std::uint64_t opens_ = 0;
  std::uint64_t new_logs_ = 0;
  Offset batch_end_;           // of the last batch
  SessionTime look_ahead_at_;  // when to look for revocations next
};

}  // namespace lightq::inline v1
