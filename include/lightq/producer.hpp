/// Sends messages to a topic over a session, in batches and with confirms; none is stored twice.
/// docs/session.md, "Producing". Layer: client.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <lightq/base/attributes.hpp>
#include <lightq/base/flag_while.hpp>
#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>
#include <lightq/message_limit.hpp>
#include <lightq/producer_options.hpp>
#include <lightq/producer_pace.hpp>
#include <lightq/producer_stats.hpp>
#include <lightq/session_produce_link.hpp>
#include <lightq/session_reports.hpp>

namespace lightq::inline v1 {

/// A producer of one topic on a session. Move-only; one thread at a time; it has no thread of its own.
///
///     auto producer = Producer::open("orders", join).value_or_throw();
///     producer.on_report([](const SendReport& report) { … });      // optional
///     for (const auto& order : orders) producer.send(order).value_or_throw();
///     producer.flush(Timeout(5000)).value_or_throw();              // all of them are stored
///     producer.close(Timeout(1000)).value_or_throw();
///
/// The broker stores messages in the order they were sent, each at most once. The producer reports each
/// message once, as confirmed, refused or unknown. It keeps unconfirmed messages and sends them again when a
/// connection breaks, the broker restarts, or a refusal is temporary.
///
/// The producer reads and sends inside calls only. send reads confirms after some messages, at most 64; poll
/// and flush always do. After sending, a program that does something else must call poll (or flush) at least
/// once per heartbeat. A batch that waits for a confirm before it is sent also waits for such a call.
///
/// In an event loop, call poll when fd() is readable, when it is writable and wants_write() is true, and at
/// next_timer(). Read all three again before each wait, next_timer() last.
///
/// A producer that sends much without ever waiting yields the processor (sched_yield) in its calls, at most
/// about three times a millisecond.
class Producer {
 public:
  /// Makes a producer, which connects in its first calls (see wait_open). Its calls may call `join` for an
  /// address. Error: invalid_argument.
  static Result<Producer> open(std::string topic, SessionJoin join, ProducerOptions options = {}) {
    if (const Result<void> valid = options.check(); !valid) return valid.error();
    if (!TopicName::parse(topic))
      return Error{ErrorCode::invalid_argument, "'" + topic + "' is no topic name"};
    if (!join) return Error{ErrorCode::invalid_argument, "a producer needs a way to join its topic"};
    Producer made(std::move(topic), std::move(join), std::move(options));
    return made;
  }
  Producer(Producer&&) noexcept = default;
  Producer& operator=(Producer&&) noexcept = default;
  /// Does not wait and calls no callbacks. Unconfirmed messages may be lost: call close() first.
  ~Producer() = default;

  /// Copies one message, and returns its number; the first is 0. Does not wait while the window is open and
  /// there is memory (see the options). Errors: too_large, limit_reached or timeout (no memory), closed, and
  /// the error that ended the producer. After an error the message was not taken.
  Result<std::uint64_t> send(ByteView payload) {
    const std::size_t bytes = record_bytes(payload.size());
    if (bytes > room_ || bytes > record_bytes_max_) [[unlikely]]
      return send(payload, Attributes());
    batches().open().add(payload);
    room_ -= bytes;
    return added();
  }
  Result<std::uint64_t> send(std::string_view payload) { return send(as_byte_view(payload)); }
  /// Sends a message, and calls `callback` when it is confirmed, refused or unknown. Errors: those of send.
  Result<std::uint64_t> send(ByteView payload, MessageCallback callback) {
    return send(payload, Attributes(), std::move(callback));
  }
  Result<std::uint64_t> send(std::string_view payload, MessageCallback callback) {
    return send(as_byte_view(payload), std::move(callback));
  }
  /// Sends a message with a key, headers or a time, which are copied too: `send(payload, {.key = "tea"})`.
  /// Errors: those of send without attributes; also invalid_argument and too_large, see Attributes::check.
  Result<std::uint64_t> send(ByteView payload, const Attributes& attributes, MessageCallback callback = {}) {
    return send_in_place(payload.size(), BatchBuilder::CopyOf{payload}, attributes, std::move(callback));
  }
  Result<std::uint64_t> send(std::string_view payload, const Attributes& attributes,
                             MessageCallback callback = {}) {
    return send(as_byte_view(payload), attributes, std::move(callback));
  }

