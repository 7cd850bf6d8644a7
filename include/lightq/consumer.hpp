/// Receives a topic's messages over a session: groups, acknowledgements, and what is not acknowledged comes
/// again. docs/session.md, "Consuming". Layer: client.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>
#include <lightq/consumer_options.hpp>
#include <lightq/delivered.hpp>
#include <lightq/message_range.hpp>
#include <lightq/session_consume_link.hpp>

namespace lightq::inline v1 {

/// A consumer of one topic on a session. Move-only; one thread at a time; no thread of its own.
///
///     auto consumer = client.consumer("orders", {.group = "billing"}).value_or_throw();
///     for (const Delivered& order : consumer.messages(10s)) {    // until 10 s pass without one
///       handle(order.text());
///       consumer.acknowledge(order);
///     }
///     consumer.close(5s).value_or_throw();                       // the broker knows all of that
///
/// What is promised: every message is handed out until somebody of the group has acknowledged it (with
/// Acknowledgement::automatic: once at most). It comes again, perhaps to another member and behind later
/// ones, when it is rejected, is not acknowledged in time, or its consumer's connection is lost. Connections
/// that break and brokers that restart are dealt with inside: a group goes on where it stands, a place
/// without a name behind the last batch that was handed out. What is acknowledged of a lost connection's
/// messages is passed over: they come again.
///
/// Input and output happen inside calls only. Acknowledgements are gathered, and sent when receive has waited
/// a millisecond, when there are many, or when they have waited a tenth of a second and any call is made;
/// poll, flush and a receive that does not wait send them at once. A program that works on a message for long
/// keeps it for `ack_timeout`, and longer by extend, whether or not it calls anything meanwhile; what it has
/// not been given yet waits for it. In an event loop: poll, and then receive(0) until nothing comes, when
/// fd() is readable, or writable while wants_write(), and at next_timer(); all three asked anew before each
/// wait, next_timer() last.
///
/// At most `prefetch_messages` are handed out without being acknowledged: more come as these are.
class Consumer {
 public:
  using Messages = MessageRange<Consumer, Delivered>;

  /// A consumer that connects in its first calls (see wait_open). `join`: called within them whenever an
  /// address is needed. Error: invalid_argument.
  static Result<Consumer> open(std::string topic, SessionJoin join, ConsumerOptions options = {}) {
    if (const Result<void> valid = options.check(); !valid) return valid.error();
    if (!TopicName::parse(topic))
      return Error{ErrorCode::invalid_argument, "'" + topic + "' is no topic name"};
    if (!join) return Error{ErrorCode::invalid_argument, "a consumer needs a way to join its topic"};
    Consumer made(std::move(topic), std::move(join), options);
    return made;
  }
  Consumer(Consumer&&) noexcept = default;
  Consumer& operator=(Consumer&&) noexcept = default;
  /// Does not wait: what was acknowledged may not reach the broker, and then comes again. Call close() first.
  ~Consumer() = default;

  // --- Receiving. What was given before is no longer valid after one of these.

  /// The next message; nothing when none came in time (0 does not wait). Errors: closed, and what ended the
  /// consumer.
  Result<std::optional<Delivered>> receive(Timeout timeout) {
    if (is_ready()) {
      look();
    } else {
      const Result<bool> come = next_batch(timeout);
      if (!come) return come.error();
      if (!*come) return std::optional<Delivered>();
    }
    return std::optional(rest_->take());
  }
  /// The same with all messages that came together, or what receive has left of them: at least one.
  Result<std::optional<DeliveredBatch>> receive_batch(Timeout timeout) {
    if (is_ready()) {
      look();
    } else {
      const Result<bool> come = next_batch(timeout);
      if (!come) return come.error();
      if (!*come) return std::optional<DeliveredBatch>();
    }
    in_hand_ = rest_->range();
    return std::exchange(rest_, std::nullopt);
  }
  /// A range for loops, see above. Ends after `idle_timeout` without a message, when `stop` is requested
  /// (noticed within 100 ms), or at an error, which the range's result() then tells.
  [[nodiscard]] Messages messages(Timeout idle_timeout, std::stop_token stop = {}) {
    return {*this, idle_timeout, std::move(stop)};
  }
  /// Calls `handle(const Delivered&)` for each message and acknowledges it, until one of the above. Answers
  /// how many there were. Errors: closed, what ended the consumer.
  template <typename Handle>
  Result<std::uint64_t> for_each(Handle&& handle, Timeout idle_timeout, std::stop_token stop = {}) {
    std::uint64_t handled = 0;
    Messages range = messages(idle_timeout, std::move(stop));
    for (const Delivered& message : range) {
      handle(message);
      acknowledge(message);
      ++handled;
    }
    if (!range.result()) return range.result().error();
    return handled;
  }

