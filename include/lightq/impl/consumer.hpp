/// The definitions of <lightq/consumer.hpp>. Layer: client.
#pragma once

#include <lightq/consumer.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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

LIGHTQ_INLINE std::vector<OffsetRange> Consumer::take_late() {
  return link().take_late();
}

LIGHTQ_INLINE void Consumer::reject(OffsetRange range, Timeout delay) {
  link().reject(range, milliseconds(delay));
  look();
}

LIGHTQ_INLINE void Consumer::extend(OffsetRange range, Timeout time) {
  link().extend(range, milliseconds(time));
  link().transmit(now(), true);
}

LIGHTQ_INLINE Result<Offset> Consumer::seek(const session::Place& to, Timeout timeout) {
  const SessionTime deadline = session_deadline(now(), timeout);
  const auto may_ask = [this] { return state() == SessionState::open && !link().is_seeking(); };
  if (const Result<void> ready = wait_until(may_ask, deadline, "the consumer is not open"); !ready)
    return ready.error();
  rest_.get().reset();
  link().seek(to);
  const auto is_answered = [this] { return !link().is_seeking(); };
  if (const Result<void> done = wait_until(is_answered, deadline, "the broker has not answered seek"); !done)
    return done.error();
  if (auto sought = link().take_sought()) return *std::move(sought);
  return Error{ErrorCode::closed, of_topic("the connection ended before the answer to seek; last error: " +
                                           last_error().text())};
}

LIGHTQ_INLINE void Consumer::pause() {
  link().pause(true);
}

LIGHTQ_INLINE void Consumer::resume() {
  link().pause(false);
  link().transmit(now(), true);
}

LIGHTQ_INLINE std::optional<Offset> Consumer::committed() const {
  if (!opened()) return std::nullopt;
  return Offset{opened()->committed};
}

LIGHTQ_INLINE Result<void> Consumer::poll() {
  drive();
  return usable();
}

LIGHTQ_INLINE Result<void> Consumer::wait_open(Timeout timeout) {
  return wait_until([this] { return connected(); }, session_deadline(now(), timeout),
                    "the consumer is not open");
}

LIGHTQ_INLINE Result<void> Consumer::flush(Timeout timeout) {
  if (const Result<void> able = usable(); !able) return able;
  const std::uint64_t opens = stats().opens;
  const auto is_over = [&] { return !connected() || stats().opens != opens || link().is_all_said(); };
  if (const Result<void> done =
          wait_until(is_over, session_deadline(now(), timeout), "the acknowledgements are not sent");
      !done)
    return done;
  if (connected() && stats().opens == opens) return {};
  return lost_error();
}

LIGHTQ_INLINE Result<void> Consumer::close(Timeout timeout) {
  if (state() == SessionState::closed) return {};
  rest_.get().reset();
  Result<void> done;
  if (connected()) {
    link().begin_close();
    const auto is_over = [this] { return !connected() || !link().is_closing(); };
    done = wait_until(is_over, session_deadline(now(), timeout),
                      "the broker has not confirmed the end of the consumer");
    if (done && !connected()) done = lost_error();
  }
  link().close();
  if (done && stats().late > 0) return late_error();
  return done;
}

LIGHTQ_INLINE bool Consumer::finished() const {
  return state() == SessionState::closed;
}

LIGHTQ_INLINE const std::string& Consumer::topic() const {
  return link().topic();
}

LIGHTQ_INLINE SessionState Consumer::state() const {
  return link().state();
}

LIGHTQ_INLINE bool Consumer::connected() const {
  return state() == SessionState::open;
}

LIGHTQ_INLINE const Error& Consumer::last_error() const {
  static const Error moved{ErrorCode::closed, "the consumer was moved from"};
  return link_ != nullptr ? link_->last_error() : moved;
}

LIGHTQ_INLINE std::uint64_t Consumer::unacknowledged() const {
  return link().unacknowledged();
}

LIGHTQ_INLINE ConsumerStats Consumer::stats() const {
  return link().stats();
}

LIGHTQ_INLINE const std::optional<session::ConsumeOpened>& Consumer::opened() const {
  return link().opened();
}

LIGHTQ_INLINE int Consumer::fd() const {
  return link().fd();
}

LIGHTQ_INLINE bool Consumer::wants_write() const {
  return link().wants_write();
}

LIGHTQ_INLINE SessionTime Consumer::next_timer() const {
  return link().next_timer(now());
}

