/// The definitions of <lightq/consumer.hpp>. Layer: client.
#pragma once

#include <lightq/consumer.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lightq/impl/consumer_driver.hpp>
#include <lightq/impl/session_consume_link.hpp>

namespace lightq::inline v1 {

LIGHTQ_INLINE Result<Consumer> Consumer::open(std::string topic, SessionJoin join, ConsumerOptions options) {
  if (const Result<void> valid = options.check(); !valid) return valid.error();
  if (!TopicName::parse(topic))
    return Error{ErrorCode::invalid_argument, "'" + topic + "' is not a topic name"};
  if (!join) return Error{ErrorCode::invalid_argument, "a consumer needs a function that joins its topic"};
  Consumer made(std::move(topic), std::move(join), options);
  return made;
}

namespace detail {

/// Returns a timeout as session frames have it: 0 to 2^32 - 1 milliseconds.
inline std::uint32_t frame_milliseconds(Timeout time) {
  return static_cast<std::uint32_t>(std::clamp<Timeout::rep>(time.count(), 0, UINT32_MAX));
}

/// Returns the beginning of a reason that fits into a frame. Does not cut a character of UTF-8 in two.
inline std::string_view dead_reason(std::string_view reason) {
  if (reason.size() <= session::dead_reason_bytes_max) return reason;
  std::size_t bytes = session::dead_reason_bytes_max;
  while (bytes > 0 && (static_cast<unsigned char>(reason[bytes]) & 0xC0U) == 0x80) --bytes;
  return reason.substr(0, bytes);
}

}  // namespace detail

LIGHTQ_INLINE std::vector<OffsetRange> Consumer::take_late() {
  return driver_.link().deliveries().take_late();
}

LIGHTQ_INLINE void Consumer::reject(OffsetRange range, Timeout delay) {
  driver_.link().reject(range, detail::frame_milliseconds(delay));
  driver_.look();
}

LIGHTQ_INLINE void Consumer::dead_letter(OffsetRange range, std::string_view reason) {
  driver_.link().reject_dead(range, detail::dead_reason(reason));
  driver_.look();
}

LIGHTQ_INLINE void Consumer::release(OffsetRange range) {
  driver_.link().reject(range, std::nullopt);
  driver_.look();
}

LIGHTQ_INLINE std::stop_token Consumer::stop_token(const Delivered& message) {
  return driver_.link().leases().watch(message.offset, message.hand_out);
}

LIGHTQ_INLINE void Consumer::extend(OffsetRange range, Timeout time) {
  driver_.link().extend(range, detail::frame_milliseconds(time));
  driver_.send_all();
}

LIGHTQ_INLINE Result<Offset> Consumer::seek(const session::Place& to, Timeout timeout) {
  const SessionTime deadline = session_deadline(driver_.now(), timeout);
  SessionConsumeRequests& requests = driver_.link().requests();
  const auto may_ask = [&] { return connected() && !requests.is_seeking(); };
  if (const Result<void> ready = driver_.wait_until(may_ask, deadline, "the consumer is not open"); !ready)
    return ready.error();
  driver_.batch().drop();
  driver_.link().seek(to);
  const auto is_answered = [&] { return !requests.is_seeking(); };
  if (const Result<void> done = driver_.wait_until(is_answered, deadline, "the broker has not answered seek");
      !done)
    return done.error();
  if (auto sought = requests.take_sought()) return *std::move(sought);
  return Error{
      ErrorCode::closed,
      driver_.of_topic("the connection ended before the answer to seek; last error: " + last_error().text())};
}

LIGHTQ_INLINE void Consumer::pause() {
  driver_.link().output().credit().pause(true);
}

LIGHTQ_INLINE void Consumer::resume() {
  driver_.link().output().credit().pause(false);
  driver_.send_all();
}

LIGHTQ_INLINE std::optional<Offset> Consumer::committed() const {
  if (!opened()) return std::nullopt;
  return Offset{opened()->committed};
}

LIGHTQ_INLINE Result<void> Consumer::poll() {
  driver_.drive();
  return driver_.usable();
}

LIGHTQ_INLINE Result<void> Consumer::wait_open(Timeout timeout) {
  return driver_.wait_until([this] { return connected(); }, session_deadline(driver_.now(), timeout),
                            "the consumer is not open");
}

LIGHTQ_INLINE Result<void> Consumer::flush(Timeout timeout) {
  if (const Result<void> able = driver_.usable(); !able) return able;
  const std::uint64_t opens = stats().opens;
  const auto is_over = [&] { return !connected() || stats().opens != opens || driver_.link().is_all_said(); };
  if (const Result<void> done = driver_.wait_until(is_over, session_deadline(driver_.now(), timeout),
                                                   "the acknowledgements are not sent");
      !done)
    return done;
  if (connected() && stats().opens == opens) return {};
  return driver_.lost_error();
}

LIGHTQ_INLINE Result<void> Consumer::close(Timeout timeout) {
  if (finished()) return {};
  driver_.release_not_begun();
  driver_.batch().drop();
  SessionConsumeLink& link = driver_.link();
  Result<void> done;
  if (connected()) {
    link.begin_close();
    const auto is_over = [&] { return !connected() || !link.requests().is_closing(); };
    done = driver_.wait_until(is_over, session_deadline(driver_.now(), timeout),
                              "the broker has not confirmed the end of the consumer");
    if (done && !connected()) done = driver_.lost_error();
  }
  link.close();
  if (!done || stats().late == 0) return done;
  return Error{ErrorCode::timeout,
               driver_.of_topic(std::to_string(stats().late) +
                                " messages were acknowledged, rejected or extended too late: the broker had "
                                "taken them back (see take_late)")};
}

LIGHTQ_INLINE bool Consumer::finished() const {
  return state() == SessionState::closed;
}

LIGHTQ_INLINE const std::string& ConsumerConnection::topic() const {
  return driver_.link().route().topic();
}

LIGHTQ_INLINE SessionState ConsumerConnection::state() const {
  return driver_.link().state();
}

LIGHTQ_INLINE bool ConsumerConnection::connected() const {
  return state() == SessionState::open;
}

LIGHTQ_INLINE const Error& ConsumerConnection::last_error() const {
  return driver_.last_error();
}

LIGHTQ_INLINE std::uint64_t Consumer::unacknowledged() const {
  return driver_.link().deliveries().unsettled();
}

LIGHTQ_INLINE ConsumerStats Consumer::stats() const {
  return driver_.link().stats();
}

LIGHTQ_INLINE const std::optional<session::ConsumeOpened>& Consumer::opened() const {
  return driver_.link().opened();
}

LIGHTQ_INLINE int ConsumerConnection::fd() const {
  return driver_.link().route().connection().fd();
}

LIGHTQ_INLINE bool ConsumerConnection::wants_write() const {
  return driver_.link().route().connection().wants_write();
}

LIGHTQ_INLINE SessionTime ConsumerConnection::next_timer() const {
  return driver_.next_timer();
}

LIGHTQ_INLINE ConsumerConnection::ConsumerConnection(std::string topic, SessionJoin join,
                                                     const ConsumerOptions& options)
    : driver_(std::move(topic), std::move(join), options) {}

LIGHTQ_INLINE Consumer::Consumer(std::string topic, SessionJoin join, const ConsumerOptions& options)
    : ConsumerConnection(std::move(topic), std::move(join), options) {}

}  // namespace lightq::inline v1
