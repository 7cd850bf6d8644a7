/// Keeps a consumer's channel open: opens it on each connection, takes delivered batches, and sends
/// acknowledgements and credit. docs/session.md, "Consuming". Layer: client.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
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
#include <lightq/impl/session_position.hpp>

namespace lightq::inline v1 {

/// The channel of a consumer, opened again on each new connection. Owns the parts that each know one thing
/// about it: the messages that were delivered, the position, the frames to send, the unanswered requests.
/// This class takes the broker's frames and connects the parts. Calls do not wait, except that the join may.
/// Not movable. One thread.
class SessionConsumeLink {
 public:
  SessionConsumeLink(std::string topic, SessionJoin join, const ConsumerOptions& options)
      : options_(options),
        route_(std::move(topic), std::move(join), options,
               SessionConnection(hello(options), read_bytes, session_memory(options, memory_to_receive))),
        deliveries_(options.acknowledgement == Acknowledgement::automatic),
        position_(options),
        output_(route_, deliveries_.settling(), SessionCredit::requested_by(options)) {}
  SessionConsumeLink(const SessionConsumeLink&) = delete;
  SessionConsumeLink& operator=(const SessionConsumeLink&) = delete;
  ~SessionConsumeLink() { say_goodbye(); }

  /// Connects if it is time, and handles the broker's frames up to the next batch. While the application has
  /// a batch this does no more than open the channel again.
  void receive(SessionTime now) {
    if (connection().is_held() || !is_alive()) return;
    const Result<void> done = route_.receive(
        now, [this] { return state_ == SessionState::open; },
        [&](const SessionFrame& frame) { return take(frame, now); }, [this] { ask(); });
    if (!done) ended(done.error(), now);
  }
  /// Checks for the end of the connection even while the application has a batch and nothing is read.
  void look_for_end(SessionTime now) {
    if (state_ != SessionState::open || !connection().is_held() || !connection().has_hung_up()) return;
    ended({ErrorCode::closed, "the broker has ended the connection"}, now);
  }
  /// Releases the present batch, because the application asks for more messages.
  void release(SessionTime now) {
    if (auto& prefetch = output_.credit().prefetch()) prefetch->finished(now);
    release_batch();
  }
  /// Records that the application has not begun `waiting` messages of the present batch. So the credit
  /// follows its work.
  void look(std::uint64_t waiting, SessionTime now) {
    if (auto& prefetch = output_.credit().prefetch()) prefetch->look(waiting, now);
  }

  /// Sends heartbeats that are due, acknowledgements and credit. `all`: sends all acknowledgements and
  /// credit; otherwise only once there are many or they have waited for 100 ms.
  void transmit(SessionTime now, bool all) {
    if (!route_.is_connected() || !route_.is_here()) return;
    if (state_ == SessionState::open) output_.put_news(now, all);
    connection().beat(now);
    const Result<void> sent = connection().send(now, nullptr);
    if (!sent) ended(sent.error(), now);
  }

  // --- Acknowledging. Messages that are no longer in flight to this consumer are skipped. Acknowledgements
  // go directly to SessionDeliveries::settling.

