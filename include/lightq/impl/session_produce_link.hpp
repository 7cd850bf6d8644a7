/// Keeps a producer's channel open: opens it on each connection, and handles the broker's answers.
/// docs/session.md, "Producing". Layer: client.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <lightq/base/result.hpp>
#include <lightq/detail/session_failure.hpp>
#include <lightq/detail/session_patience.hpp>
#include <lightq/detail/session_reports.hpp>
#include <lightq/detail/session_route.hpp>
#include <lightq/detail/session_state.hpp>
#include <lightq/impl/session_batches.hpp>
#include <lightq/producer_options.hpp>

namespace lightq::inline v1 {

/// The channel of a producer, opened again on each new connection. Calls do not wait, except that the join
/// may. Not movable. For one thread.
class SessionProduceLink {
 public:
  SessionProduceLink(std::string topic, SessionJoin join, const ProducerOptions& options)
      : options_(options),
        route_(std::move(topic), std::move(join), options,
               SessionConnection(hello_of(options), SessionInbox::read_bytes_least,
                                 session_memory(options, memory_to_send))),
        identity_(options.identity),
        secret_(options.identity_secret) {}
  SessionProduceLink(const SessionProduceLink&) = delete;
  SessionProduceLink& operator=(const SessionProduceLink&) = delete;
  ~SessionProduceLink() { say_goodbye(); }

  /// Connects if it is time, and handles the broker's frames.
  void receive(SessionTime now, SendReports& reports) {
    if (state_ != SessionState::connecting && state_ != SessionState::open) return;
    const Result<void> done = route_.receive(
        now, [this] { return state_ == SessionState::open; },
        [&](const SessionFrame& frame) { return take(frame, now, reports); }, [this] { ask(); });
    if (!done) ended(done.error(), now, reports);
  }

  /// Sends waiting frames and batches as far as possible.
  void transmit(SessionTime now, SendReports& reports) {
    while (route_.is_connected() && route_.is_here()) {
      SessionOutgoing* batches = may_send(now) ? &batches_ : nullptr;
      const Result<void> sent = connection().send(now, batches);
      if (!sent) return ended(sent.error(), now, reports);
      if (batches == nullptr) return;
      const auto given_up = batches_.give_up_oversized();
      if (!given_up) return;
      const Error error =
          route_.of_topic({ErrorCode::too_large, "the message is larger than the broker accepts now"});
      reports.settled(given_up->begin, given_up->end, Fate::refused, &error);
    }
  }

  /// Ends the connection, and reports all unconfirmed messages.
  void close(SendReports& reports) {
    say_goodbye();
    batches_.stop();
    state_ = SessionState::closed;
    settle_all(route_.of_topic({ErrorCode::closed, "the producer was closed"}), false, reports);
  }

  /// Reports all unconfirmed messages as refused or unknown. For a link that has failed.
  void give_up_all(SendReports& reports) { settle_all(last_error(), false, reports); }

  /// Ends the state `in_doubt`: sends the doubtful messages again, or gives them up as Fate::unknown.
  void resolve(bool resend, SendReports& reports) {
    if (state_ != SessionState::in_doubt) return;
    begin_anew();
    state_ = SessionState::connecting;
    if (!resend) settle_all(last_error(), true, reports);
  }

  [[nodiscard]] SessionBatches& batches() { return batches_; }
  [[nodiscard]] const SessionBatches& batches() const { return batches_; }
  [[nodiscard]] const std::string& topic() const { return route_.topic(); }
  [[nodiscard]] SessionState state() const { return state_; }
  /// Returns why the last connection or attempt ended.
  [[nodiscard]] const Error& last_error() const { return route_.last_error(); }
  /// Returns true if batches may be sent: the channel is open, and the pause after a refusal is over.
  [[nodiscard]] bool may_send(SessionTime now) const {
    return state_ == SessionState::open && now >= held_until_;
  }
  /// Returns the broker's answer when it last opened the channel; nothing if it has not yet.
  [[nodiscard]] const std::optional<session::ProduceOpened>& opened() const { return opened_; }
  [[nodiscard]] const ProducerIdentity& identity() const { return identity_; }
  /// Returns the largest batch that the broker accepts, as far as is known.
  [[nodiscard]] std::size_t batch_bytes_max() const { return batch_bytes_max_; }

  /// Return the number of channels opened, of protocol violations by the broker, and of messages that it lost
  /// after confirming them.
  [[nodiscard]] std::uint64_t opens() const { return opens_; }
  [[nodiscard]] std::uint64_t violations() const { return route_.violations(); }
  [[nodiscard]] std::uint64_t lost() const { return lost_; }