  // --- What became of messages. Those that are not this consumer's any longer (acknowledged or rejected
  // before, delivered over a connection that is lost, too late) are passed over, so all may be repeated.

  /// Answers how many of them were this consumer's, as far as it knows: those that are missing come again, or
  /// were acknowledged before. What was acknowledged too late, and others have got, the broker tells later:
  /// see take_late.
  std::uint64_t acknowledge(OffsetRange range) {
    const bool is_slow = was_away();
    if (is_slow) [[unlikely]]
      parts_->link.look_for_end(now());
    const std::uint64_t done = parts_->link.acknowledge(range);
    if (in_hand_.begin < range.end && range.begin < in_hand_.end) {
      in_hand_.begin = std::min(range.end, in_hand_.end);
      goes_on_ = true;
    }
    look(is_slow);
    return done;
  }
  std::uint64_t acknowledge(Offset offset) { return acknowledge(OffsetRange{offset, offset + 1}); }
  std::uint64_t acknowledge(const Delivered& message) { return acknowledge(message.offset); }
  std::uint64_t acknowledge(const DeliveredBatch& batch) { return acknowledge(batch.range()); }
  /// Every message before `offset` that was given here: not what of a batch receive still has to give, which
  /// may have come again.
  std::uint64_t acknowledge_before(Offset offset) {
    const OffsetRange not_given = is_ready() ? rest_->range() : OffsetRange{offset, offset};
    const std::uint64_t done = acknowledge(OffsetRange{{0}, std::min(offset, not_given.begin)});
    return done + acknowledge(OffsetRange{not_given.end, offset});
  }
  /// Messages that were acknowledged here after their time was over and others had got them, as far as the
  /// broker has told: all of them after close(). Since this was asked last; 4,096 ranges at most are kept.
  std::vector<OffsetRange> take_late() { return parts_->link.take_late(); }

  /// They are to be handed out again, to any member of the group, not before `delay` (at most 49 days) has
  /// passed.
  void reject(OffsetRange range, Timeout delay = Timeout(0)) {
    parts_->link.reject(range, milliseconds(delay));
    look();
  }
  void reject(Offset offset, Timeout delay = Timeout(0)) { reject(OffsetRange{offset, offset + 1}, delay); }
  /// This consumer is still at work: they do not come again for as long as `time`, from now. Sent at once.
  void extend(OffsetRange range, Timeout time) {
    parts_->link.extend(range, milliseconds(time));
    parts_->link.transmit(now(), true);
  }
  void extend(Offset offset, Timeout time) { extend(OffsetRange{offset, offset + 1}, time); }

  // --- Where it stands.

  /// The group, or the place of this consumer's own, goes on there (see From); answers the offset. What came
  /// and is not acknowledged is forgotten, of all the group's members. Errors: timeout, the broker's, closed
  /// (the connection ended meanwhile: whether it happened is not known), what ended the consumer.
  Result<Offset> seek(const session::Place& to, Timeout timeout) {
    const SessionTime deadline = session_deadline(now(), timeout);
    const auto may_ask = [this] { return state() == SessionState::open && !parts_->link.is_seeking(); };
    if (const Result<void> ready = wait_until(may_ask, deadline, "not open"); !ready) return ready.error();
    rest_.reset();
    parts_->link.seek(to);
    const auto is_answered = [this] { return !parts_->link.is_seeking(); };
    if (const Result<void> done = wait_until(is_answered, deadline, "no answer to seek"); !done)
      return done.error();
    if (auto sought = parts_->link.take_sought()) return *std::move(sought);
    return Error{ErrorCode::closed, of_topic("the connection ended before the answer to seek; last error: " +
                                             last_error().text())};
  }
  /// Asks for no more messages until `resume`; those that are on their way still come.
  void pause() { parts_->link.pause(true); }
  void resume() {
    parts_->link.pause(false);
    parts_->link.transmit(now(), true);
  }
  /// Everything before this was acknowledged when the topic was opened last; nothing: it was not yet. Where a
  /// group stands now is in the topic's stats.
  [[nodiscard]] std::optional<Offset> committed() const {
    if (!opened()) return std::nullopt;
    return Offset{opened()->committed};
  }