  /// Sends a message of `bytes` that `write(std::span<std::byte>)` writes directly into the send buffer,
  /// which saves a copy. Calls `write` once. It must write the whole span (the old content is undefined) and
  /// not keep it. It must not use, move or destroy the producer: calls that send or wait fail there with
  /// invalid_argument. If `write` throws, this call throws too, and the message was not taken. If this call
  /// fails, it has not called `write`. Errors: those of send.
  template <typename Write>
  Result<std::uint64_t> send_in_place(std::size_t bytes, Write&& write) {
    if (bytes > limits::message_bytes_max_max) return too_large(bytes);
    const std::size_t whole = record_bytes(bytes);
    if (whole > room_ || whole > record_bytes_max_) [[unlikely]]
      return send_in_place(bytes, std::forward<Write>(write), Attributes());
    const std::size_t left = std::exchange(room_, 0) - whole;  // 0: make_room refuses a send in `write`
    this->write([&] { batches().open().add_in_place(bytes, std::forward<Write>(write)); });
    room_ = left;
    return added();
  }
  template <typename Write>
  Result<std::uint64_t> send_in_place(std::size_t bytes, Write&& write, const Attributes& attributes,
                                      MessageCallback callback = {}) {
    if (bytes > limits::message_bytes_max_max) return too_large(bytes);
    if (const Result<void> valid = attributes.check(); !valid) return of_topic(valid.error());
    if (const Result<void> made = make_room(bytes, attributes); !made) return made.error();
    BatchBuilder& open = batches().open();
    const std::size_t before = open.size_bytes();
    const std::size_t room = std::exchange(room_, 0);
    const bool watched = static_cast<bool>(callback);
    if (watched) parts_->reports.watch(sent_, std::move(callback));
    try {
      this->write([&] {
        open.add_in_place(bytes, std::forward<Write>(write), attributes,
                          kinds_to_begin_with(bytes, attributes));
      });
    } catch (...) {
      if (watched) parts_->reports.unwatch();
      throw;
    }
    kinds_used_ = kinds_used_ | AttributeKinds(attributes);
    room_ = open.kinds().any() ? 0 : room - std::min(room, open.size_bytes() - before);
    return added();
  }

  /// Sends everything and waits for its confirms. Errors: timeout; the refusal or loss of a message since the
  /// last such error; the error that ended the producer.
  Result<void> flush(Timeout timeout) {
    if (inside_) return inside_error();
    const Result<void> waited = wait_flushing([this] { return settled_all(); }, timeout);
    if (std::optional<Error> failure = parts_->reports.take_failure()) return *std::move(failure);
    return waited;
  }
  /// Waits until the message with this number and all before it are settled, that is, reported as confirmed,
  /// refused or unknown. Errors: timeout, the error that ended the producer.
  Result<void> wait_settled(std::uint64_t number, Timeout timeout) {
    if (inside_) return inside_error();
    return wait_flushing([this, number] { return first_unsettled() > number; }, timeout);
  }
  /// Waits until the topic is open. Errors: timeout (see last_error), the error that ended the producer.
  Result<void> wait_open(Timeout timeout) {
    return wait_until([this] { return state() == SessionState::open; }, timeout, "not open");
  }

  /// Connects, reads and sends. If that changes nothing, waits for input, up to `timeout` or the next timer,
  /// and does it once more. Errors: the error that ended the producer.
  Result<void> poll(Timeout timeout) {
    if (writing_) return inside_error();
    const std::uint64_t before = changes();
    drive();
    if (timeout.count() > 0 && changes() == before && usable()) {
      wait_for_io(session_deadline(now(), timeout));
      drive();
    }
    return usable();
  }