LIGHTQ_INLINE Consumer::Consumer(std::string topic, SessionJoin join, const ConsumerOptions& options)
    : clock_(options.clock),
      link_(std::make_unique<SessionConsumeLink>(std::move(topic), std::move(join), options)) {
  settling_ = &link_->settling();
}
LIGHTQ_INLINE Consumer::Consumer(Consumer&&) noexcept = default;
LIGHTQ_INLINE Consumer& Consumer::operator=(Consumer&&) noexcept = default;
LIGHTQ_INLINE Consumer::~Consumer() = default;

LIGHTQ_INLINE SessionConsumeLink& Consumer::link() const {
  struct Closed : SessionConsumeLink {
    Closed() : SessionConsumeLink({}, {}, ConsumerOptions()) { close(); }
  };
  if (link_ != nullptr) [[likely]]
    return *link_;
  static thread_local Closed closed;
  return closed;
}

LIGHTQ_INLINE void Consumer::look_for_end() {
  link().look_for_end(now());
}

LIGHTQ_INLINE SessionTime Consumer::now() const {
  return clock_.now();
}

LIGHTQ_INLINE std::uint32_t Consumer::milliseconds(Timeout time) {
  return static_cast<std::uint32_t>(std::clamp<Timeout::rep>(time.count(), 0, UINT32_MAX));
}

LIGHTQ_INLINE void Consumer::send_what_is_due() {
  const SessionTime time = now();
  keep_what_waits(time);
  link().transmit(time, time >= look_by_);
  look_after_ = time - looked_ < quick ? look_after_max : 1;
  looked_ = time;
  look_by_ = time + slow;
}

LIGHTQ_INLINE void Consumer::drive() {
  const SessionTime time = now();
  receive_from(time);
  keep_what_waits(time);
  link().transmit(time, true);
}

LIGHTQ_INLINE void Consumer::receive_from(SessionTime time) {
  SessionConsumeLink& link = this->link();
  const bool had_one = link.batch().has_value();
  link.receive(time);
  if (!had_one && link.batch()) rest_.get() = link.batch();
}

LIGHTQ_INLINE void Consumer::keep_what_waits(SessionTime time) {
  if (is_ready()) return link().keep(rest_->range(), time);
  if (goes_on_) link().keep(in_hand_, time);
  goes_on_ = false;
}

LIGHTQ_INLINE Result<bool> Consumer::next_batch(Timeout timeout) {
  rest_.get().reset();
  in_hand_ = {};
  link().release();
  SessionTime time = now();
  const SessionTime deadline = session_deadline(time, timeout);
  while (true) {
    receive_from(time);
    keep_what_waits(time);
    const bool is_last = timeout.count() <= 0 || time >= deadline;
    link().transmit(time, !rest_.get() && (is_last || time >= link().gathers_until(time)));
    if (rest_.get()) {
      look_by_ = time + slow;
      return true;
    }
    if (const Result<void> able = usable(); !able) return able.error();
    if (is_last) return false;
    wait_for_io(link().has_news() ? std::min(deadline, link().gathers_until(time)) : deadline);
    time = now();
  }
}

template <typename Done>
Result<void> Consumer::wait_until(Done done, SessionTime deadline, const char* otherwise) {
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

LIGHTQ_INLINE void Consumer::wait_for_io(SessionTime until) const {
  clock_.wait(fd(), link().wait_events(), std::min(until, next_timer()));
}

LIGHTQ_INLINE std::string Consumer::of_topic(const std::string& what) const {
  return "topic '" + topic() + "': " + what;
}

LIGHTQ_INLINE Error Consumer::late_error() const {
  return {
      ErrorCode::timeout,
      of_topic(std::to_string(stats().late) + " messages were acknowledged after their timeout of " +
               std::to_string(opened()->ack_timeout_ms) + " ms, and were redelivered to other consumers")};
}

LIGHTQ_INLINE Error Consumer::lost_error() const {
  return {ErrorCode::closed, of_topic("the connection was lost before the broker received all "
                                      "acknowledgements, so these messages are redelivered; last error: " +
                                      last_error().text())};
}

LIGHTQ_INLINE Result<void> Consumer::usable() const {
  if (state() == SessionState::failed) return last_error();
  if (state() != SessionState::closed) return {};
  if (link_ == nullptr) return last_error();
  return Error{ErrorCode::closed, of_topic("the consumer is closed")};
}

}  // namespace lightq::inline v1
