/// Sends messages to a topic over a session, in batches and with confirms; none is stored twice.
/// docs/session.md, "Producing". Layer: client.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <lightq/base/attributes.hpp>
#include <lightq/base/batch_builder.hpp>
#include <lightq/base/flag_while.hpp>
#include <lightq/base/reset_by_move.hpp>
#include <lightq/base/result.hpp>
#include <lightq/base/separate.hpp>
#include <lightq/base/types.hpp>
#include <lightq/detail/producer_pace.hpp>
#include <lightq/detail/session_address.hpp>
#include <lightq/detail/session_clock.hpp>
#include <lightq/detail/session_reports.hpp>
#include <lightq/detail/session_state.hpp>
#include <lightq/producer_options.hpp>
#include <lightq/producer_stats.hpp>
#include <lightq/protocol/session_producing.hpp>

namespace lightq::inline v1 {

class SessionBatches;
struct MessageLimit;

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
  static Result<Producer> open(std::string topic, SessionJoin join, ProducerOptions options = {});
  /// After a move, the producer that was moved from is closed: its calls return `closed`, and its numbers
  /// are 0. It may be assigned to and destroyed.
  Producer(Producer&&) noexcept;
  Producer& operator=(Producer&&) noexcept;
  /// Does not wait and calls no callbacks. Unconfirmed messages may be lost: call close() first.
  ~Producer();