  /// Flushes and ends the session. Gives up and reports messages that are not confirmed in time. Errors:
  /// those of flush; the text of `timeout` has their number. A second call does nothing.
  Result<void> close(Timeout timeout) {
    if (state() == SessionState::closed) return {};
    if (inside_) return inside_error();
    Result<void> flushed = flush(timeout);
    {
      const FlagWhile inside(inside_);
      if (!batches().open().empty()) roll();
      parts_->link.close(parts_->reports);
      (void)parts_->reports.take_failure();
    }
    room_ = 0;
    parts_->reports.rethrow();
    return flushed;
  }

  /// Ends SessionState::in_doubt. With `resend`, sends the messages in doubt again under a new producer id,
  /// although the broker may have stored some. Otherwise gives them up as Fate::unknown. Later messages are
  /// not affected.
  void resolve(bool resend) {
    if (inside_) return;
    {
      const FlagWhile inside(inside_);
      parts_->link.resolve(resend, parts_->reports);
    }
    refresh_room();
    parts_->reports.rethrow();
  }
  /// Returns how many messages were sent and are unconfirmed: in SessionState::in_doubt, perhaps stored.
  [[nodiscard]] std::uint64_t in_doubt() const { return batches().doubtful(); }

  /// Sets the callback for the reports of all messages that are settled from now on; see ReportCallback.
  void on_report(ReportCallback callback) { parts_->reports.on_report(std::move(callback)); }

  [[nodiscard]] const std::string& topic() const { return parts_->link.topic(); }
  [[nodiscard]] SessionState state() const { return parts_->link.state(); }
  /// Returns the reason why the last connection ended or the last batch was refused.
  [[nodiscard]] const Error& last_error() const { return parts_->link.last_error(); }
  /// Returns the number of messages confirmed so far. If none was refused, these are the first ones sent.
  [[nodiscard]] std::uint64_t confirmed() const { return parts_->reports.count(Fate::confirmed); }
  /// Returns the number of messages that are not settled yet: neither confirmed, refused nor unknown.
  [[nodiscard]] std::uint64_t unconfirmed() const { return sent_ - parts_->reports.count(); }
  [[nodiscard]] ProducerStats stats() const {
    const SendReports& told = parts_->reports;
    const SessionProduceLink& link = parts_->link;
    return {sent_,
            told.count(Fate::confirmed),
            told.count(Fate::refused),
            told.count(Fate::unknown),
            link.lost(),
            link.opens(),
            link.violations()};
  }
  /// Returns the producer id and epoch that the broker assigned; id 0 if it has assigned none yet. Another
  /// process may continue after this one with the same id and an epoch one higher.
  [[nodiscard]] const ProducerIdentity& identity() const { return parts_->link.identity(); }
  /// Returns the broker's reply when this producer last opened the topic: level, limits and offsets; nothing
  /// if it has not opened the topic yet.
  [[nodiscard]] const std::optional<session::ProduceOpened>& opened() const { return parts_->link.opened(); }

  /// Returns the connection's descriptor, or -1 if there is none now. Only wait for it; do not read or write.
  /// Every call may change it.
  [[nodiscard]] int fd() const { return parts_->link.fd(); }
  /// Returns true if poll has something to send when the descriptor becomes writable.
  [[nodiscard]] bool wants_write() const { return parts_->link.wants_write(); }
  /// Returns the time at which to call poll even if the descriptor reports nothing, or session_never.
  [[nodiscard]] SessionTime next_timer() const {
    const SessionTime time = now();
    const SessionTime of_link = parts_->link.next_timer(time);
    const bool lingers = parts_->link.may_send(time) && batches().all_sent() && !batches().open().empty();
    return lingers ? std::min(of_link, linger_ends_) : of_link;
  }

