/// Keeps a consumer's channel open: opens it on each connection, takes delivered batches, gives credit, and
/// sends acknowledgements. docs/session.md, "Consuming". Layer: client.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <lightq/base/batch_unpack.hpp>
#include <lightq/base/result.hpp>
#include <lightq/consumer_options.hpp>
#include <lightq/consumer_stats.hpp>
#include <lightq/delivered.hpp>
#include <lightq/detail/offset_ranges.hpp>
#include <lightq/detail/session_patience.hpp>
#include <lightq/detail/session_route.hpp>
#include <lightq/detail/session_settling.hpp>
#include <lightq/detail/session_state.hpp>
#include <lightq/detail/session_unsettled.hpp>

namespace lightq::inline v1 {

/// The channel of a consumer, opened again on each new connection. Calls do not wait, except that the join
/// may. Not movable. One thread.
class SessionConsumeLink {
 public:
  SessionConsumeLink(std::string topic, SessionJoin join, const ConsumerOptions& options)
      : options_(options),
        route_(std::move(topic), std::move(join), options,
               SessionConnection(hello(options), read_bytes, session_memory(options, memory_to_receive))) {}
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
  /// Returns the delivered batch, or nothing. Its messages count as received by the application.
  [[nodiscard]] const std::optional<DeliveredBatch>& batch() const { return batch_; }
  /// Checks for the end of the connection even while the application has a batch and nothing is read.
  void look_for_end(SessionTime now) {
    if (state_ != SessionState::open || !connection().is_held() || !connection().has_hung_up()) return;
    ended({ErrorCode::closed, "the broker has ended the connection"}, now);
  }
  /// Releases the batch, which the application does not use any more.
  void release() {
    if (!batch_) return;
    batch_.reset();
    settling_.back += std::exchange(of_batch_, {});
    connection().release();
  }

  /// Sends heartbeats that are due, acknowledgements and credit. `all`: sends all acknowledgements and
  /// credit; otherwise only once there are many or they have waited for 100 ms.
  void transmit(SessionTime now, bool all) {
    if (!route_.is_connected() || !route_.is_here()) return;
    if (state_ == SessionState::open && has_news()) {
      if (news_since_ == session_never) news_since_ = now;
      if (all || has_much_news() || now >= news_since_ + news_wait) tell();
    }
    connection().beat(now);
    const Result<void> sent = connection().send(now, nullptr);
    if (!sent) ended(sent.error(), now);
  }

  // --- Acknowledging. Messages that are no longer in flight to this consumer are skipped.

  /// Returns what acknowledgements change. Valid as long as this object.
  [[nodiscard]] SessionSettling& settling() { return settling_; }
  void reject(OffsetRange range, std::uint32_t delay_ms) {
    OffsetRanges pieces;  // merges ranges of neighbouring frames into one
    const SessionAmount settled =
        settling_.unsettled.settle(range, [&](const OffsetRange& piece) { pieces.add(piece); });
    counts_.rejected += settled.messages;
    settling_.back += settled;
    put_ranges(session::Reject{delay_ms, pieces.all()});
  }
  void extend(OffsetRange range, std::uint32_t ms) {
    if (range.begin < range.end && settling_.unsettled.messages() != 0)
      put_ranges(session::Extend{ms, {range}});
  }
  /// Keeps the broker from redelivering messages that the program has not received yet because it works on
  /// earlier ones. Restarts `ack_timeout` for all messages in flight except those that the program has
  /// received. `waiting`: the messages of the present batch that it has not received. Called in every call of
  /// the program; sends one frame per sixteenth of `ack_timeout`.
  void keep(OffsetRange waiting, SessionTime now) {
    if (now < keeps_at_ || state_ != SessionState::open || opened_->ack_timeout_ms == 0) return;
    if (waiting.begin >= waiting.end || is_automatic()) return;
    plan_to_keep(now);
    put_ranges(session::Extend{opened_->ack_timeout_ms, settling_.unsettled.gaps(waiting)});
  }
  /// Asks the broker to move the position of the group or cursor. Forgets all unacknowledged messages.
  void seek(const session::Place& to) {
    tell();
    forget();
    seeking_ = connection().next_request();
    sought_.reset();
    connection().put(session::Seek{to}, channel_, seeking_);
  }
  /// Returns true until the answer to `seek` has arrived.
  [[nodiscard]] bool is_seeking() const { return seeking_ != 0; }
  /// Returns the broker's answer to `seek`, or nothing if the connection ended instead.
  std::optional<Result<Offset>> take_sought() { return std::exchange(sought_, std::nullopt); }
  /// Stops giving credit, or gives it again.
  void pause(bool paused) { paused_ = paused; }

