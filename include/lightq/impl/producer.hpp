/// The definitions of <lightq/producer.hpp>. Layer: client.
#pragma once

#include <lightq/producer.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <lightq/impl/producer_driver.hpp>
#include <lightq/impl/producer_errors.hpp>
#include <lightq/impl/session_batches.hpp>
#include <lightq/impl/session_produce_link.hpp>

namespace lightq::inline v1 {

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
  return driver_.flush(timeout);
}

LIGHTQ_INLINE Result<void> Producer::wait_settled(std::uint64_t number, Timeout timeout) {
  return driver_.wait_settled(number, timeout);
}

LIGHTQ_INLINE Result<void> Producer::wait_open(Timeout timeout) {
  return driver_.wait_until([this] { return state() == SessionState::open; }, timeout,
                            "the producer is not open");
}

LIGHTQ_INLINE Result<void> Producer::poll(Timeout timeout) {
  return driver_.poll(timeout);
}

LIGHTQ_INLINE Result<void> Producer::close(Timeout timeout) {
  return driver_.close(timeout);
}

LIGHTQ_INLINE void Producer::resolve(bool resend) {
  driver_.resolve(resend);
}

LIGHTQ_INLINE std::uint64_t Producer::in_doubt() const {
  return driver_.link().batches().doubtful();
}

LIGHTQ_INLINE void Producer::set_send_timeout(Timeout timeout) {
  driver_.set_send_timeout(timeout);
}

LIGHTQ_INLINE void Producer::on_report(ReportCallback callback) {
  if (!driver_.was_moved()) driver_.reports().on_report(std::move(callback));
}

LIGHTQ_INLINE const std::string& Producer::topic() const {
  return driver_.link().topic();
}

LIGHTQ_INLINE SessionState Producer::state() const {
  return driver_.link().state();
}

LIGHTQ_INLINE const Error& Producer::last_error() const {
  return driver_.errors().last();
}

LIGHTQ_INLINE std::uint64_t Producer::confirmed() const {
  return driver_.reports().count(Fate::confirmed);
}

LIGHTQ_INLINE std::uint64_t Producer::unconfirmed() const {
  return driver_.unconfirmed();
}

LIGHTQ_INLINE ProducerStats Producer::stats() const {
  if (driver_.was_moved()) return {};
  const SendReports& told = driver_.reports();
  const SessionProduceLink& link = driver_.link();
  return {driver_.packing().sent(),
          told.count(Fate::confirmed),
          told.count(Fate::refused),
          told.count(Fate::unknown),
          link.lost(),
          link.opens(),
          link.violations()};
}

LIGHTQ_INLINE const ProducerIdentity& Producer::identity() const {
  return driver_.link().identity();
}

LIGHTQ_INLINE const std::optional<session::ProduceOpened>& Producer::opened() const {
  return driver_.link().opened();
}

LIGHTQ_INLINE int Producer::fd() const {
  return driver_.link().route().connection().fd();
}

LIGHTQ_INLINE bool Producer::wants_write() const {
  return driver_.link().route().connection().wants_write();
}

LIGHTQ_INLINE SessionTime Producer::next_timer() const {
  return driver_.next_timer();
}

LIGHTQ_INLINE Producer::Producer(std::string topic, SessionJoin join, ProducerOptions options)
    : driver_(std::move(topic), std::move(join), std::move(options)) {}

}  // namespace lightq::inline v1
