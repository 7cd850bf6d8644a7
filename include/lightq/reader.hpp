/// Reads a topic's messages by their offsets, without a group or a cursor. A read leaves no trace in the
/// broker. docs/session.md, "read". Layer: client.
#pragma once

#include <poll.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <lightq/base/batch_unpack.hpp>
#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>
#include <lightq/delivered.hpp>
#include <lightq/protocol/session_consuming.hpp>
#include <lightq/reader_options.hpp>
#include <lightq/session_route.hpp>

namespace lightq::inline v1 {

/// Reads ranges of messages by offset over a session. Made by Client::reader. Move-only. It has no thread of
/// its own. Thread: one at a time.
///
///     auto reader = client.reader("orders").value_or_throw();
///     auto next = reader.read({{0}, {100}}, [](const Delivered& order) { … }, 5s).value_or_throw();
///
/// If the connection breaks during a read, the reader connects again and continues behind the last message
/// received. If the broker restarts, the offsets of a topic in memory then refer to different messages.
class Reader {
 public:
  /// Called for each message in the order of offsets. The message is valid during the call. The callback must
  /// not use the reader.
  using Handle = std::function<void(const Delivered&)>;

  /// Makes a reader that connects in its first calls. The reader calls `join` within its calls whenever it
  /// needs an address. Errors: invalid_argument.
  static Result<Reader> open(std::string topic, SessionJoin join, ReaderOptions options = {}) {
    if (const Result<void> valid = options.check(); !valid) return valid.error();
    if (!TopicName::parse(topic))
      return Error{ErrorCode::invalid_argument, "'" + topic + "' is no topic name"};
    if (!join) return Error{ErrorCode::invalid_argument, "a reader needs a way to join its topic"};
    Reader made(std::move(topic), std::move(join), options);
    return made;
  }
  Reader(Reader&&) noexcept = default;
  Reader& operator=(Reader&&) noexcept = default;
  ~Reader() {
    if (parts_ == nullptr || connection().phase() != SessionConnection::Phase::open) return;
    if (!parts_->route.is_here()) return;
    connection().put(session::Goodbye{}, 0, 0);
    (void)connection().send(parts_->route.now(), nullptr);
  }

  /// Waits until there is a connection. Errors: timeout, or the error that ended the reader.
  Result<void> wait_open(Timeout timeout) {
    return wait_until([this] { return is_open(); }, timeout, "not connected");
  }

  /// Reads the stored messages of `range` and calls `handle` for each. Stops at `bytes_max` bytes (attributes
  /// and payload; at most limits::read_bytes_max), but reads at least one message. Returns the offset at
  /// which to continue: the end of the range or of the log, or the first message that did not fit. Messages
  /// that are no longer stored are skipped; Delivered::lost counts them. Errors: timeout (messages may have
  /// been handled before it), too_large (a message longer than frame_bytes_max), limit_reached, or the error
  /// that ended the reader.
  Result<Offset> read(OffsetRange range, std::uint64_t bytes_max, const Handle& handle, Timeout timeout) {
    if (range.end < range.begin)
      return Error{ErrorCode::invalid_argument, of_topic("a range that ends before it begins")};
    Wanted& wanted = parts_->wanted = {};
    wanted.range = range;
    wanted.bytes = bytes_max;
    wanted.handle = &handle;
    if (is_open()) ask();
    const Result<void> waited =
        wait_until([&] { return wanted.answer.has_value(); }, timeout, "no answer to read");
    wanted.handle = nullptr;
    parts_->request = 0;
    if (!waited) return waited.error();
    return *std::move(wanted.answer);
  }
  /// Reads `range` with the largest possible `bytes_max`.
  Result<Offset> read(OffsetRange range, const Handle& handle, Timeout timeout) {
    return read(range, limits::read_bytes_max, handle, timeout);
  }

  [[nodiscard]] const std::string& topic() const { return parts_->route.topic(); }
  /// Returns why the last connection or attempt ended.
  [[nodiscard]] const Error& last_error() const { return parts_->route.last_error(); }
  [[nodiscard]] bool connected() const { return is_open(); }

 private:
  struct Wanted {
    OffsetRange range;  // not received yet
    std::uint64_t bytes = 0;
    const Handle* handle = nullptr;
    std::optional<Result<Offset>> answer;
    bool begun = false;  // a message has arrived
    bool joined_again = false;
  };
  struct Parts {
    Parts(std::string topic, SessionJoin join, const ReaderOptions& options)
        : clock(options.clock),
          route(std::move(topic), std::move(join), options,
                SessionConnection(hello(options), read_bytes, session_memory(options, memory_to_receive))) {}
    SessionClock clock;
    SessionRoute route;
    BatchUnpacker unpacker;
    Wanted wanted;
    std::uint32_t request = 0;    // the unanswered request; 0: none
    std::optional<Error> failed;  // the error that ended the reader
  };
  static constexpr std::size_t read_bytes = 256 * limits::KiB;

  static session::Hello hello(const ReaderOptions& options) {
    session::Hello hello = session_hello(options);
    hello.frame_bytes_max = options.frame_bytes_max;
    hello.codecs = CodecSet::known();
    return hello;
  }

  Reader(std::string topic, SessionJoin join, const ReaderOptions& options)
      : parts_(std::make_unique<Parts>(std::move(topic), std::move(join), options)) {}

