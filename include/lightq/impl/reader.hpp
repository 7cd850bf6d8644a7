/// The definitions of <lightq/reader.hpp>. Layer: client.
#pragma once

#include <lightq/reader.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <lightq/base/batch.hpp>
#include <lightq/base/batch_unpack.hpp>
#include <lightq/base/limits.hpp>
#include <lightq/detail/session_clock.hpp>
#include <lightq/detail/session_patience.hpp>
#include <lightq/detail/session_route.hpp>
#include <lightq/protocol/session_consuming.hpp>

namespace lightq::inline v1 {

/// The state of a reader and its connection. Owned by the Reader, whose calls it does. For one thread.
class Reader::Parts {
 public:
  Parts(std::string topic, SessionJoin join, const ReaderOptions& options)
      : clock_(options.clock),
        route_(std::move(topic), std::move(join), options,
               SessionConnection(hello(options), read_bytes, session_memory(options, memory_to_receive))) {}

  void say_goodbye() {
    if (connection().phase() != SessionConnection::Phase::open || !route_.is_here()) return;
    connection().put(session::Goodbye{}, 0, 0);
    (void)connection().send(route_.now(), nullptr);
  }
  Result<void> wait_open(Timeout timeout) {
    return wait_until([this] { return is_open(); }, timeout, "the reader is not connected");
  }
  Result<Offset> read(OffsetRange range, std::uint64_t bytes_max, const Handle& handle, Timeout timeout) {
    if (range.end < range.begin)
      return Error{ErrorCode::invalid_argument, of_topic("the range ends before it begins")};
    wanted_ = {};
    wanted_.range = range;
    wanted_.bytes = bytes_max;
    wanted_.handle = &handle;
    if (is_open()) ask();
    const Result<void> waited = wait_until([&] { return wanted_.answer.has_value(); }, timeout,
                                           "the broker has not answered the read");
    wanted_.handle = nullptr;
    request_ = 0;
    if (!waited) return waited.error();
    return *std::move(wanted_.answer);
  }
  [[nodiscard]] const std::string& topic() const { return route_.topic(); }
  [[nodiscard]] const Error& last_error() const { return route_.last_error(); }
  [[nodiscard]] bool is_open() const { return connection().phase() == SessionConnection::Phase::open; }

 private:
  struct Wanted {
    OffsetRange range;  // not received yet
    std::uint64_t bytes = 0;
    const Handle* handle = nullptr;
    std::optional<Result<Offset>> answer;
    bool begun = false;  // a message has arrived
    bool joined_again = false;
  };
  static constexpr std::size_t read_bytes = 256 * limits::KiB;

  static session::Hello hello(const ReaderOptions& options) {
    session::Hello hello = session_hello(options);
    hello.frame_bytes_max = options.frame_bytes_max;
    hello.codecs = CodecSet(CodecSet::known().bits() | session::hello_knows_expired);
    return hello;
  }
  [[nodiscard]] SessionConnection& connection() { return route_.connection(); }
  [[nodiscard]] const SessionConnection& connection() const { return route_.connection(); }
  [[nodiscard]] std::string of_topic(const std::string& what) const {
    return "topic '" + topic() + "': " + what;
  }

  void ask() {
    if (wanted_.handle == nullptr || wanted_.answer) return;
    if (wanted_.begun && wanted_.bytes == 0) {  // the answer was lost with the connection
      wanted_.answer = wanted_.range.begin;
      return;
    }
    request_ = connection().next_request();
    connection().put(session::Read{wanted_.range, wanted_.bytes, topic()}, 0, request_);
  }