  /// Asks the broker to close the channel. Its answer means that it has received all acknowledgements.
  void begin_close() {
    paused_ = true;
    release();
    tell();
    closing_ = connection().next_request();
    connection().put(session::Close{}, channel_, closing_);
  }
  [[nodiscard]] bool is_closing() const { return closing_ != 0; }
  /// Ends the connection.
  void close() {
    say_goodbye();
    state_ = SessionState::closed;
    forget();
  }

  [[nodiscard]] const std::string& topic() const { return route_.topic(); }
  [[nodiscard]] SessionState state() const { return state_; }
  /// Returns why the last connection or attempt to connect ended.
  [[nodiscard]] const Error& last_error() const { return route_.last_error(); }
  /// Returns the broker's answer when it last opened the channel, or nothing if it has not yet.
  [[nodiscard]] const std::optional<session::ConsumeOpened>& opened() const { return opened_; }
  [[nodiscard]] ConsumerStats stats() const {
    ConsumerStats stats = counts_;
    stats.acknowledged = settling_.acknowledged_messages;
    stats.violations = route_.violations();
    return stats;
  }
  /// Returns the number of messages that the application has received and not acknowledged.
  [[nodiscard]] std::uint64_t unacknowledged() const { return settling_.unsettled.messages(); }
  /// Returns true if there are acknowledgements to send, or credit while the consumer is not paused.
  [[nodiscard]] bool has_news() const {
    return !settling_.acknowledged.empty() ||
           (!paused_ && (settling_.back.messages != 0 || settling_.back.bytes != 0));
  }
  /// Returns until when acknowledgements and credit may wait for more before the application waits for input.
  /// So messages that arrive one by one are acknowledged several at a time.
  [[nodiscard]] SessionTime gathers_until(SessionTime now) const {
    return (news_since_ == session_never ? now : news_since_) + news_pause;
  }
  /// Returns the messages that were acknowledged too late since the last call.
  std::vector<OffsetRange> take_late() { return std::exchange(late_, OffsetRanges()).all(); }
  /// Returns true if all acknowledgements and credit have left this process.
  [[nodiscard]] bool is_all_said() const { return !has_news() && !connection().has_unsent(); }

  /// Returns true while nothing is read because the application still has a batch.
  [[nodiscard]] bool is_held() const { return connection().is_held(); }
  [[nodiscard]] int fd() const { return connection().fd(); }
  [[nodiscard]] bool wants_write() const { return connection().wants_write(); }
  [[nodiscard]] short wait_events() const { return connection().wait_events(); }
  /// Returns when something is due even if the descriptor reports nothing.
  [[nodiscard]] SessionTime next_timer(SessionTime now) const {
    if (!is_alive()) return session_never;
    if (connection().pending()) return now;
    const SessionTime next = route_.next_timer(state_ == SessionState::open);
    if (state_ != SessionState::open || !has_news()) return next;
    return std::min(next, (news_since_ == session_never ? now : news_since_) + news_wait);
  }