  // --- Input and output.

  /// Does what there is to do, without waiting. Errors: closed, what ended the consumer.
  Result<void> poll() {
    drive();
    return usable();
  }
  /// Whether receive has a message at hand.
  [[nodiscard]] bool is_ready() const { return rest_ && !rest_->empty(); }
  /// Waits until the topic is open. Errors: timeout (last_error says what is wrong), what ended the consumer.
  Result<void> wait_open(Timeout timeout) {
    return wait_until([this] { return connected(); }, session_deadline(now(), timeout), "not open");
  }
  /// Sends what was acknowledged so far, waiting until the system has taken it. Whether the broker has is
  /// known after close(). Errors: timeout, closed (there is no connection), what ended the consumer.
  Result<void> flush(Timeout timeout) {
    if (const Result<void> able = usable(); !able) return able;
    const std::uint64_t opens = stats().opens;
    const auto is_over = [&] { return !connected() || stats().opens != opens || parts_->link.is_all_said(); };
    if (const Result<void> done = wait_until(is_over, session_deadline(now(), timeout), "not sent"); !done)
      return done;
    if (connected() && stats().opens == opens) return {};
    return lost_error();
  }
  /// Tells the broker what was acknowledged, waits for its answer, and ends the session. What is not
  /// acknowledged goes to others of the group. Errors: timeout (also where messages were acknowledged too
  /// late, see take_late), closed (the connection was lost before the answer); the consumer is closed all the
  /// same. A second call does nothing.
  Result<void> close(Timeout timeout) {
    if (state() == SessionState::closed) return {};
    rest_.reset();
    Result<void> done;
    if (connected()) {
      parts_->link.begin_close();
      const auto is_over = [this] { return !connected() || !parts_->link.is_closing(); };
      done = wait_until(is_over, session_deadline(now(), timeout), "the broker has not answered");
      if (done && !connected()) done = lost_error();
    }
    parts_->link.close();
    if (done && stats().late > 0) return late_error();
    return done;
  }
  /// Whether it was closed.
  [[nodiscard]] bool finished() const { return state() == SessionState::closed; }

  [[nodiscard]] const std::string& topic() const { return parts_->link.topic(); }
  [[nodiscard]] SessionState state() const { return parts_->link.state(); }
  [[nodiscard]] bool connected() const { return state() == SessionState::open; }
  /// Why the last connection or attempt ended.
  [[nodiscard]] const Error& last_error() const { return parts_->link.last_error(); }
  /// Messages handed out here, over the present connection, and neither acknowledged nor rejected.
  [[nodiscard]] std::uint64_t unacknowledged() const { return parts_->link.unacknowledged(); }
  [[nodiscard]] ConsumerStats stats() const { return parts_->link.stats(); }
  /// What the broker said when it opened the topic last: offsets, and the incarnation of the log that they
  /// speak of; nothing: it has not yet.
  [[nodiscard]] const std::optional<session::ConsumeOpened>& opened() const { return parts_->link.opened(); }

  /// The connection's descriptor, to be waited for and for nothing else; -1: there is none now. May change in
  /// every call.
  [[nodiscard]] int fd() const { return parts_->link.fd(); }
  /// Whether poll has something to do when the descriptor is writable.
  [[nodiscard]] bool wants_write() const { return parts_->link.wants_write(); }
  /// When poll has something to do though the descriptor tells nothing; session_never: not at all.
  [[nodiscard]] SessionTime next_timer() const { return parts_->link.next_timer(now()); }

 private:
  struct Parts {
    Parts(std::string topic, SessionJoin join, const ConsumerOptions& options)
        : clock(options.clock), link(std::move(topic), std::move(join), options) {}
    SessionClock clock;
    SessionConsumeLink link;
  };
  // How many calls at most go by before one looks whether something is to be sent, while they follow each
  // other quickly; else each one looks.
  static constexpr std::uint32_t look_after_max = 16;
  static constexpr Timeout quick{5};
  static constexpr Timeout slow{100};

  Consumer(std::string topic, SessionJoin join, const ConsumerOptions& options)
      : parts_(std::make_unique<Parts>(std::move(topic), std::move(join), options)) {}

  [[nodiscard]] SessionTime now() const { return parts_->clock.now(); }
  static std::uint32_t milliseconds(Timeout time) {
    return static_cast<std::uint32_t>(std::clamp<Timeout::rep>(time.count(), 0, UINT32_MAX));
  }

