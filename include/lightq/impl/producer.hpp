/// The definitions of <lightq/producer.hpp>. Layer: client.
#pragma once

#include <lightq/producer.hpp>

#include <poll.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <lightq/base/batch_layout.hpp>
#include <lightq/base/limits.hpp>
#include <lightq/detail/message_limit.hpp>
#include <lightq/impl/session_batches.hpp>
#include <lightq/impl/session_produce_link.hpp>

namespace lightq::inline v1 {

struct Producer::Parts {
  Parts(std::string topic, SessionJoin join, ProducerOptions given)
      : options(std::move(given)), clock(options.clock), link(std::move(topic), std::move(join), options) {}
  ProducerOptions options;
  SessionClock clock;
  SendReports reports;
  SessionProduceLink link;

  /// Returns the parts that all producers of this thread use after a move: closed, without messages.
  static Parts& after_move();
};

LIGHTQ_INLINE Producer::Parts& Producer::Parts::after_move() {
  struct Closed : Parts {
    Closed() : Parts({}, {}, {}) { link.close(reports); }
  };
  static thread_local Closed closed;
  return closed;
}

LIGHTQ_INLINE Result<Producer> Producer::open(std::string topic, SessionJoin join, ProducerOptions options) {
  if (const Result<void> valid = options.check(); !valid) return valid.error();
  if (!TopicName::parse(topic))
    return Error{ErrorCode::invalid_argument, "'" + topic + "' is not a topic name"};
  if (!join) return Error{ErrorCode::invalid_argument, "a producer needs a function that joins its topic"};
  Producer made(std::move(topic), std::move(join), std::move(options));
  return made;
}

LIGHTQ_INLINE Result<std::uint64_t> Producer::send(ByteView payload, MessageCallback callback) {
  return send(payload, Attributes(), std::move(callback));
}

LIGHTQ_INLINE Result<std::uint64_t> Producer::send(std::string_view payload, MessageCallback callback) {
  return send(as_byte_view(payload), std::move(callback));
}

LIGHTQ_INLINE Result<std::uint64_t> Producer::send(ByteView payload, const Attributes& attributes,
                                                   MessageCallback callback) {
  return send_in_place(payload.size(), BatchBuilder::CopyOf{payload}, attributes, std::move(callback));
}

LIGHTQ_INLINE Result<std::uint64_t> Producer::send(std::string_view payload, const Attributes& attributes,
                                                   MessageCallback callback) {
  return send(as_byte_view(payload), attributes, std::move(callback));
}

LIGHTQ_INLINE Result<void> Producer::flush(Timeout timeout) {
  if (inside_) return inside_error();
  const Result<void> waited = wait_flushing([this] { return settled_all(); }, timeout);
  if (std::optional<Error> failure = parts().reports.take_failure()) return *std::move(failure);
  return waited;
}

LIGHTQ_INLINE Result<void> Producer::wait_settled(std::uint64_t number, Timeout timeout) {
  if (inside_) return inside_error();
  return wait_flushing([this, number] { return first_unsettled() > number; }, timeout);
}

LIGHTQ_INLINE Result<void> Producer::wait_open(Timeout timeout) {
  return wait_until([this] { return state() == SessionState::open; }, timeout, "the producer is not open");
}

LIGHTQ_INLINE Result<void> Producer::poll(Timeout timeout) {
  if (writing_) return inside_error();
  const std::uint64_t before = changes();
  drive();
  if (timeout.count() > 0 && changes() == before && usable()) {
    wait_for_io(session_deadline(now(), timeout));
    drive();
  }
  return usable();
}

LIGHTQ_INLINE Result<void> Producer::close(Timeout timeout) {
  if (state() == SessionState::closed) return {};
  if (inside_) return inside_error();
  Result<void> flushed = flush(timeout);
  {
    const FlagWhile inside(inside_);
    if (!batches().open().empty()) roll();
    parts().link.close(parts().reports);
    (void)parts().reports.take_failure();
  }
  room_ = 0;
  parts().reports.rethrow();
  return flushed;
}

LIGHTQ_INLINE void Producer::resolve(bool resend) {
  if (inside_) return;
  {
    const FlagWhile inside(inside_);
    parts().link.resolve(resend, parts().reports);
  }
  refresh_room();
  parts().reports.rethrow();
}

LIGHTQ_INLINE std::uint64_t Producer::in_doubt() const {
  return batches().doubtful();
}

LIGHTQ_INLINE void Producer::on_report(ReportCallback callback) {
  if (parts_ != nullptr) parts_->reports.on_report(std::move(callback));
}

LIGHTQ_INLINE const std::string& Producer::topic() const {
  return parts().link.topic();
}

LIGHTQ_INLINE SessionState Producer::state() const {
  return parts().link.state();
}

LIGHTQ_INLINE const Error& Producer::last_error() const {
  static const Error moved{ErrorCode::closed, "the producer was moved from"};
  return parts_ != nullptr ? parts_->link.last_error() : moved;
}

LIGHTQ_INLINE std::uint64_t Producer::confirmed() const {
  return parts().reports.count(Fate::confirmed);
}

LIGHTQ_INLINE std::uint64_t Producer::unconfirmed() const {
  return parts_ != nullptr ? sent_ - parts_->reports.count() : 0;
}

LIGHTQ_INLINE ProducerStats Producer::stats() const {
  if (parts_ == nullptr) return {};
  const SendReports& told = parts().reports;
  const SessionProduceLink& link = parts().link;
  return {sent_,
          told.count(Fate::confirmed),
          told.count(Fate::refused),
          told.count(Fate::unknown),
          link.lost(),
          link.opens(),
          link.violations()};
}

LIGHTQ_INLINE const ProducerIdentity& Producer::identity() const {
  return parts().link.identity();
}

LIGHTQ_INLINE const std::optional<session::ProduceOpened>& Producer::opened() const {
  return parts().link.opened();
}

LIGHTQ_INLINE int Producer::fd() const {
  return parts().link.fd();
}

LIGHTQ_INLINE bool Producer::wants_write() const {
  return parts().link.wants_write();
}

LIGHTQ_INLINE SessionTime Producer::next_timer() const {
  const SessionTime time = now();
  const SessionTime of_link = parts().link.next_timer(time);
  const bool lingers = parts().link.may_send(time) && batches().all_sent() && !batches().open().empty();
  return lingers ? std::min(of_link, linger_ends_) : of_link;
}

LIGHTQ_INLINE Producer::Producer(std::string topic, SessionJoin join, ProducerOptions options)
    : parts_(std::make_unique<Parts>(std::move(topic), std::move(join), std::move(options))) {
  open_ = &batches().open();
}
LIGHTQ_INLINE Producer::Producer(Producer&&) noexcept = default;
LIGHTQ_INLINE Producer& Producer::operator=(Producer&&) noexcept = default;
LIGHTQ_INLINE Producer::~Producer() = default;

LIGHTQ_INLINE void Producer::watch(MessageCallback callback) {
  parts().reports.watch(sent_, std::move(callback));
}

LIGHTQ_INLINE void Producer::unwatch() {
  parts().reports.unwatch();
}

LIGHTQ_INLINE Producer::Parts& Producer::parts() const {
  return parts_ != nullptr ? *parts_ : Parts::after_move();
}

LIGHTQ_INLINE SessionBatches& Producer::batches() {
  return parts().link.batches();
}

LIGHTQ_INLINE const SessionBatches& Producer::batches() const {
  return parts().link.batches();
}

LIGHTQ_INLINE SessionTime Producer::now() const {
  return parts().clock.now();
}

LIGHTQ_INLINE void Producer::exchange(SessionTime time, bool by_the_way) {
  const FlagWhile inside(inside_);
  if (!by_the_way || state() != SessionState::open || pace_.may_read(time)) {
    pace_.reads(time);
    parts().link.receive(time, parts().reports);
  }
  if (is_ripe(time)) roll();
  parts().link.transmit(time, parts().reports);
  if (state() == SessionState::failed && !batches().open().empty()) {
    roll();
    parts().link.give_up_all(parts().reports);
  }
}

LIGHTQ_INLINE void Producer::drive(bool by_the_way) {
  pace_.look();
  if (inside_) return;
  const SessionTime time = now();
  exchange(time, by_the_way);
  pace_.give_way(time);
  const BatchBuilder& open = batches().open();
  pace_.look_again_behind(open.record_count());
  if (!open.empty() && linger_ends_ == session_never && parts().options.linger.count() > 0)
    linger_ends_ = session_deadline(time, parts().options.linger);
  refresh_room();
  parts().reports.rethrow();
}

LIGHTQ_INLINE bool Producer::is_ripe(SessionTime time) const {
  const SessionBatches& all = batches();
  if (all.open().empty() || !all.all_sent() || !parts().link.may_send(time)) return false;
  return flushing_ || all.in_flight() < parts().options.eager_batches || time >= linger_ends_;
}

LIGHTQ_INLINE void Producer::roll() {
  const auto& opened = parts().link.opened();
  const bool at_disk = opened && opened->level == ConfirmLevel::flushed;
  pace_.closed(batches().open().size_bytes());
  batches().roll(sent_, flushing_ && at_disk, parts().options.compression);
  open_ = &batches().open();
  linger_ends_ = session_never;
  kinds_of_last_ = std::exchange(kinds_used_, {});
}

LIGHTQ_INLINE std::size_t Producer::batch_bytes() const {
  return std::min(parts().options.batch_bytes, parts().link.batch_bytes_max());
}

LIGHTQ_INLINE bool Producer::takes_messages() const {
  return state() == SessionState::connecting || state() == SessionState::open;
}

LIGHTQ_INLINE bool Producer::waits_for_window() const {
  return !inside_ && parts().options.send_timeout.count() > 0 && state() == SessionState::open &&
         !batches().all_sent();
}

LIGHTQ_INLINE bool Producer::has_room_for(std::size_t bytes) const {
  const SessionBatches& all = batches();
  if (waits_for_window()) return false;
  return all.count() == 0 || all.held_bytes() + bytes <= parts().options.memory_bytes_max;
}

LIGHTQ_INLINE std::size_t Producer::room_in_open() const {
  const BatchBuilder& open = batches().open();
  const std::size_t size = open.size_bytes();
  const bool any = takes_messages() && size < batch_bytes() && (!open.empty() || has_room_for(batch_bytes()));
  const std::size_t records = limits::batch_records_max - open.record_count();
  return any ? std::min(batch_bytes() - size, records * record_bytes(0)) : 0;
}

LIGHTQ_INLINE void Producer::refresh_room() {
  // If the batch has attributes, make_room checks each message.
  const BatchBuilder& open = batches().open();
  const AttributeKinds kinds = open.empty() ? kinds_of_last_ : open.kinds();
  room_ = kinds.any() ? 0 : room_in_open();
  record_bytes_max_ = record_bytes(message_bytes_max());
}

LIGHTQ_INLINE AttributeKinds Producer::kinds_to_begin_with(std::size_t payload_bytes,
                                                           const Attributes& attributes) const {
  const AttributeKinds own(attributes);
  const AttributeKinds both = own | kinds_of_last_;
  const std::size_t bytes = attributes_bytes(both, attributes) + payload_bytes;
  return record_bytes(bytes) <= record_bytes_max_ ? both : own;
}

LIGHTQ_INLINE std::optional<std::size_t> Producer::bytes_in_open(std::size_t payload_bytes,
                                                                 const Attributes& attributes) const {
  const BatchBuilder& open = batches().open();
  const AttributeKinds own(attributes);
  if (open.empty())
    return attributes_bytes(kinds_to_begin_with(payload_bytes, attributes), attributes) + payload_bytes;
  if (!open.kinds().has_all_of(own)) return std::nullopt;
  return attributes_bytes(open.kinds(), attributes) + payload_bytes;
}

LIGHTQ_INLINE Result<void> Producer::make_room(std::size_t payload_bytes, const Attributes& attributes) {
  const Timeout patience = parts().options.send_timeout;
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

LIGHTQ_INLINE std::size_t Producer::message_bytes_max() const {
  return size_limit().bytes;
}

LIGHTQ_INLINE MessageLimit Producer::size_limit() const {
  return MessageLimit::of(parts().options, parts().link.opened(), parts().link.batch_bytes_max());
}

LIGHTQ_INLINE Error Producer::too_large(std::size_t message_bytes) const {
  return of_topic(size_limit().exceeded_by(message_bytes));
}

LIGHTQ_INLINE bool Producer::settled_all() const {
  return batches().open().empty() && batches().count() == 0;
}

LIGHTQ_INLINE std::uint64_t Producer::first_unsettled() const {
  return batches().first_message().value_or(sent_ - batches().open().record_count());
}

LIGHTQ_INLINE std::uint64_t Producer::changes() const {
  return sent_ - unconfirmed() + parts().link.opens() + static_cast<std::uint64_t>(state());
}

template <typename Done>
Result<void> Producer::wait_flushing(Done&& done, Timeout timeout) {
  const FlagWhile flushing(flushing_);
  return wait_until(done, timeout, "not confirmed");
}

template <typename Done>
Result<void> Producer::wait_until(Done done, Timeout timeout, const char* otherwise) {
  if (parts_ == nullptr) return closed_error();
  if (inside_) return inside_error();
  const SessionTime deadline = session_deadline(now(), timeout);
  while (true) {
    drive();
    if (done()) return {};
    if (const Result<void> able = usable(); !able) return able.error();
    if (now() >= deadline) {
      return Error{ErrorCode::timeout, of_topic(otherwise) + " within " + std::to_string(timeout.count()) +
                                           " ms; " + std::to_string(unconfirmed()) +
                                           " messages are not confirmed; last error: " + last_error().text()};
    }
    wait_for_io(deadline);
  }
}

LIGHTQ_INLINE void Producer::wait_for_io(SessionTime until) {
  const auto events = static_cast<short>(wants_write() ? POLLIN | POLLOUT : POLLIN);
  parts().clock.wait(fd(), events, std::min(until, next_timer()));
  pace_.waited();
}

LIGHTQ_INLINE Error Producer::of_topic(const Error& error) const {
  return {error.code, of_topic(error.message)};
}

LIGHTQ_INLINE std::string Producer::of_topic(const std::string& what) const {
  return "topic '" + topic() + "': " + what;
}

LIGHTQ_INLINE Error Producer::inside_error() const {
  return {ErrorCode::invalid_argument,
          of_topic(writing_ ? "a function that writes a message must not use its producer"
                            : "a callback must not wait")};
}

LIGHTQ_INLINE Error Producer::no_room(ErrorCode code) const {
  return {code, of_topic("no memory is left for another message (memory_bytes_max): " +
                         std::to_string(unconfirmed()) +
                         " messages are not confirmed; last error: " + last_error().text())};
}

LIGHTQ_INLINE Error Producer::closed_error() const {
  if (parts_ == nullptr) return last_error();
  return {ErrorCode::closed, of_topic("the producer is closed")};
}

LIGHTQ_INLINE Result<void> Producer::usable() const {
  switch (state()) {
    case SessionState::connecting:
    case SessionState::open: return {};
    case SessionState::closed: return closed_error();
    case SessionState::failed: return last_error();
    case SessionState::in_doubt: break;
  }
  return Error{ErrorCode::closed,
               of_topic("the broker does not know this producer any more; " + std::to_string(in_doubt()) +
                        " messages may be stored or not: see Producer::resolve")};
}

}  // namespace lightq::inline v1