  [[nodiscard]] SessionConnection& connection() { return parts_->route.connection(); }
  [[nodiscard]] const SessionConnection& connection() const { return parts_->route.connection(); }
  [[nodiscard]] bool is_open() const { return connection().phase() == SessionConnection::Phase::open; }
  [[nodiscard]] std::string of_topic(const std::string& what) const {
    return "topic '" + topic() + "': " + what;
  }

  void ask() {
    Wanted& wanted = parts_->wanted;
    if (wanted.handle == nullptr || wanted.answer) return;
    if (wanted.begun && wanted.bytes == 0) {  // the answer was lost with the connection
      wanted.answer = wanted.range.begin;
      return;
    }
    parts_->request = connection().next_request();
    connection().put(session::Read{wanted.range, wanted.bytes, topic()}, 0, parts_->request);
  }

  void drive() {
    SessionTime time = parts_->route.now();
    Result<void> done = parts_->route.receive(
        time, [this] { return is_open(); }, [this](const SessionFrame& frame) { return take(frame); },
        [this] { ask(); });
    if (done && is_open()) {
      parts_->route.opened(time);
      done = connection().send(time, nullptr);
    } else if (done && parts_->route.is_connected()) {
      done = connection().send(time, nullptr);
    }
    if (done) return;
    parts_->request = 0;
    const Consequence consequence = parts_->route.ended(done.error(), false, time);
    if (consequence == Consequence::fail) parts_->failed = last_error();
  }

  // --- Frames from the broker.

  Result<void> take(const SessionFrame& frame) {
    using session::Op;
    const session::FrameHeader& header = frame.header;
    switch (header.op) {
      case Op::deliver: return is_asked(header) ? take_batch(frame) : Result<void>();
      case Op::done:
        return with_body<session::Done>(frame, [&](const auto& done) {
          if (is_asked(header)) answered(Offset{done.value});
          return Result<void>();
        });
      case Op::error:
        return with_body<session::ErrorAnswer>(frame, [&](const auto& answer) {
          const Error error = error_of(answer.code, answer.sentence);
          if (!is_asked(header)) return Result<void>(parts_->route.ends_with(answer.code, answer.sentence));
          // The topic that the ticket belongs to may have been deleted. A new join finds out whether there is
          // another one.
          if (answer.code == session::Code::unauthorized_access &&
              !std::exchange(parts_->wanted.joined_again, true)) {
            const auto again = Consequence::join;
            return Result<void>(parts_->route.ends_with(answer.code, answer.sentence, again));
          }
          answered(Error{error.code, of_topic(error.message)});
          return Result<void>();
        });
      case Op::goodbye:
        return with_body<session::Goodbye>(frame, [&](const auto& goodbye) {
          return Result<void>(parts_->route.ends_with(goodbye.code, goodbye.sentence));
        });
      default: return violation("sent " + std::string(rule_of(header.op).name) + " to a reader");
    }
  }
  static Error violation(const std::string& what) { return SessionRoute::violation(what); }
  /// Returns true if the frame answers the current request. Frames of a read that timed out are ignored.
  [[nodiscard]] bool is_asked(const session::FrameHeader& header) const {
    return header.request != 0 && header.request == parts_->request;
  }
  void answered(Result<Offset> answer) {
    parts_->wanted.answer = std::move(answer);
    parts_->request = 0;
    parts_->route.worked();
  }

  Result<void> take_batch(const SessionFrame& frame) {
    const Result<session::DeliverHead> head =
        session::DeliverHead::decode(frame.body.first(session::deliver_head_bytes));
    if (!head) return head.error();
    const ByteView bytes = frame.body.subspan(session::deliver_head_bytes);
    if (BatchView::check(bytes)) return violation("sent a batch that is damaged");
    const BatchView batch = BatchView::trusted(bytes.data());
    Wanted& wanted = parts_->wanted;
    const bool is_in_range = wanted.range.begin <= batch.base_offset() &&
                             batch.record_count() <= UINT64_MAX - batch.base_offset().value &&
                             batch.end_offset() <= wanted.range.end;
    if (batch.total_bytes() != bytes.size() || !is_in_range)
      return violation("sent what was not asked to be read");
    const std::optional<BatchView> plain = parts_->unpacker.unpack(batch);
    parts_->unpacker.forget();
    if (!plain) return violation("sent a batch that cannot be unpacked");
    for (DeliveredBatch all(*plain, head->delivery, head->lost); !all.empty();) (*wanted.handle)(all.take());
    wanted.begun = true;
    wanted.range.begin = batch.end_offset();
    wanted.bytes -= std::min(wanted.bytes, batch.message_bytes());
    return {};
  }

  template <typename Done>
  Result<void> wait_until(Done done, Timeout timeout, const char* otherwise) {
    const SessionTime deadline = session_deadline(parts_->route.now(), timeout);
    while (true) {
      drive();
      if (done()) return {};
      if (parts_->failed) return *parts_->failed;
      if (parts_->route.now() >= deadline) {
        return Error{ErrorCode::timeout,
                     of_topic(std::string(otherwise) + " within " + std::to_string(timeout.count()) +
                              " ms; last error: " + last_error().text())};
      }
      if (connection().pending()) continue;
      parts_->clock.wait(connection().fd(), connection().wait_events(),
                         std::min(deadline, parts_->route.next_timer(is_open())));
    }
  }

  std::unique_ptr<Parts> parts_;
};

}  // namespace lightq::inline v1
