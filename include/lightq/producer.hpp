/// Sends messages to a topic over a session, in batches and with confirms; none is stored twice.
/// docs/session.md, "Producing". Layer: client.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <lightq/base/attributes.hpp>
#include <lightq/base/batch_builder.hpp>
#include <lightq/base/result.hpp>
#include <lightq/base/separate.hpp>
#include <lightq/base/types.hpp>
#include <lightq/detail/calls/producer_driver.hpp>
#include <lightq/detail/session_address.hpp>
#include <lightq/detail/session_clock.hpp>
#include <lightq/detail/session_reports.hpp>
#include <lightq/detail/session_state.hpp>
#include <lightq/producer_options.hpp>
#include <lightq/producer_stats.hpp>
#include <lightq/protocol/session_producing.hpp>

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
  static Result<Producer> open(std::string topic, SessionJoin join, ProducerOptions options = {});
  /// After a move, the producer that was moved from is closed: its calls return `closed`, and its numbers
  /// are 0. It may be assigned to and destroyed.
  Producer(Producer&&) noexcept = default;
  Producer& operator=(Producer&&) noexcept = default;
  /// Does not wait and calls no callbacks. Unconfirmed messages may be lost: call close() first.
  ~Producer() = default;

  /// Copies one message, and returns its number; the first is 0. Does not wait while the window is open and
  /// there is memory (see the options). Errors: too_large, limit_reached or timeout (no memory), closed, and
  /// the error that ended the producer. After an error the message was not taken.
  Result<std::uint64_t> send(ByteView payload) {
    const std::size_t bytes = record_bytes(payload.size());
    if (!driver_.packing().takes(bytes)) [[unlikely]]
      return send(payload, Attributes());
    return driver_.packed(driver_.packing().add(payload, bytes));
  }
  Result<std::uint64_t> send(std::string_view payload) { return send(as_byte_view(payload)); }
  /// Sends a message, and calls `callback` when it is confirmed, refused or unknown. Errors: those of send.
  Result<std::uint64_t> send(ByteView payload, MessageCallback callback);
  Result<std::uint64_t> send(std::string_view payload, MessageCallback callback);
  /// Sends a message with a key, headers, a time, an id or a delay, which are copied too: `send(payload,
  /// {.key = "tea"})`. A delay or due time needs ProducerOptions::delayed: `send(payload, {.delay = 10min})`.
  /// Errors: those of send without attributes; also invalid_argument and too_large, see
  /// Attributes::check_for_producer.
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
    const std::size_t whole = record_bytes(bytes);
    if (bytes > limits::message_bytes_max_max || !driver_.packing().takes(whole)) [[unlikely]]
      return send_in_place(bytes, std::forward<Write>(write), Attributes());
    return driver_.packed(driver_.packing().add_in_place(bytes, whole, std::forward<Write>(write)));
  }
  template <typename Write>
  Result<std::uint64_t> send_in_place(std::size_t bytes, Write&& write, const Attributes& attributes,
                                      MessageCallback callback = {}) {
    if (const Result<void> made = driver_.make_room(bytes, attributes); !made) return made.error();
    return driver_.packed(
        driver_.packing().add_in_place(bytes, std::forward<Write>(write), attributes, std::move(callback)));
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

  /// Changes ProducerOptions::send_timeout for later messages. Negative counts as 0: send then never waits.
  void set_send_timeout(Timeout timeout);
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
  Producer(std::string topic, SessionJoin join, ProducerOptions options);

  ProducerDriver driver_;
};

}  // namespace lightq::inline v1

#if defined(LIGHTQ_WITH_DEFINITIONS)
#include <lightq/impl/producer.hpp>  // IWYU pragma: export
#endif