 private:
  struct Parts {
    Parts(std::string topic, SessionJoin join, ProducerOptions given)
        : options(std::move(given)), clock(options.clock), link(std::move(topic), std::move(join), options) {}
    ProducerOptions options;
    SessionClock clock;
    SendReports reports;
    SessionProduceLink link;
  };

  Producer(std::string topic, SessionJoin join, ProducerOptions options)
      : parts_(std::make_unique<Parts>(std::move(topic), std::move(join), std::move(options))) {}

  [[nodiscard]] SessionBatches& batches() { return parts_->link.batches(); }
  [[nodiscard]] const SessionBatches& batches() const { return parts_->link.batches(); }
  [[nodiscard]] SessionTime now() const { return parts_->clock.now(); }

  std::uint64_t added() {
    const std::uint64_t number = sent_++;
    if (pace_.message_taken()) drive(true);
    return number;
  }

  /// Calls `add`, which writes one message. Meanwhile the program may not use this producer.
  template <typename Add>
  void write(Add&& add) {
    const FlagWhile inside(inside_);
    const FlagWhile writing(writing_);
    add();
  }

  /// Reads confirms, closes the open batch if it should leave, and sends. Callbacks may run meanwhile.
  void exchange(SessionTime time, bool by_the_way) {
    const FlagWhile inside(inside_);
    if (!by_the_way || state() != SessionState::open || pace_.may_read(time)) {
      pace_.reads(time);
      parts_->link.receive(time, parts_->reports);
    }
    if (is_ripe(time)) roll();
    parts_->link.transmit(time, parts_->reports);
    if (state() == SessionState::failed && !batches().open().empty()) {
      roll();
      parts_->link.give_up_all(parts_->reports);
    }
  }

  /// Connects, reads, closes the open batch if it should leave, and sends. Then plans after how many messages
  /// to repeat it. `by_the_way`: does not read if it has read a moment ago.
  void drive(bool by_the_way = false) {
    pace_.look();
    if (inside_) return;
    const SessionTime time = now();
    exchange(time, by_the_way);
    pace_.give_way(time);
    const BatchBuilder& open = batches().open();
    pace_.look_again_behind(open.record_count());
    if (!open.empty() && linger_ends_ == session_never && parts_->options.linger.count() > 0)
      linger_ends_ = session_deadline(time, parts_->options.linger);
    refresh_room();
    parts_->reports.rethrow();
  }

  /// Returns true if the open batch should leave although it is not full.
  [[nodiscard]] bool is_ripe(SessionTime time) const {
    const SessionBatches& all = batches();
    if (all.open().empty() || !all.all_sent() || !parts_->link.may_send(time)) return false;
    return flushing_ || all.in_flight() < parts_->options.eager_batches || time >= linger_ends_;
  }

  void roll() {
    const auto& opened = parts_->link.opened();
    const bool at_disk = opened && opened->level == ConfirmLevel::flushed;
    pace_.closed(batches().open().size_bytes());
    batches().roll(sent_, flushing_ && at_disk, parts_->options.compression);
    linger_ends_ = session_never;
    kinds_of_last_ = std::exchange(kinds_used_, {});
  }

  // --- Space for messages.