  [[nodiscard]] const SessionRoute& route() const { return route_; }
  /// Returns when something is due even if the descriptor reports nothing.
  [[nodiscard]] SessionTime next_timer(SessionTime now) const {
    if (state_ != SessionState::connecting && state_ != SessionState::open) return session_never;
    if (route_.connection().pending()) return now;
    const SessionTime next = route_.next_timer(state_ == SessionState::open);
    return state_ == SessionState::open && held_until_ > now ? std::min(next, held_until_) : next;
  }

 private:
  static session::Hello hello_of(const ProducerOptions& options) {
    session::Hello hello = session_hello(options);
    hello.codecs = CodecSet(session::keeps_producer_secrets);
    return hello;
  }

  [[nodiscard]] SessionConnection& connection() { return route_.connection(); }

  // --- From one connection to the next.

  void ended(const Error& error, SessionTime now, SendReports& reports) {
    Consequence consequence = route_.ended(error, state_ == SessionState::open, now);
    batches_.stop();
    if (consequence == Consequence::doubt && identity_.id == 0) consequence = Consequence::again;
    state_ = SessionState::connecting;
    if (consequence == Consequence::fail) {
      state_ = SessionState::failed;
      give_up_all(reports);
    } else if (consequence == Consequence::doubt && batches_.doubtful() > 0 && !options_.resend_in_doubt) {
      state_ = SessionState::in_doubt;
    } else if (consequence == Consequence::doubt) {
      begin_anew();
    }
  }

  /// Continues as a producer that is new to the broker.
  void begin_anew() {
    identity_ = {};
    secret_.reset();
    numbered_ = false;
  }

  void settle_all(const Error& error, bool sent_only, SendReports& reports) {
    while (const auto range = batches_.settle_first(sent_only))
      reports.settled(range->begin, range->end, range->sent ? Fate::unknown : Fate::refused, &error);
  }

  void say_goodbye() {
    if (connection().phase() != SessionConnection::Phase::open || !route_.is_here())
      return connection().drop();
    connection().put_bytes(batches_.take_rest());
    connection().put(session::Goodbye{}, 0, 0);
    (void)connection().send(route_.now(), nullptr);
    connection().drop();
  }

  // --- Frames from the broker.

  void ask() {
    open_request_ = connection().next_request();
    connection().put(session::ProduceOpen{identity_, options_.level, topic(), secret_, target()}, 0,
                     open_request_);
  }
  [[nodiscard]] session::ProduceTarget target() const {
    return options_.delayed ? session::ProduceTarget::schedule : session::ProduceTarget::log;
  }

  Result<void> take(const SessionFrame& frame, SessionTime now, SendReports& reports) {
    using session::Op;
    switch (frame.header.op) {
      case Op::produce_opened:
        return with_body<session::ProduceOpened>(
            frame, [&](const auto& opened) { return take_opened(frame.header, opened, now, reports); });
      case Op::confirm:
        return with_body<session::Confirm>(
            frame, [&](const auto& confirm) { return take_confirm(frame.header, confirm, reports); });
      case Op::refuse:
        return with_body<session::Refuse>(
            frame, [&](const auto& refuse) { return take_refuse(frame.header, refuse, now, reports); });
      case Op::error:
        return with_body<session::ErrorAnswer>(
            frame, [&](const auto& answer) { return take_error(frame.header, answer); });
      case Op::goodbye:
        return with_body<session::Goodbye>(
            frame, [&](const auto& goodbye) { return ends_with(goodbye.code, goodbye.sentence); });
      default: return violation("sent " + std::string(rule_of(frame.header.op).name) + " to a producer");
    }
  }

  static Error violation(const std::string& what) { return SessionRoute::violation(what); }
  Result<void> ends_with(session::Code code, const std::string& sentence) {
    return route_.ends_with(code, sentence);
  }

  /// A broker that knows no schedules does not permit the byte that asks for one.
  Result<void> take_error(const session::FrameHeader& header, const session::ErrorAnswer& answer) {
    const bool is_older = options_.delayed && state_ != SessionState::open &&
                          header.request == open_request_ && answer.code == session::Code::invalid_frame;
    if (is_older)
      return ends_with(session::Code::not_supported, "this broker does not know delayed messages");
    return ends_with(answer.code, answer.sentence);
  }