  /// Whether the program has not called for a while.
  [[nodiscard]] bool was_away() const { return parts_->clock.coarse_now() >= look_by_; }
  void look() { look(was_away()); }
  void look(bool at_once) {
    if (--look_after_ == 0 || at_once) [[unlikely]]
      send_what_is_due();
  }
  /// A program that has not called for a while may not call again for long: nothing waits for more then.
  [[gnu::noinline]] void send_what_is_due() {
    const SessionTime time = now();
    keep_what_waits(time);
    parts_->link.transmit(time, time >= look_by_);
    look_after_ = time - looked_ < quick ? look_after_max : 1;
    looked_ = time;
    look_by_ = time + slow;
  }

  /// Connects, reads up to the next batch, and sends everything.
  void drive() {
    const SessionTime time = now();
    receive_from(time);
    keep_what_waits(time);
    parts_->link.transmit(time, true);
  }
  void receive_from(SessionTime time) {
    SessionConsumeLink& link = parts_->link;
    const bool had_one = link.batch().has_value();
    link.receive(time);
    if (!had_one && link.batch()) rest_ = link.batch();
  }
  /// What was not given yet; of a batch that was given whole, what lies behind the last acknowledgement,
  /// while there are such.
  void keep_what_waits(SessionTime time) {
    if (is_ready()) return parts_->link.keep(rest_->range(), time);
    if (goes_on_) parts_->link.keep(in_hand_, time);
    goes_on_ = false;
  }

  /// The former one is over. False: none came in time.
  [[gnu::noinline]] Result<bool> next_batch(Timeout timeout) {
    rest_.reset();
    in_hand_ = {};
    parts_->link.release();
    SessionTime time = now();
    const SessionTime deadline = session_deadline(time, timeout);
    while (true) {
      receive_from(time);
      keep_what_waits(time);
      const bool is_last = timeout.count() <= 0 || time >= deadline;
      parts_->link.transmit(time, !rest_ && (is_last || time >= parts_->link.gathers_until(time)));
      if (rest_) {
        look_by_ = time + slow;
        return true;
      }
      if (const Result<void> able = usable(); !able) return able.error();
      if (is_last) return false;
      wait_for_io(parts_->link.has_news() ? std::min(deadline, parts_->link.gathers_until(time)) : deadline);
      time = now();
    }
  }

  template <typename Done>
  Result<void> wait_until(Done done, SessionTime deadline, const char* otherwise) {
    while (true) {
      drive();
      if (done()) return {};
      if (const Result<void> able = usable(); !able) return able;
      if (now() >= deadline) {
        return Error{ErrorCode::timeout,
                     of_topic(std::string(otherwise) + " in time; last error: " + last_error().text())};
      }
      wait_for_io(deadline);
    }
  }
  /// What is not read meanwhile is not waited for.
  void wait_for_io(SessionTime until) const {
    parts_->clock.wait(fd(), parts_->link.wait_events(), std::min(until, next_timer()));
  }

  [[nodiscard]] std::string of_topic(const std::string& what) const {
    return "topic '" + topic() + "': " + what;
  }
  [[nodiscard]] Error late_error() const {
    return {ErrorCode::timeout,
            of_topic(std::to_string(stats().late) + " messages were acknowledged after their " +
                     std::to_string(opened()->ack_timeout_ms) +
                     " ms to acknowledge were over, and others have got them again")};
  }
  [[nodiscard]] Error lost_error() const {
    return {ErrorCode::closed, of_topic("the connection was lost before the broker knew all that was "
                                        "acknowledged, which comes again; last error: " +
                                        last_error().text())};
  }
  /// Whether there is any use in going on.
  [[nodiscard]] Result<void> usable() const {
    if (state() == SessionState::failed) return last_error();
    if (state() == SessionState::closed) return Error{ErrorCode::closed, of_topic("the consumer is closed")};
    return {};
  }

  std::optional<DeliveredBatch> rest_;  // of the link's batch: what was not given yet
  OffsetRange in_hand_;                 // of a batch that was given whole: behind what is acknowledged
  bool goes_on_ = false;                // something of in_hand_ was acknowledged since the last look
  std::uint32_t look_after_ = 1;        // calls
  SessionTime looked_;
  SessionTime look_by_ = session_never;  // whatever look_after_ says
  std::unique_ptr<Parts> parts_;
};

}  // namespace lightq::inline v1
