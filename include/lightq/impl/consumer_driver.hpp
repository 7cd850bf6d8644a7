/// The definitions of <lightq/detail/calls/consumer_driver.hpp>. Layer: client.
#pragma once

#include <lightq/detail/calls/consumer_driver.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <lightq/impl/session_consume_link.hpp>

namespace lightq::inline v1 {

LIGHTQ_INLINE ConsumerDriver::ConsumerDriver(std::string topic, SessionJoin join,
                                             const ConsumerOptions& options)
    : clock_(options.clock),
      link_(std::make_unique<SessionConsumeLink>(std::move(topic), std::move(join), options)) {
  settling_ = &link_->deliveries().settling();
}
LIGHTQ_INLINE ConsumerDriver::ConsumerDriver(ConsumerDriver&&) noexcept = default;
LIGHTQ_INLINE ConsumerDriver& ConsumerDriver::operator=(ConsumerDriver&& from) noexcept {
  if (this == &from) return *this;
  release_not_begun();
  batch_ = std::move(from.batch_);
  pace_ = std::move(from.pace_);
  clock_ = std::move(from.clock_);
  settling_ = std::move(from.settling_);
  link_ = std::move(from.link_);
  return *this;
}
LIGHTQ_INLINE ConsumerDriver::~ConsumerDriver() {
  release_not_begun();
}

LIGHTQ_INLINE void ConsumerDriver::release_not_begun() {
  if (link_ == nullptr) return;
  link_->release_not_begun(batch_.is_ready() ? std::optional(batch_.left()) : std::nullopt);
}

LIGHTQ_INLINE SessionConsumeLink& ConsumerDriver::link() const {
  struct Closed : SessionConsumeLink {
    Closed() : SessionConsumeLink({}, {}, ConsumerOptions()) { close(); }
  };
  if (link_ != nullptr) [[likely]]
    return *link_;
  static thread_local Closed closed;
  return closed;
}

LIGHTQ_INLINE void ConsumerDriver::send_all() {
  link().transmit(now(), true);
}

LIGHTQ_INLINE void ConsumerDriver::drive() {
  const SessionTime time = now();
  receive_from(time);
  look_for_revocations(time, true);
  keep_waiting(time);
  link().output().credit().look(batch_.waiting(), time);
  link().transmit(time, true);
}

template <typename Done>
Result<void> ConsumerDriver::wait_until(Done done, SessionTime deadline, const char* otherwise) {
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

LIGHTQ_INLINE SessionTime ConsumerDriver::next_timer() const {
  return link().next_timer(now());
}

LIGHTQ_INLINE const Error& ConsumerDriver::last_error() const {
  static const Error moved{ErrorCode::closed, "the consumer was moved from"};
  return link_ != nullptr ? link_->route().last_error() : moved;
}

LIGHTQ_INLINE Result<void> ConsumerDriver::usable() const {
  const SessionState state = link().state();
  if (state == SessionState::failed) return last_error();
  if (state != SessionState::closed) return {};
  if (link_ == nullptr) return last_error();
  return Error{ErrorCode::closed, of_topic("the consumer is closed")};
}

LIGHTQ_INLINE Error ConsumerDriver::lost_error() const {
  return {ErrorCode::closed, of_topic("the connection was lost before the broker received all "
                                      "acknowledgements, so these messages are redelivered; last error: " +
                                      last_error().text())};
}

LIGHTQ_INLINE std::string ConsumerDriver::of_topic(const std::string& what) const {
  return "topic '" + link().route().topic() + "': " + what;
}

LIGHTQ_INLINE void ConsumerDriver::look_for_end() {
  const SessionTime time = now();
  look_for_revocations(time, true);
  link().look_for_end(time);
}

LIGHTQ_INLINE void ConsumerDriver::send_due() {
  const SessionTime time = now();
  look_for_revocations(time, false);
  keep_waiting(time);
  link().output().credit().look(batch_.waiting(), time);
  link().transmit(time, pace_.was_away(time));
  pace_.looked(time);
}

LIGHTQ_INLINE void ConsumerDriver::receive_from(SessionTime time) {
  SessionConsumeLink& link = this->link();
  const std::optional<DeliveredBatch>& delivered = link.deliveries().batch();
  const bool had_one = delivered.has_value();
  link.receive(time);
  if (had_one || !delivered) return;
  if (delivered->delivery() > 1) link.leases().end_window();
  batch_.put(*delivered, link.leases().started_end(delivered->range(), delivered->hand_out()));
}

LIGHTQ_INLINE Result<bool> ConsumerDriver::begin_next(Timeout timeout, bool is_whole, bool away) {
  if (!home_.is_here()) return Error{ErrorCode::closed, of_topic(opened_before_fork("the consumer").message)};
  std::optional<SessionTime> deadline;
  while (true) {
    if (away && batch_.is_ready()) look_for_revocations(now(), true);
    drop_revoked();
    if (batch_.is_ready()) {
      const auto begun = link().start(batch_.left(), batch_.hand_out(), is_whole, batch_.is_again());
      batch_.begun(begun.end);
      if (begun.is_named) link().transmit(now(), true);
      return true;
    }
    const Result<bool> come = next_batch(timeout, deadline);
    if (!come || !*come) return come;
    if (batch_.is_begun() && !is_whole && !away) return true;
  }
}

LIGHTQ_INLINE void ConsumerDriver::drop_revoked() {
  std::uint64_t dropped = 0;
  while (batch_.is_ready()) {
    const OffsetRange revoked = link().leases().first_revoked(batch_.left(), batch_.hand_out());
    if (batch_.left().begin < revoked.begin || revoked.begin == revoked.end) break;
    const OffsetRange gone{revoked.begin, std::min(revoked.end, batch_.left().end)};
    for (; batch_.is_ready() && batch_.left().begin < gone.end; ++dropped) (void)batch_.take();
    (void)settling_->revoked.take(gone);  // the program does not have them
  }
  if (dropped == 0) return;
  link().deliveries().not_given(dropped);
  link().output().credit().dropped(dropped);
}

LIGHTQ_INLINE void ConsumerDriver::look_for_revocations(SessionTime time, bool at_once) {
  if (link().look_for_revocations(time, at_once) && batch_.is_ready()) batch_.begun(batch_.left().begin);
}

LIGHTQ_INLINE void ConsumerDriver::keep_waiting(SessionTime time) {
  if (const std::optional<OffsetRange> waiting = batch_.take_waiting()) link().keep(*waiting, time);
}

LIGHTQ_INLINE Result<bool> ConsumerDriver::next_batch(Timeout timeout, std::optional<SessionTime>& deadline) {
  SessionTime time = now();
  batch_.clear();
  link().release(time);
  if (!deadline) deadline = session_deadline(time, timeout);
  bool away = false;
  while (true) {
    receive_from(time);
    keep_waiting(time);
    const SessionConsumeOutput& output = link().output();
    const bool is_last = timeout.count() <= 0 || time >= *deadline;
    link().transmit(time, !batch_.has_batch() && (is_last || time >= output.gathers_until(time)));
    if (batch_.has_batch()) {
      if (away) look_for_revocations(time, true);  // perhaps the process was stopped in the wait
      pace_.received(time);
      return true;
    }
    if (const Result<void> able = usable(); !able) return able.error();
    if (is_last) return false;
    wait_for_io(output.has_news() ? std::min(*deadline, output.gathers_until(time)) : *deadline);
    const SessionTime before = std::exchange(time, now());
    away = ConsumerPace::is_long(time - before);
  }
}

LIGHTQ_INLINE void ConsumerDriver::wait_for_io(SessionTime until) const {
  const SessionConnection& connection = link().route().connection();
  clock_.wait(connection.fd(), connection.wait_events(), std::min(until, next_timer()));
}

}  // namespace lightq::inline v1