 private:
  static constexpr std::size_t read_bytes = 256 * limits::KiB;
  static constexpr Timeout news_wait{100};  // the longest that an acknowledgement waits for others
  static constexpr Timeout news_pause{1};   // the longest while the application waits for input
  static constexpr std::size_t many_ranges = 1024;
  static constexpr std::size_t late_ranges_max = 4096;  // kept for take_late
  static constexpr std::uint32_t keep_parts = 16;       // extensions per ack_timeout
  static constexpr std::size_t ranges_max = (session::ranges_body_bytes_max - 8) / 16;  // of one frame

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
  [[nodiscard]] bool is_automatic() const { return options_.acknowledgement == Acknowledgement::automatic; }
  /// Returns true if only this consumer knows its position: mode `own` without a name.
  [[nodiscard]] bool is_nameless() const {
    return options_.mode == ConsumeMode::own && options_.group.empty();
  }

  // --- From one connection to the next.

  void ended(const Error& error, SessionTime now) {
    Consequence consequence = route_.ended(error, state_ == SessionState::open, now);
    if (consequence == Consequence::doubt) consequence = Consequence::again;
    state_ = consequence == Consequence::fail ? SessionState::failed : SessionState::connecting;
    seeking_ = closing_ = 0;
    settling_.acknowledged.clear();
    settling_.unsettled.clear();
    of_batch_ = settling_.back = {};
    news_since_ = session_never;
  }
  void forget() {
    settling_.acknowledged.clear();
    settling_.back += settling_.unsettled.clear();
    release();
  }
  void say_goodbye() {
    if (connection().phase() == SessionConnection::Phase::open && route_.is_here()) {
      if (state_ == SessionState::open) tell();
      connection().put(session::Goodbye{}, 0, 0);
      (void)connection().send(route_.now(), nullptr);
    }
    connection().drop();
  }

  void ask() {
    session::ConsumeOpen open;
    open.mode = options_.mode;
    open.acknowledgement = options_.acknowledgement;
    open.start = options_.from;
    open.incarnation = options_.incarnation;
    if (goes_on_at_) {
      open.start = From::offset(*goes_on_at_);
      open.incarnation = opened_->incarnation;
    } else if (begins_anew_) {
      open.start = From::first();
      open.incarnation = 0;
    }
    open.holds = options_.holds && options_.mode == ConsumeMode::own;
    open.credit_messages = paused_ ? 0 : options_.prefetch_messages;
    open.credit_bytes = paused_ ? 0 : options_.prefetch_bytes;
    open.ack_timeout_ms = static_cast<std::uint32_t>(options_.ack_timeout.count());
    open.topic = route_.topic();
    open.group = options_.group;
    settling_.back = {options_.prefetch_messages - open.credit_messages,
                      options_.prefetch_bytes - open.credit_bytes};
    left_messages_ = open.credit_messages;
    left_bytes_ = static_cast<std::int64_t>(open.credit_bytes);
    open_request_ = connection().next_request();
    connection().put(open, 0, open_request_);
  }

  // --- Frames from the broker.