  /// Copies one message, and returns its number; the first is 0. Does not wait while the window is open and
  /// there is memory (see the options). Errors: too_large, limit_reached or timeout (no memory), closed, and
  /// the error that ended the producer. After an error the message was not taken.
  Result<std::uint64_t> send(ByteView payload) {
    const std::size_t bytes = record_bytes(payload.size());
    if (bytes > room_ || bytes > record_bytes_max_) [[unlikely]]
      return send(payload, Attributes());
    open_->add(payload);
    room_ = room_ - bytes;
    return added();
  }
  Result<std::uint64_t> send(std::string_view payload) { return send(as_byte_view(payload)); }
  /// Sends a message, and calls `callback` when it is confirmed, refused or unknown. Errors: those of send.
  Result<std::uint64_t> send(ByteView payload, MessageCallback callback);
  Result<std::uint64_t> send(std::string_view payload, MessageCallback callback);
  /// Sends a message with a key, headers or a time, which are copied too: `send(payload, {.key = "tea"})`.
  /// Errors: those of send without attributes; also invalid_argument and too_large, see Attributes::check.
  Result<std::uint64_t> send(ByteView payload, const Attributes& attributes, MessageCallback callback = {});
  Result<std::uint64_t> send(std::string_view payload, const Attributes& attributes,
                             MessageCallback callback = {});

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
    const std::size_t left = std::exchange(room_.get(), 0) - whole;  // 0: make_room refuses a send in `write`
    this->write([&] { open_->add_in_place(bytes, std::forward<Write>(write)); });
    room_ = left;
    return added();
  }
  template <typename Write>
  Result<std::uint64_t> send_in_place(std::size_t bytes, Write&& write, const Attributes& attributes,
                                      MessageCallback callback = {}) {
    if (bytes > limits::message_bytes_max_max) return too_large(bytes);
    if (const Result<void> valid = attributes.check(); !valid) return of_topic(valid.error());
    if (const Result<void> made = make_room(bytes, attributes); !made) return made.error();
    BatchBuilder& open = *open_;
    const std::size_t before = open.size_bytes();
    const std::size_t room = std::exchange(room_.get(), 0);
    const bool watched = static_cast<bool>(callback);
    if (watched) watch(std::move(callback));
    try {
      this->write([&] {
        open.add_in_place(bytes, std::forward<Write>(write), attributes,
                          kinds_to_begin_with(bytes, attributes));
      });
    } catch (...) {
      if (watched) unwatch();
      throw;
    }
    kinds_used_ = kinds_used_ | AttributeKinds(attributes);
    room_ = open.kinds().any() ? 0 : room - std::min(room, open.size_bytes() - before);
    return added();
  }

  /// Sends everything and waits for its confirms. Errors: timeout; the refusal or loss of a message since the
  /// last such error; the error that ended the producer.
  Result<void> flush(Timeout timeout);
  /// Waits until the message with this number and all before it are settled, that is, reported as confirmed,
  /// refused or unknown. Errors: timeout, the error that ended the producer.
  Result<void> wait_settled(std::uint64_t number, Timeout timeout);
  /// Waits until the topic is open. Errors: timeout (see last_error), the error that ended the producer.
  Result<void> wait_open(Timeout timeout);

  /// Connects, reads and sends. If that changes nothing, waits for input, up to `timeout` or the next timer,
  /// and does it once more. Errors: the error that ended the producer.
  Result<void> poll(Timeout timeout);

  /// Flushes and ends the session. Gives up and reports messages that are not confirmed in time. Errors:
  /// those of flush; the text of `timeout` has their number. A second call does nothing.
  Result<void> close(Timeout timeout);

  /// Ends SessionState::in_doubt. With `resend`, sends the messages in doubt again under a new producer id,
  /// although the broker may have stored some. Otherwise gives them up as Fate::unknown. Later messages are
  /// not affected.
  void resolve(bool resend);
  /// Returns how many messages were sent and are unconfirmed: in SessionState::in_doubt, perhaps stored.
  [[nodiscard]] std::uint64_t in_doubt() const;

  /// Sets the callback for the reports of all messages that are settled from now on; see ReportCallback.
  void on_report(ReportCallback callback);

  [[nodiscard]] const std::string& topic() const;
  [[nodiscard]] SessionState state() const;
  /// Returns the reason why the last connection ended or the last batch was refused.
  [[nodiscard]] const Error& last_error() const;
  /// Returns the number of messages confirmed so far. If none was refused, these are the first ones sent.
  [[nodiscard]] std::uint64_t confirmed() const;
  /// Returns the number of messages that are not settled yet: neither confirmed, refused nor unknown.
  [[nodiscard]] std::uint64_t unconfirmed() const;
  [[nodiscard]] ProducerStats stats() const;
  /// Returns the producer id and epoch that the broker assigned; id 0 if it has assigned none yet. Another
  /// process may continue after this one with the same id and an epoch one higher.
  [[nodiscard]] const ProducerIdentity& identity() const;
  /// Returns the broker's reply when this producer last opened the topic: level, limits and offsets; nothing
  /// if it has not opened the topic yet.
  [[nodiscard]] const std::optional<session::ProduceOpened>& opened() const;

  /// Returns the connection's descriptor, or -1 if there is none now. Only wait for it; do not read or write.
  /// Every call may change it.
  [[nodiscard]] int fd() const;
  /// Returns true if poll has something to send when the descriptor becomes writable.
  [[nodiscard]] bool wants_write() const;
  /// Returns the time at which to call poll even if the descriptor reports nothing, or session_never.
  [[nodiscard]] SessionTime next_timer() const;

 private:
  struct Parts;

  Producer(std::string topic, SessionJoin join, ProducerOptions options);

  /// Returns the parts; after a move, those of a closed producer.
  [[nodiscard]] Parts& parts() const;
  [[nodiscard]] SessionBatches& batches();
  [[nodiscard]] const SessionBatches& batches() const;
  [[nodiscard]] SessionTime now() const;

  /// Sets or removes the callback of the message that is being sent.
  void watch(MessageCallback callback);
  void unwatch();

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
  void exchange(SessionTime time, bool by_the_way);

  /// Connects, reads, closes the open batch if it should leave, and sends. Then plans after how many messages
  /// to repeat it. `by_the_way`: does not read if it has read a moment ago.
  void drive(bool by_the_way = false);

  /// Returns true if the open batch should leave although it is not full.
  [[nodiscard]] bool is_ripe(SessionTime time) const;

  void roll();

  // --- Space for messages.

  [[nodiscard]] std::size_t batch_bytes() const;
  [[nodiscard]] bool takes_messages() const;
  /// Returns true if send should first wait for the window: a message taken earlier would only arrive older.
  [[nodiscard]] bool waits_for_window() const;
  /// Returns true if memory permits a batch of `bytes` besides the closed batches.
  [[nodiscard]] bool has_room_for(std::size_t bytes) const;
  /// Returns how many bytes of records the open batch still takes. A record takes at least four bytes, so the
  /// batch cannot exceed its limit of records.
  [[nodiscard]] std::size_t room_in_open() const;
  void refresh_room();

  /// Returns the kinds of a batch that begins with this message: its own and those of the last batch, or only
  /// its own if the message would be too large otherwise.
  [[nodiscard]] AttributeKinds kinds_to_begin_with(std::size_t payload_bytes,
                                                   const Attributes& attributes) const;
  /// Returns the message's bytes in the open batch, attributes included; nothing if the batch lacks its
  /// kinds.
  [[nodiscard]] std::optional<std::size_t> bytes_in_open(std::size_t payload_bytes,
                                                         const Attributes& attributes) const;

  Result<void> make_room(std::size_t payload_bytes, const Attributes& attributes);

  /// Returns the longest message, attributes included, that can be stored, as far as is known.
  [[nodiscard]] std::size_t message_bytes_max() const;

  [[nodiscard]] MessageLimit size_limit() const;
  [[nodiscard]] Error too_large(std::size_t message_bytes) const;

  // --- Waiting.

  [[nodiscard]] bool settled_all() const;
  [[nodiscard]] std::uint64_t first_unsettled() const;
  /// Returns a number that changes with every event for which a caller of poll may wait.
  [[nodiscard]] std::uint64_t changes() const;

  template <typename Done>
  Result<void> wait_flushing(Done&& done, Timeout timeout);
  template <typename Done>
  Result<void> wait_until(Done done, Timeout timeout, const char* otherwise);
  void wait_for_io(SessionTime until);

  // --- Errors.

  [[nodiscard]] Error of_topic(const Error& error) const;
  [[nodiscard]] std::string of_topic(const std::string& what) const;
  [[nodiscard]] Error inside_error() const;
  [[nodiscard]] Error no_room(ErrorCode code) const;
  [[nodiscard]] Error closed_error() const;
  /// Returns an error if the producer can send nothing more: it was closed, has failed, or is in doubt.
  [[nodiscard]] Result<void> usable() const;

  // Bytes of records that fit into the open batch without a call of make_room.
  ResetByMove<std::size_t> room_;
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
  ResetByMove<BatchBuilder*> open_;  // the batch of `parts_` that messages are packed into
  std::unique_ptr<Parts> parts_;     // null after a move: use parts()
};

}  // namespace lightq::inline v1

#if defined(LIGHTQ_WITH_DEFINITIONS)
#include <lightq/impl/producer.hpp>  // IWYU pragma: export
#endif