  [[nodiscard]] std::size_t batch_bytes() const {
    return std::min(parts_->options.batch_bytes, parts_->link.batch_bytes_max());
  }
  [[nodiscard]] bool takes_messages() const {
    return state() == SessionState::connecting || state() == SessionState::open;
  }
  /// Returns true if send should first wait for the window: a message taken earlier would only arrive older.
  [[nodiscard]] bool waits_for_window() const {
    return !inside_ && parts_->options.send_timeout.count() > 0 && state() == SessionState::open &&
           !batches().all_sent();
  }
  /// Returns true if memory permits a batch of `bytes` besides the closed batches.
  [[nodiscard]] bool has_room_for(std::size_t bytes) const {
    const SessionBatches& all = batches();
    if (waits_for_window()) return false;
    return all.count() == 0 || all.held_bytes() + bytes <= parts_->options.memory_bytes_max;
  }
  /// Returns how many bytes of records the open batch still takes. A record takes at least four bytes, so the
  /// batch cannot exceed its limit of records.
  [[nodiscard]] std::size_t room_in_open() const {
    const BatchBuilder& open = batches().open();
    const std::size_t size = open.size_bytes();
    const bool any =
        takes_messages() && size < batch_bytes() && (!open.empty() || has_room_for(batch_bytes()));
    const std::size_t records = limits::batch_records_max - open.record_count();
    return any ? std::min(batch_bytes() - size, records * record_bytes(0)) : 0;
  }
  void refresh_room() {
    // If the batch has attributes, make_room checks each message.
    const BatchBuilder& open = batches().open();
    const AttributeKinds kinds = open.empty() ? kinds_of_last_ : open.kinds();
    room_ = kinds.any() ? 0 : room_in_open();
    record_bytes_max_ = record_bytes(message_bytes_max());
  }

  /// Returns the kinds of a batch that begins with this message: its own and those of the last batch, or only
  /// its own if the message would be too large otherwise.
  [[nodiscard]] AttributeKinds kinds_to_begin_with(std::size_t payload_bytes,
                                                   const Attributes& attributes) const {
    const AttributeKinds own(attributes);
    const AttributeKinds both = own | kinds_of_last_;
    const std::size_t bytes = attributes_bytes(both, attributes) + payload_bytes;
    return record_bytes(bytes) <= record_bytes_max_ ? both : own;
  }
  /// Returns the message's bytes in the open batch, attributes included; nothing if the batch lacks its
  /// kinds.
  [[nodiscard]] std::optional<std::size_t> bytes_in_open(std::size_t payload_bytes,
                                                         const Attributes& attributes) const {
    const BatchBuilder& open = batches().open();
    const AttributeKinds own(attributes);
    if (open.empty())
      return attributes_bytes(kinds_to_begin_with(payload_bytes, attributes), attributes) + payload_bytes;
    if (!open.kinds().has_all_of(own)) return std::nullopt;
    return attributes_bytes(open.kinds(), attributes) + payload_bytes;
  }

  [[gnu::noinline]] Result<void> make_room(std::size_t payload_bytes, const Attributes& attributes) {
    const Timeout patience = parts_->options.send_timeout;
    const std::size_t own_bytes = attributes_bytes(AttributeKinds(attributes), attributes) + payload_bytes;
    SessionTime deadline = SessionTime::min();
    if (writing_) return inside_error();
    while (true) {
      if (const Result<void> able = usable(); !able) return able.error();
      refresh_room();
      if (record_bytes(own_bytes) > record_bytes_max_) return too_large(own_bytes);
      const std::optional<std::size_t> bytes = bytes_in_open(payload_bytes, attributes);
      if (bytes && record_bytes(*bytes) <= std::min(room_in_open(), record_bytes_max_)) return {};
      if (!batches().open().empty()) {
        kinds_used_ = kinds_used_ | AttributeKinds(attributes);
        roll();
        drive();
        continue;
      }
      if (has_room_for(std::max(batch_bytes(), batch_layout::header_bytes + record_bytes(own_bytes)))) {
        room_ = record_bytes(own_bytes);
        return {};
      }
      if (inside_ || patience.count() == 0) return no_room(ErrorCode::limit_reached);
      if (deadline == SessionTime::min()) deadline = session_deadline(now(), patience);
      if (now() >= deadline) return no_room(ErrorCode::timeout);
      wait_for_io(deadline);
      drive();
    }
  }

  /// Returns the longest message, attributes included, that can be stored, as far as is known.
  [[nodiscard]] std::size_t message_bytes_max() const { return size_limit().bytes; }

