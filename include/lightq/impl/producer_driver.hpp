/// The definitions of <lightq/detail/calls/producer_driver.hpp>. Layer: client.
#pragma once

#include <lightq/detail/calls/producer_driver.hpp>

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <lightq/base/batch_layout.hpp>
#include <lightq/base/due.hpp>
#include <lightq/base/flag_while.hpp>
#include <lightq/base/limits.hpp>
#include <lightq/detail/message_limit.hpp>
#include <lightq/impl/producer_errors.hpp>
#include <lightq/impl/producer_space.hpp>
#include <lightq/impl/session_batches.hpp>
#include <lightq/impl/session_produce_link.hpp>

namespace lightq::inline v1 {

/// The parts of a driver that a sent message does not touch, and to which its packing refers. Not movable.
struct ProducerDriver::Parts {
  Parts(std::string topic, SessionJoin join, ProducerOptions given, bool moved)
      : options(std::move(given)),
        clock(options.clock),
        link(std::move(topic), std::move(join), options),
        space(options, link),
        errors(link, moved) {}
  ProducerOptions options;
  SessionClock clock;
  SendReports reports;
  SessionProduceLink link;
  const ProducerSpace space;
  const ProducerErrors errors;

  /// Returns the parts that all producers of this thread use after a move: closed, without messages.
  static Parts& after_move();
};

LIGHTQ_INLINE ProducerDriver::Parts& ProducerDriver::Parts::after_move() {
  struct Closed : Parts {
    Closed() : Parts({}, {}, {}, true) { link.close(reports); }
  };
  static thread_local Closed closed;
  return closed;
}

LIGHTQ_INLINE ProducerDriver::ProducerDriver(std::string topic, SessionJoin join, ProducerOptions options)
    : parts_(std::make_unique<Parts>(std::move(topic), std::move(join), std::move(options), false)),
      packing_(parts_->link.batches().open(), parts_->reports,
               AttributeKinds(parts_->options.delayed ? AttributeKinds::dues : std::uint16_t{0})) {}
LIGHTQ_INLINE ProducerDriver::ProducerDriver(ProducerDriver&&) noexcept = default;
LIGHTQ_INLINE ProducerDriver& ProducerDriver::operator=(ProducerDriver&&) noexcept = default;
LIGHTQ_INLINE ProducerDriver::~ProducerDriver() = default;

LIGHTQ_INLINE ProducerDriver::Parts& ProducerDriver::parts() const {
  return parts_ != nullptr ? *parts_ : Parts::after_move();
}

LIGHTQ_INLINE SessionProduceLink& ProducerDriver::link() const {
  return parts().link;
}

LIGHTQ_INLINE SendReports& ProducerDriver::reports() const {
  return parts().reports;
}

LIGHTQ_INLINE const ProducerErrors& ProducerDriver::errors() const {
  return parts().errors;
}

LIGHTQ_INLINE SessionBatches& ProducerDriver::batches() const {
  return link().batches();
}

LIGHTQ_INLINE SessionTime ProducerDriver::now() const {
  return parts().clock.now();
}

LIGHTQ_INLINE Result<void> ProducerDriver::make_room(std::size_t payload_bytes,
                                                     const Attributes& attributes) {
  const Parts& parts = this->parts();
  const auto too_large = [&](std::size_t bytes) {
    return parts.errors.of_topic(parts.space.message_limit().exceeded_by(bytes));
  };
  if (payload_bytes > limits::message_bytes_max_max) return too_large(payload_bytes);
  if (const Result<void> valid = attributes.check_for_producer(); !valid)
    return parts.errors.of_topic(valid.error());
  if (attributes.has_due()) [[unlikely]] {
    if (const Result<void> fits = check_due(attributes); !fits) return parts.errors.of_topic(fits.error());
  }
  if (packing_.is_writing()) return parts.errors.inside(true);
  const Timeout patience = parts.options.send_timeout;
  const std::size_t own_bytes = attributes_bytes(packing_.kinds_for(attributes), attributes) + payload_bytes;
  SessionTime deadline = SessionTime::min();
  while (true) {
    if (const Result<void> able = parts.errors.usable(); !able) return able.error();
    const std::size_t room = refresh_room();
    if (record_bytes(own_bytes) > packing_.record_bytes_max()) return too_large(own_bytes);
    const std::optional<std::size_t> bytes = packing_.bytes_in_open(payload_bytes, attributes);
    if (bytes && record_bytes(*bytes) <= std::min(room, packing_.record_bytes_max())) return {};
    if (!batches().open().empty()) {
      packing_.use(AttributeKinds(attributes));
      roll();
      drive();
      continue;
    }
    const std::size_t batch_bytes =
        std::max(parts.space.batch_bytes(), batch_layout::header_bytes + record_bytes(own_bytes));
    if (parts.space.has_room_for(batch_bytes, !is_inside())) {
      packing_.reserve(record_bytes(own_bytes));
      return {};
    }
    if (is_inside() || patience.count() == 0)
      return parts.errors.no_room(ErrorCode::limit_reached, unconfirmed());
    if (deadline == SessionTime::min()) deadline = session_deadline(now(), patience);
    if (now() >= deadline) return parts.errors.no_room(ErrorCode::timeout, unconfirmed());
    wait_for_io(deadline);
    drive();
  }
}

LIGHTQ_INLINE Result<void> ProducerDriver::check_due(const Attributes& attributes) const {
  if (!parts().options.delayed)
    return Error{ErrorCode::invalid_argument, "a delay needs a producer with ProducerOptions::delayed"};
  const std::int64_t due = attributes.due();
  Timestamp now;  // of no importance to a delay
  if (due >= 0) {
    const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
    now = {std::chrono::floor<std::chrono::microseconds>(since_1970).count()};
  }
  if (!is_due_too_far(due, now)) return {};
  return Error{ErrorCode::invalid_argument, "a message is due at most ten years (3,653 days) ahead"};
}

LIGHTQ_INLINE void ProducerDriver::drive(bool by_the_way) {
  pace_.look();
  if (is_inside() || was_moved()) return;
  const SessionTime time = now();
  exchange(time, by_the_way);
  pace_.give_way(time);
  const BatchBuilder& open = batches().open();
  pace_.look_again_behind(open.record_count());
  const Timeout linger = parts_->options.linger;
  if (!open.empty() && linger_ends_ == session_never && linger.count() > 0)
    linger_ends_ = session_deadline(time, linger);
  refresh_room();
  parts_->reports.rethrow();
}

LIGHTQ_INLINE Result<void> ProducerDriver::poll(Timeout timeout) {
  if (packing_.is_writing()) return errors().inside(true);
  const std::uint64_t before = changes();
  drive();
  if (timeout.count() > 0 && changes() == before && errors().usable()) {
    wait_for_io(session_deadline(now(), timeout));
    drive();
  }
  return errors().usable();
}

template <typename Done>
Result<void> ProducerDriver::wait_until(Done done, Timeout timeout, const char* otherwise) {
  if (was_moved()) return errors().closed();
  if (!errors().is_here()) return errors().usable();
  if (is_inside()) return errors().inside(packing_.is_writing());
  const SessionTime deadline = session_deadline(now(), timeout);
  while (true) {
    drive();
    if (done()) return {};
    if (const Result<void> able = errors().usable(); !able) return able.error();
    if (now() >= deadline) return errors().not_in_time(otherwise, timeout, unconfirmed());
    wait_for_io(deadline);
  }
}

LIGHTQ_INLINE Result<void> ProducerDriver::wait_settled(std::uint64_t number, Timeout timeout) {
  if (is_inside()) return errors().inside(packing_.is_writing());
  const FlagWhile flushing(flushing_);
  return wait_until([this, number] { return first_unsettled() > number; }, timeout, "not confirmed");
}

LIGHTQ_INLINE Result<void> ProducerDriver::flush(Timeout timeout) {
  if (is_inside()) return errors().inside(packing_.is_writing());
  const FlagWhile flushing(flushing_);
  const Result<void> waited = wait_until([this] { return has_settled_all(); }, timeout, "not confirmed");
  if (std::optional<Error> failure = reports().take_failure()) return *std::move(failure);
  return waited;
}

LIGHTQ_INLINE Result<void> ProducerDriver::close(Timeout timeout) {
  if (link().state() == SessionState::closed) return {};
  if (is_inside()) return errors().inside(packing_.is_writing());
  Result<void> flushed = flush(timeout);
  {
    const FlagWhile inside(inside_);
    if (!batches().open().empty()) roll();
    link().close(reports());
    (void)reports().take_failure();
  }
  packing_.reserve(0);
  reports().rethrow();
  return flushed;
}

LIGHTQ_INLINE void ProducerDriver::set_send_timeout(Timeout timeout) {
  if (!was_moved()) parts_->options.send_timeout = std::max(timeout, Timeout(0));
}

LIGHTQ_INLINE void ProducerDriver::resolve(bool resend) {
  if (is_inside() || was_moved()) return;
  {
    const FlagWhile inside(inside_);
    link().resolve(resend, reports());
  }
  refresh_room();
  reports().rethrow();
}

LIGHTQ_INLINE std::uint64_t ProducerDriver::unconfirmed() const {
  return was_moved() ? 0 : packing_.sent() - parts_->reports.count();
}

LIGHTQ_INLINE SessionTime ProducerDriver::next_timer() const {
  const SessionTime time = now();
  const SessionTime of_link = link().next_timer(time);
  const bool lingers = link().may_send(time) && batches().all_sent() && !batches().open().empty();
  return lingers ? std::min(of_link, linger_ends_) : of_link;
}

LIGHTQ_INLINE void ProducerDriver::exchange(SessionTime time, bool by_the_way) {
  const FlagWhile inside(inside_);
  SessionProduceLink& link = parts_->link;
  SendReports& reports = parts_->reports;
  if (!by_the_way || link.state() != SessionState::open || pace_.may_read(time)) {
    pace_.reads(time);
    link.receive(time, reports);
  }
  if (is_ripe(time)) roll();
  link.transmit(time, reports);
  if (link.state() == SessionState::failed && !link.batches().open().empty()) {
    roll();
    link.give_up_all(reports);
  }
}

LIGHTQ_INLINE bool ProducerDriver::is_ripe(SessionTime time) const {
  const SessionBatches& all = batches();
  if (all.open().empty() || !all.all_sent() || !link().may_send(time)) return false;
  return flushing_ || all.in_flight() < parts().options.eager_batches || time >= linger_ends_;
}

LIGHTQ_INLINE void ProducerDriver::roll() {
  const auto& opened = link().opened();
  const bool at_disk = opened && opened->level == ConfirmLevel::flushed;
  pace_.closed(batches().open().size_bytes());
  batches().roll(packing_.sent(), flushing_ && at_disk, parts().options.compression);
  packing_.begin(batches().open());
  linger_ends_ = session_never;
}

LIGHTQ_INLINE std::size_t ProducerDriver::refresh_room() {
  const ProducerSpace& space = parts().space;
  const std::size_t room = space.left_in_open(!is_inside());
  packing_.refresh(room, record_bytes(space.message_limit().bytes));
  return room;
}

LIGHTQ_INLINE bool ProducerDriver::has_settled_all() const {
  return batches().open().empty() && batches().count() == 0;
}

LIGHTQ_INLINE std::uint64_t ProducerDriver::first_unsettled() const {
  return batches().first_message().value_or(packing_.sent() - batches().open().record_count());
}

LIGHTQ_INLINE std::uint64_t ProducerDriver::changes() const {
  return packing_.sent() - unconfirmed() + link().opens() + static_cast<std::uint64_t>(link().state());
}

LIGHTQ_INLINE void ProducerDriver::wait_for_io(SessionTime until) {
  const SessionConnection& connection = link().route().connection();
  const auto events = static_cast<short>(connection.wants_write() ? POLLIN | POLLOUT : POLLIN);
  parts().clock.wait(connection.fd(), events, std::min(until, next_timer()));
  pace_.waited();
}

}  // namespace lightq::inline v1