  Result<void> take(const SessionFrame& frame, SessionTime now) {
    using session::Op;
    const session::FrameHeader& header = frame.header;
    switch (header.op) {
      case Op::deliver: return take_batch(frame);
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
    const bool is_new_log = opened_ && opened_->incarnation != opened.incarnation;
    // A consumer without a name names the incarnation, so another log would have been refused. But the log
    // may have lost its end.
    const bool has_lost_its_end = goes_on_at_ && opened.next < goes_on_at_->value;
    if (goes_on_at_ ? has_lost_its_end : is_new_log || begins_anew_) ++counts_.new_logs;
    if (goes_on_at_ && goes_on_at_->value < opened.next)
      lost_before_ += distance(*goes_on_at_, {opened.next});
    begins_anew_ = false;
    channel_ = header.channel;
    opened_ = opened;
    newest_ = {};
    if (is_nameless()) goes_on_at_ = Offset{opened.next};
    state_ = SessionState::open;
    if (batch_) connection().hold();
    plan_to_keep(now);
    ++counts_.opens;
    route_.opened(now);
    return {};
  }

  Result<void> take_error(const session::FrameHeader& header, const session::ErrorAnswer& answer) {
    if (header.request != 0 && header.request == seeking_) {
      seeking_ = 0;
      sought_ = route_.of_topic(error_of(answer.code, answer.sentence));
      return {};
    }
    if (header.request != 0 && header.request == closing_) {
      closing_ = 0;
      return {};
    }
    if (answer.code != session::Code::incarnation_changed)
      return route_.ends_with(answer.code, answer.sentence);
    // The topic is in memory and the broker was restarted: begin at the new log's first message.
    begins_anew_ = goes_on_at_.has_value();
    goes_on_at_.reset();
    return route_.ends_with(answer.code, answer.sentence,
                            begins_anew_ ? Consequence::again : Consequence::fail);
  }

  Result<void> take_done(const session::FrameHeader& header, const session::Done& done) {
    if (header.request != 0 && header.request == closing_) {
      closing_ = 0;
      return {};
    }
    if (header.request == 0 || header.request != seeking_)
      return violation("answered a request that was not sent");
    seeking_ = 0;
    sought_ = Offset{done.value};
    newest_ = {};
    lost_before_ = 0;
    if (is_nameless()) goes_on_at_ = Offset{done.value};
    return {};
  }

  Result<void> take_late(const session::FrameHeader& header, const session::Late& late) {
    if (state_ != SessionState::open || header.channel != channel_)
      return violation("reported late acknowledgements on a channel that is not open");
    for (const OffsetRange& range : late.ranges) {
      counts_.late += distance(range.begin, range.end);
      if (late_.size() < late_ranges_max) late_.add(range);
    }
    return {};
  }

  Result<void> take_batch(const SessionFrame& frame) {
    if (state_ != SessionState::open || frame.header.channel != channel_ || frame.header.request != 0)
      return violation("delivered on a channel that is not open");
    const Result<session::DeliverHead> head =
        session::DeliverHead::decode(frame.body.first(session::deliver_head_bytes));
    if (!head) return head.error();
    const ByteView bytes = frame.body.subspan(session::deliver_head_bytes);
    if (const auto fault = BatchView::check(bytes))
      return violation("delivered a batch that is damaged (fault " +
                       std::to_string(static_cast<int>(*fault)) + ")");
    const BatchView batch = BatchView::trusted(bytes.data());
    if (batch.total_bytes() != bytes.size()) return violation("delivered bytes after a batch");
    const std::uint64_t messages = batch.record_count();
    if (batch.base_offset().value > UINT64_MAX - messages)
      return violation("delivered offsets beyond the maximum");
    if (head->delivery == 0) return violation("delivered messages with the attempt number 0");
    // A member of a group receives no notice when another member seeks, so its offsets may go back.
    const bool goes_back = head->delivery == 1 && batch.base_offset() < newest_;
    if (goes_back && options_.mode == ConsumeMode::own)
      return violation("delivered offsets in descending order");
    const SessionAmount amount{messages, batch.message_bytes()};
    if (!use_credit(amount)) return violation("delivered more messages than the credit permits");
    if (seeking_ != 0 || closing_ != 0) {  // sent before the broker knew
      settling_.back += amount;
      return {};
    }
    const std::optional<BatchView> plain = unpacker_.unpack(batch);
    unpacker_.forget();
    if (!plain) return violation("delivered a batch that cannot be unpacked");
    hand_over(*plain, *head, amount);
    return {};
  }

  bool use_credit(const SessionAmount& amount) {
    if (amount.messages > left_messages_ || left_bytes_ <= 0) return false;
    left_messages_ -= amount.messages;
    left_bytes_ -= static_cast<std::int64_t>(amount.bytes);
    return true;
  }

  void hand_over(const BatchView& batch, const session::DeliverHead& head, const SessionAmount& amount) {
    const std::uint64_t lost = head.lost + std::exchange(lost_before_, 0);
    batch_.emplace(batch, head.delivery, lost);
    connection().hold();
    const OffsetRange range = batch_->range();
    if (is_automatic()) {
      of_batch_ = amount;
    } else {
      settling_.back += settling_.unsettled.add(range, amount.bytes);
    }
    newest_ = std::max(newest_, range.end);
    if (goes_on_at_) goes_on_at_ = std::max(*goes_on_at_, range.end);
    counts_.received += amount.messages;
    if (head.delivery > 1) counts_.again += amount.messages;
    counts_.lost += lost;
  }

  // --- Frames to the broker.

  void plan_to_keep(SessionTime now) {
    keeps_at_ = now + std::max(Timeout(opened_->ack_timeout_ms / keep_parts), Timeout(1));
  }

  /// Returns true if there is so much to send that waiting for more would slow the broker down.
  [[nodiscard]] bool has_much_news() const {
    if (settling_.acknowledged.size() >= many_ranges) return true;
    return !paused_ && (settling_.back.messages >= std::max(options_.prefetch_messages / 4, 1U) ||
                        settling_.back.bytes >= std::max<std::uint64_t>(options_.prefetch_bytes / 4, 1));
  }
  void tell() {
    news_since_ = session_never;
    if (!settling_.acknowledged.empty()) route_.worked();
    while (!settling_.acknowledged.empty()) {
      connection().put(session::Acknowledge{std::nullopt, settling_.acknowledged.take_first(ranges_max)},
                       channel_, 0);
    }
    if (paused_ || (settling_.back.messages == 0 && settling_.back.bytes == 0)) return;
    const SessionAmount credit = std::exchange(settling_.back, {});
    left_messages_ += credit.messages;
    left_bytes_ += static_cast<std::int64_t>(credit.bytes);
    connection().put(session::Credit{static_cast<std::uint32_t>(credit.messages), credit.bytes}, channel_, 0);
  }
  template <typename Postpone>
  void put_ranges(Postpone postpone) {
    if (state_ != SessionState::open || postpone.ranges.empty()) return;
    auto all = std::exchange(postpone.ranges, {});
    for (std::size_t at = 0; at < all.size(); at += ranges_max) {
      const auto begin = all.begin() + static_cast<std::ptrdiff_t>(at);
      postpone.ranges.assign(begin,
                             begin + static_cast<std::ptrdiff_t>(std::min(ranges_max, all.size() - at)));
      connection().put(postpone, channel_, 0);
    }
  }

  ConsumerOptions options_;
  SessionRoute route_;
  SessionState state_ = SessionState::connecting;
  std::optional<session::ConsumeOpened> opened_;
  std::uint32_t open_request_ = 0;
  std::uint32_t channel_ = 0;

  BatchUnpacker unpacker_;
  std::optional<DeliveredBatch> batch_;  // its bytes are in the connection's buffer or the unpacker's
  SessionAmount of_batch_;               // credit to give when it is released
  SessionSettling settling_;
  OffsetRanges late_;                       // for take_late
  SessionTime keeps_at_;                    // when `keep` extends the messages that wait
  std::uint64_t left_messages_ = 0;         // credit in messages that the broker has
  std::int64_t left_bytes_ = 0;             // credit in bytes that the broker has
  SessionTime news_since_ = session_never;  // how long acknowledgements and credit have waited
  bool paused_ = false;

  std::optional<Offset> goes_on_at_;  // the position of a consumer without a name
  bool begins_anew_ = false;          // the log of that position is gone
  Offset newest_;                     // one past the newest message delivered since the opening or a seek
  std::uint64_t lost_before_ = 0;
  std::uint32_t seeking_ = 0;  // the number of the request
  std::uint32_t closing_ = 0;
  std::optional<Result<Offset>> sought_;
  ConsumerStats counts_;
};

}  // namespace lightq::inline v1