  void reject(OffsetRange range, std::uint32_t delay_ms) {
    std::vector<OffsetRange> rejected = deliveries_.reject(range);
    if (state_ == SessionState::open) output_.reject(std::move(rejected), delay_ms);
  }
  void extend(OffsetRange range, std::uint32_t ms) {
    if (state_ == SessionState::open && range.begin < range.end && deliveries_.unsettled() != 0)
      output_.extend({range}, ms);
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
  /// Stops giving credit, or gives it again.
  void pause(bool paused) { output_.credit().pause(paused); }

  /// Asks the broker to close the channel. Its answer means that it has received all acknowledgements.
  /// Requires: the channel is open.
  void begin_close() {
    pause(true);
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
  [[nodiscard]] const SessionConsumeOutput& output() const { return output_; }
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
  [[nodiscard]] bool is_all_said() const { return !output_.has_news() && !connection().has_unsent(); }
  /// Returns when something is due even if the descriptor reports nothing.
  [[nodiscard]] SessionTime next_timer(SessionTime now) const {
    if (!is_alive()) return session_never;
    if (connection().pending()) return now;
    const SessionTime next = route_.next_timer(state_ == SessionState::open);
    return state_ == SessionState::open ? std::min(next, output_.news_timer(now)) : next;
  }

 private:
  static constexpr std::size_t read_bytes = 256 * limits::KiB;

  static session::Hello hello(const ConsumerOptions& options) {
    session::Hello hello = session_hello(options);
    hello.frame_bytes_max = options.frame_bytes_max;
    hello.codecs = CodecSet(CodecSet::known().bits() | session::hello_hears_late |
                            (options.may_be_busy ? session::hello_may_be_busy : 0U));
    return hello;
  }
  [[nodiscard]] SessionConnection& connection() { return route_.connection(); }
  [[nodiscard]] const SessionConnection& connection() const { return route_.connection(); }
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
  }
  void forget() {
    deliveries_.forget();
    drop_batch();
  }
  void drop_batch() {
    if (auto& prefetch = output_.credit().prefetch()) prefetch->dropped();
    release_batch();
  }
  void release_batch() {
    if (deliveries_.release()) connection().release();
  }
  void say_goodbye() {
    if (connection().phase() == SessionConnection::Phase::open && route_.is_here()) {
      if (state_ == SessionState::open) output_.put_news();
      connection().put(session::Goodbye{}, 0, 0);
      (void)connection().send(route_.now(), nullptr);
    }
    connection().drop();
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
    open_request_ = connection().next_request();
    connection().put(open, 0, open_request_);
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
      case Op::done:
        return with_body<session::Done>(frame, [&](const auto& done) { return take_done(header, done); });
      case Op::error:
        return with_body<session::ErrorAnswer>(
            frame, [&](const auto& answer) { return take_error(header, answer); });
      case Op::goodbye:
        return with_body<session::Goodbye>(frame, [&](const auto& goodbye) {
          return Result<void>(route_.ends_with(goodbye.code, goodbye.sentence));
        });
      default: return violation("sent " + std::string(rule_of(header.op).name) + " to a consumer");
    }
  }
  static Error violation(const std::string& what) { return SessionRoute::violation(what); }

  Result<void> take_opened(const session::FrameHeader& header, const session::ConsumeOpened& opened,
                           SessionTime now) {
    if (!route_.asked() || state_ == SessionState::open || header.request != open_request_)
      return violation("opened a channel that was not requested");
    if (header.channel == 0) return violation("opened channel 0");
    if (position_.opened(opened)) ++new_logs_;
    opened_ = opened;
    state_ = SessionState::open;
    if (deliveries_.batch()) connection().hold();
    output_.opened(header.channel, opened.ack_timeout_ms, now);
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
    if (!requests_.is_seek(header.request)) return violation("answered a request that was not sent");
    requests_.sought(Offset{done.value});
    position_.sought(Offset{done.value});
    return {};
  }

  Result<void> take_late(const session::FrameHeader& header, const session::Late& late) {
    if (state_ != SessionState::open || header.channel != output_.channel())
      return violation("reported late acknowledgements on a channel that is not open");
    deliveries_.were_late(late.ranges);
    return {};
  }

  Result<void> take_batch(const SessionFrame& frame, SessionTime now) {
    if (state_ != SessionState::open || frame.header.channel != output_.channel() ||
        frame.header.request != 0)
      return violation("delivered on a channel that is not open");
    const Result<SessionDeliveries::Checked> checked = SessionDeliveries::check(frame);
    if (!checked) return checked.error();
    const BatchView& batch = checked->batch;
    if (!position_.permits(batch.base_offset(), checked->head.delivery))
      return violation("delivered offsets in descending order");
    if (!output_.credit().use(checked->amount()))
      return violation("delivered more messages than the credit permits");
    if (requests_.any()) {  // sent before the broker knew
      deliveries_.settling().back += checked->amount();
      return {};
    }
    const std::optional<BatchView> plain = deliveries_.unpack(batch);
    if (!plain) return violation("delivered a batch that cannot be unpacked");
    const std::uint64_t lost_before = position_.delivered({batch.base_offset(), batch.end_offset()});
    deliveries_.hand_over(*checked, *plain, checked->head.lost + lost_before);
    if (auto& prefetch = output_.credit().prefetch()) prefetch->delivered(checked->amount().messages, now);
    connection().hold();
    return {};
  }

  ConsumerOptions options_;
  SessionRoute route_;
  SessionDeliveries deliveries_;
  SessionPosition position_;
  SessionConsumeRequests requests_;
  SessionConsumeOutput output_;  // refers to the route and the deliveries
  SessionState state_ = SessionState::connecting;
  std::optional<session::ConsumeOpened> opened_;
  std::uint32_t open_request_ = 0;
  std::uint64_t opens_ = 0;
  std::uint64_t new_logs_ = 0;
};

}  // namespace lightq::inline v1