  void drive() {
    SessionTime time = route_.now();
    Result<void> done = route_.receive(
        time, [this] { return is_open(); }, [this](const SessionFrame& frame) { return take(frame); },
        [this] { ask(); });
    if (done && is_open()) {
      route_.opened(time);
      done = connection().send(time, nullptr);
    } else if (done && route_.is_connected()) {
      done = connection().send(time, nullptr);
    }
    if (done) return;
    request_ = 0;
    const Consequence consequence = route_.ended(done.error(), false, time);
    if (consequence == Consequence::fail) failed_ = last_error();
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
          if (!is_asked(header)) return Result<void>(route_.ends_with(answer.code, answer.sentence));
          // The topic that the ticket belongs to may have been deleted. A new join finds out whether there is
          // another one.
          if (answer.code == session::Code::unauthorized_access &&
              !std::exchange(wanted_.joined_again, true)) {
            const auto again = Consequence::join;
            return Result<void>(route_.ends_with(answer.code, answer.sentence, again));
          }
          answered(Error{error.code, of_topic(error.message)});
          return Result<void>();
        });
      case Op::goodbye:
        return with_body<session::Goodbye>(frame, [&](const auto& goodbye) {
          return Result<void>(route_.ends_with(goodbye.code, goodbye.sentence));
        });
      default: return violation("sent " + std::string(rule_of(header.op).name) + " to a reader");
    }
  }
  static Error violation(const std::string& what) { return SessionRoute::violation(what); }
  /// Returns true if the frame answers the current request. Frames of a read that timed out are ignored.
  [[nodiscard]] bool is_asked(const session::FrameHeader& header) const {
    return header.request != 0 && header.request == request_;
  }
  void answered(Result<Offset> answer) {
    wanted_.answer = std::move(answer);
    request_ = 0;
    route_.worked();
  }

  Result<void> take_batch(const SessionFrame& frame) {
    const Result<session::DeliverHead> head =
        session::DeliverHead::decode(frame.body.first(session::deliver_head_bytes));
    if (!head) return head.error();
    const ByteView bytes = frame.body.subspan(session::deliver_head_bytes);
    if (BatchView::check(bytes)) return violation("sent a batch that is damaged");
    const BatchView batch = BatchView::trusted(bytes.data());
    const bool is_in_range = wanted_.range.begin <= batch.base_offset() &&
                             batch.record_count() <= UINT64_MAX - batch.base_offset().value &&
                             batch.end_offset() <= wanted_.range.end;
    if (batch.total_bytes() != bytes.size() || !is_in_range)
      return violation("sent messages that were not requested");
    const std::optional<BatchView> plain = unpacker_.unpack(batch);
    unpacker_.forget();
    if (!plain) return violation("sent a batch that cannot be unpacked");
    const bool expired = (frame.header.flags & session::flag_expired) != 0;
    DeliveredBatch all(*plain, head->delivery, head->lost, 0, nullptr, expired);
    while (!all.empty()) (*wanted_.handle)(all.take());
    wanted_.begun = true;
    wanted_.range.begin = batch.end_offset();
    wanted_.bytes -= std::min(wanted_.bytes, batch.message_bytes());
    return {};
  }

  template <typename Done>
  Result<void> wait_until(Done done, Timeout timeout, const char* otherwise) {
    const SessionTime deadline = session_deadline(route_.now(), timeout);
    while (true) {
      drive();
      if (done()) return {};
      if (failed_) return *failed_;
      if (route_.now() >= deadline) {
        return Error{ErrorCode::timeout,
                     of_topic(std::string(otherwise) + " within " + std::to_string(timeout.count()) +
                              " ms; last error: " + last_error().text())};
      }
      if (connection().pending()) continue;
      clock_.wait(connection().fd(), connection().wait_events(),
                  std::min(deadline, route_.next_timer(is_open())));
    }
  }

  SessionClock clock_;
  SessionRoute route_;
  BatchUnpacker unpacker_;
  Wanted wanted_;
  std::uint32_t request_ = 0;    // the unanswered request; 0: none
  std::optional<Error> failed_;  // the error that ended the reader
};

LIGHTQ_INLINE Result<Reader> Reader::open(std::string topic, SessionJoin join, ReaderOptions options) {
  if (const Result<void> valid = options.check(); !valid) return valid.error();
  if (!TopicName::parse(topic))
    return Error{ErrorCode::invalid_argument, "'" + topic + "' is not a topic name"};
  if (!join) return Error{ErrorCode::invalid_argument, "a reader needs a function that joins its topic"};
  Reader made(std::move(topic), std::move(join), options);
  return made;
}

LIGHTQ_INLINE Reader::Reader(std::string topic, SessionJoin join, const ReaderOptions& options)
    : parts_(std::make_unique<Parts>(std::move(topic), std::move(join), options)) {}
LIGHTQ_INLINE Reader::Reader(Reader&&) noexcept = default;
LIGHTQ_INLINE Reader& Reader::operator=(Reader&&) noexcept = default;
LIGHTQ_INLINE Reader::~Reader() {
  if (parts_ != nullptr) parts_->say_goodbye();
}

namespace detail {

inline Error reader_was_moved() {
  return {ErrorCode::closed, "the reader was moved from"};
}

}  // namespace detail

LIGHTQ_INLINE Result<void> Reader::wait_open(Timeout timeout) {
  if (parts_ == nullptr) return detail::reader_was_moved();
  return parts_->wait_open(timeout);
}

LIGHTQ_INLINE Result<Offset> Reader::read(OffsetRange range, std::uint64_t bytes_max, const Handle& handle,
                                          Timeout timeout) {
  if (parts_ == nullptr) return detail::reader_was_moved();
  return parts_->read(range, bytes_max, handle, timeout);
}

LIGHTQ_INLINE Result<Offset> Reader::read(OffsetRange range, const Handle& handle, Timeout timeout) {
  return read(range, limits::read_bytes_max, handle, timeout);
}

LIGHTQ_INLINE const std::string& Reader::topic() const {
  static const std::string none;
  return parts_ != nullptr ? parts_->topic() : none;
}

LIGHTQ_INLINE const Error& Reader::last_error() const {
  static const Error moved = detail::reader_was_moved();
  return parts_ != nullptr ? parts_->last_error() : moved;
}

LIGHTQ_INLINE bool Reader::connected() const {
  return parts_ != nullptr && parts_->is_open();
}

}  // namespace lightq::inline v1