  Result<void> take_opened(const session::FrameHeader& header, const session::ProduceOpened& opened,
                           SessionTime now, SendReports& reports) {
    if (!route_.asked() || state_ == SessionState::open || header.request != open_request_)
      return violation("opened a channel that was not requested");
    if (header.channel == 0) return violation("opened channel 0");
    if (identity_.id != 0 && opened.producer != identity_) return violation("opened for another producer");
    if (opened.target != target()) return violation("opened another part of the topic");
    const std::uint32_t batch_bytes_max =
        std::min(opened.batch_bytes_max, connection().welcome().frame_bytes_max);
    if (batch_bytes_max < session::batch_bytes_min) return violation("accepts no batch of any size");
    identity_ = opened.producer;
    if (opened.secret) secret_ = opened.secret;
    channel_ = header.channel;
    batch_bytes_max_ = batch_bytes_max;
    batches_.start({identity_, channel_, batch_bytes_max, options_.window_bytes_for(opened.level)});
    const std::uint64_t expected_before = opened_ ? opened_->expected : 0;
    opened_ = opened;
    held_until_ = now;
    if (!std::exchange(numbered_, true)) {
      batches_.number_from(opened.expected);
    } else {
      if (const Result<void> found = continue_from(opened.expected); !found) return found.error();
      if (opened.expected > expected_before) worked();
    }
    state_ = SessionState::open;
    ++opens_;
    route_.opened(now);
    if (opened.level == ConfirmLevel::received) confirm_before(opened.expected, reports);
    return {};
  }

  Result<void> continue_from(std::uint64_t expected) {
    const std::optional<std::uint64_t> lost = batches_.continue_from(expected);
    if (lost) {
      lost_ += *lost;
      return {};
    }
    return ends_with(session::Code::unknown_producer,
                     "it expects sequence number " + std::to_string(expected) + ", where no batch begins");
  }

  Result<void> take_confirm(const session::FrameHeader& header, const session::Confirm& confirm,
                            SendReports& reports) {
    if (state_ != SessionState::open || header.channel != channel_)
      return violation("confirmed on a channel that is not open");
    if (confirm.received > batches_.sent_end()) return violation("confirmed messages that were not sent");
    // Batches that were stored on an earlier channel have other numbers.
    if (options_.delayed && confirm.received > opened_->expected)
      batches_.stored_before(confirm.received, confirm.next_offset);
    confirm_before(opened_->level == ConfirmLevel::flushed ? confirm.flushed : confirm.received, reports);
    return {};
  }

  void confirm_before(std::uint64_t sequence, SendReports& reports) {
    if (batches_.in_midst_before(sequence)) connection().put_bytes(batches_.take_rest());
    while (const auto range = batches_.settle_before(sequence)) {
      worked();
      reports.settled(range->begin, range->end, Fate::confirmed, nullptr, range->number);
    }
  }

  Result<void> take_refuse(const session::FrameHeader& header, const session::Refuse& refuse, SessionTime now,
                           SendReports& reports) {
    if (state_ != SessionState::open || header.channel != channel_)
      return violation("refused on a channel that is not open");
    if (refuse.expected > batches_.sent_end()) return violation("expects messages that were not sent");
    const Refusal refusal = refusal_of(refuse.code, options_.retry_refused);
    if (refusal == Refusal::end) return ends_with(refuse.code, refuse.sentence);
    connection().put_bytes(batches_.take_rest());
    route_.set_last_error(error_of(refuse.code, refuse.sentence));
    if (refusal == Refusal::give_up) {
      if (refuse.expected > refuse.begin) return violation("refused messages that it has stored");
      const auto given_up = batches_.give_up(refuse.begin, refuse.end);
      if (!given_up) return violation("refused messages that were not sent");
      const Error error = last_error();
      reports.settled(given_up->begin, given_up->end, Fate::refused, &error);
    } else {
      // After the first refusal, a batch that only has to be sent again is sent immediately.
      const bool at_once = refusal == Refusal::again_at_once && !std::exchange(refused_, true);
      if (!at_once) held_until_ = now + route_.next_wait();
    }
    if (const Result<void> found = continue_from(refuse.expected); !found) return found.error();
    if (opened_->level == ConfirmLevel::received) confirm_before(refuse.expected, reports);
    return {};
  }

  /// Records that the broker has stored something, so that the next failure starts with the shortest wait.
  void worked() {
    route_.worked();
    refused_ = false;
  }

  ProducerOptions options_;
  SessionRoute route_;
  SessionBatches batches_;
  ProducerIdentity identity_;
  std::optional<session::ProducerSecret> secret_;
  std::optional<session::ProduceOpened> opened_;
  SessionState state_ = SessionState::connecting;
  SessionTime held_until_ = SessionTime::min();
  std::size_t batch_bytes_max_ = session::frame_bytes_least;
  std::uint32_t open_request_ = 0;
  std::uint32_t channel_ = 0;
  bool numbered_ = false;  // the first sequence number of this identity is known
  bool refused_ = false;   // since the broker last stored something
  std::uint64_t opens_ = 0;
  std::uint64_t lost_ = 0;
};

}  // namespace lightq::inline v1