  [[nodiscard]] MessageLimit size_limit() const {
    return MessageLimit::of(parts_->options, parts_->link.opened(), parts_->link.batch_bytes_max());
  }
  [[nodiscard]] Error too_large(std::size_t message_bytes) const {
    return of_topic(size_limit().exceeded_by(message_bytes));
  }

  // --- Waiting.

  [[nodiscard]] bool settled_all() const { return batches().open().empty() && batches().count() == 0; }
  [[nodiscard]] std::uint64_t first_unsettled() const {
    return batches().first_message().value_or(sent_ - batches().open().record_count());
  }
  /// Returns a number that changes with every event for which a caller of poll may wait.
  [[nodiscard]] std::uint64_t changes() const {
    return sent_ - unconfirmed() + parts_->link.opens() + static_cast<std::uint64_t>(state());
  }

  template <typename Done>
  Result<void> wait_flushing(Done&& done, Timeout timeout) {
    const FlagWhile flushing(flushing_);
    return wait_until(done, timeout, "not confirmed");
  }
  template <typename Done>
  Result<void> wait_until(Done done, Timeout timeout, const char* otherwise) {
    if (inside_) return inside_error();
    const SessionTime deadline = session_deadline(now(), timeout);
    while (true) {
      drive();
      if (done()) return {};
      if (const Result<void> able = usable(); !able) return able.error();
      if (now() >= deadline) {
        return Error{ErrorCode::timeout,
                     of_topic(otherwise) + " within " + std::to_string(timeout.count()) + " ms; " +
                         std::to_string(unconfirmed()) +
                         " messages are not confirmed; last error: " + last_error().text()};
      }
      wait_for_io(deadline);
    }
  }
  void wait_for_io(SessionTime until) {
    const auto events = static_cast<short>(wants_write() ? POLLIN | POLLOUT : POLLIN);
    parts_->clock.wait(fd(), events, std::min(until, next_timer()));
    pace_.waited();
  }

  // --- Errors.

  [[nodiscard]] Error of_topic(const Error& error) const { return {error.code, of_topic(error.message)}; }
  [[nodiscard]] std::string of_topic(const std::string& what) const {
    return "topic '" + topic() + "': " + what;
  }
  [[nodiscard]] Error inside_error() const {
    return {ErrorCode::invalid_argument,
            of_topic(writing_ ? "who writes a message may not use its producer" : "a callback may not wait")};
  }
  [[nodiscard]] Error no_room(ErrorCode code) const {
    return {code, of_topic("no room for another message: " + std::to_string(unconfirmed()) +
                           " are not confirmed; last error: " + last_error().text())};
  }
  /// Returns an error if the producer can send nothing more: it was closed, has failed, or is in doubt.
  [[nodiscard]] Result<void> usable() const {
    switch (state()) {
      case SessionState::connecting:
      case SessionState::open: return {};
      case SessionState::closed: return Error{ErrorCode::closed, of_topic("the producer is closed")};
      case SessionState::failed: return last_error();
      case SessionState::in_doubt: break;
    }
    return Error{ErrorCode::closed,
                 of_topic("the broker does not know this producer any more; " + std::to_string(in_doubt()) +
                          " messages may be stored or not: see Producer::resolve")};
  }

  std::size_t room_ = 0;  // bytes of records that fit into the open batch without a call of make_room
  std::size_t record_bytes_max_ = 0;
  // A batch begins with the last one's attribute kinds, so alternating kinds do not end each other's batch.
  AttributeKinds kinds_used_;     // of the messages since the last roll
  AttributeKinds kinds_of_last_;  // of the batch that was closed last
  std::uint64_t sent_ = 0;
  ProducerPace pace_;
  bool flushing_ = false;
  bool inside_ = false;   // in drive or a callback: calls that wait are refused
  bool writing_ = false;  // in send_in_place, while its message is being written
  SessionTime linger_ends_ = session_never;
  std::unique_ptr<Parts> parts_;
};

}  // namespace lightq::inline v1
