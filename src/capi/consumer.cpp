/// The consumer of C. Layer: capi.
#include <algorithm>
#include <chrono>
#include <utility>

#include "capi/boundary.hpp"
#include "capi/conversions.hpp"
#include "capi/handles.hpp"
#include "capi/sized.hpp"

namespace lightq::capi {

namespace {

/// Returns the message as the C++ client knows it, without its bytes.
Delivered delivered_of(const lightq_consumer& from, const lightq_message& message) {
  Delivered delivered{};
  delivered.offset = {message.offset};
  delivered.hand_out = message.lease;
  delivered.holder = from.holder;
  return delivered;
}

int fail_revoked() {
  return fail(
      LIGHTQ_REVOKED,
      "the message is not in flight to this consumer: the broker has taken it back, its connection has "
      "ended, or it was settled before");
}

/// Settles a message with `settle(consumer, delivered)`, if it is in flight. Errors: REVOKED.
template <typename Settle>
int settle(lightq_consumer* consumer, const lightq_message* message, Settle settle) {
  return in_turn(consumer, [&](lightq_consumer& of) -> int {
    if (!is_sized(message)) return fail_argument("lightq_message is null, or its size is that of no version");
    const Delivered delivered = delivered_of(of, *message);
    if (of.consumer.finished()) return fail(LIGHTQ_CLOSED, "the consumer is closed");
    if (delivered.revoked()) return fail_revoked();
    return settle(of.consumer, delivered) ? LIGHTQ_OK : fail_revoked();
  });
}

/// Returns a time as the C++ client takes it: negative ones count as 0.
Timeout time_of(std::int64_t milliseconds) {
  return Timeout(std::clamp<std::int64_t>(milliseconds, 0, UINT32_MAX));
}

int give_count(std::uint64_t found, std::uint64_t* count) {
  if (count != nullptr) *count = found;
  return LIGHTQ_OK;
}

}  // namespace

}  // namespace lightq::capi

using namespace lightq::capi;

extern "C" {

int lightq_consumer_open(lightq_client* client, const char* topic, const lightq_consumer_options* options,
                         lightq_consumer** consumer) {
  return open_handle(client, topic, options, consumer, [](auto& of, const char* name, auto& opening) {
    return of.consumer(name, std::move(opening.options), opening.transport);
  });
}

int lightq_next(lightq_consumer* consumer, lightq_message* message, int timeout_ms) {
  return in_turn(consumer, [&](lightq_consumer& of) -> int {
    if (!is_sized(message)) [[unlikely]]
      return fail_argument("lightq_message is null, or its size is that of no version");
    const auto received = of.consumer.receive(timeout_of(timeout_ms));
    if (!received) [[unlikely]]
      return fail(received.error());
    if (!*received) return fail(LIGHTQ_TIMEOUT, "no message arrived in time");
    of.holder = (*received)->holder;
    write_sized(*message, [&](lightq_message& to) { write_message(**received, to); });
    return LIGHTQ_OK;
  });
}

int lightq_ack(lightq_consumer* consumer, const lightq_message* message) {
  return settle(consumer, message, [](lightq::Consumer& of, const lightq::Delivered& delivered) {
    return of.acknowledge(delivered) == 1;
  });
}

int lightq_release(lightq_consumer* consumer, const lightq_message* message) {
  return settle(consumer, message, [](lightq::Consumer& of, const lightq::Delivered& delivered) {
    of.release(delivered.offset);
    return true;
  });
}

int lightq_retry(lightq_consumer* consumer, const lightq_message* message, int64_t delay_ms) {
  return settle(consumer, message, [&](lightq::Consumer& of, const lightq::Delivered& delivered) {
    of.reject(delivered.offset, time_of(delay_ms));
    return true;
  });
}

int lightq_dead(lightq_consumer* consumer, const lightq_message* message, const char* reason) {
  return settle(consumer, message, [&](lightq::Consumer& of, const lightq::Delivered& delivered) {
    of.dead_letter(delivered.offset, reason == nullptr ? "" : reason);
    return true;
  });
}

int lightq_extend(lightq_consumer* consumer, const lightq_message* message, int64_t time_ms) {
  return settle(consumer, message, [&](lightq::Consumer& of, const lightq::Delivered& delivered) {
    of.extend(delivered.offset, time_of(time_ms));
    return true;
  });
}

int lightq_ack_range(lightq_consumer* consumer, uint64_t begin, uint64_t end, uint64_t* count) {
  return in_turn(consumer, [&](lightq_consumer& of) -> int {
    if (begin > end) return fail_argument("the range ends before it begins");
    return give_count(of.consumer.acknowledge(lightq::OffsetRange{{begin}, {end}}), count);
  });
}

int lightq_ack_before(lightq_consumer* consumer, uint64_t offset, uint64_t* count) {
  return in_turn(consumer, [&](lightq_consumer& of) -> int {
    return give_count(of.consumer.acknowledge_before({offset}), count);
  });
}

int lightq_revoked(lightq_consumer* consumer, const lightq_message* message) {
  int revoked = 1;
  (void)in_turn(consumer, [&](lightq_consumer& of) -> int {
    if (!is_sized(message)) return fail_argument("lightq_message is null, or its size is that of no version");
    revoked = of.consumer.finished() || delivered_of(of, *message).revoked() ? 1 : 0;
    return LIGHTQ_OK;
  });
  return revoked;
}

int lightq_watch_open(lightq_consumer* consumer, const lightq_message* message, lightq_watch** watch) {
  if (watch == nullptr) return fail_argument("there is no place for the watch");
  *watch = nullptr;
  return in_turn(consumer, [&](lightq_consumer& of) -> int {
    if (!is_sized(message)) return fail_argument("lightq_message is null, or its size is that of no version");
    *watch = new lightq_watch{of.consumer.stop_token(delivered_of(of, *message))};
    return LIGHTQ_OK;
  });
}

int lightq_watch_revoked(const lightq_watch* watch) {
  return watch == nullptr || watch->token.stop_requested() ? 1 : 0;
}

void lightq_watch_free(lightq_watch* watch) {
  delete watch;
}

int lightq_seek(lightq_consumer* consumer, int from, uint64_t value, uint64_t* offset, int timeout_ms) {
  return in_turn(consumer, [&](lightq_consumer& of) -> int {
    const auto place = place_of(from, value);
    if (!place) return fail(place.error());
    const auto moved = of.consumer.seek(*place, timeout_of(timeout_ms));
    return moved ? give_count(moved->value, offset) : fail(moved.error());
  });
}

int lightq_consumer_pause(lightq_consumer* consumer, int paused) {
  return in_turn(consumer, [&](lightq_consumer& of) -> int {
    if (paused != 0) {
      of.consumer.pause();
    } else {
      of.consumer.resume();
    }
    return LIGHTQ_OK;
  });
}

int lightq_consumer_poll(lightq_consumer* consumer) {
  return in_turn(consumer, [&](lightq_consumer& of) { return code_of(of.consumer.poll()); });
}

int lightq_consumer_interest(lightq_consumer* consumer, lightq_interest* interest) {
  return in_turn(consumer, [&](lightq_consumer& of) -> int {
    const int fd = of.consumer.fd();
    const bool wants_write = of.consumer.wants_write();
    const int code = write_interest(interest, fd, wants_write, of.consumer.next_timer());
    if (code == LIGHTQ_OK && of.consumer.is_ready()) interest->timeout_ms = 0;
    return code;
  });
}

int lightq_consumer_fd(lightq_consumer* consumer) {
  int fd = -1;
  (void)in_turn(consumer, [&](lightq_consumer& of) -> int {
    fd = of.consumer.fd();
    return LIGHTQ_OK;
  });
  return fd;
}

int lightq_consumer_wait_open(lightq_consumer* consumer, int timeout_ms) {
  return in_turn(consumer,
                 [&](lightq_consumer& of) { return code_of(of.consumer.wait_open(timeout_of(timeout_ms))); });
}

int lightq_consumer_flush(lightq_consumer* consumer, int timeout_ms) {
  return in_turn(consumer,
                 [&](lightq_consumer& of) { return code_of(of.consumer.flush(timeout_of(timeout_ms))); });
}

int lightq_consumer_state(lightq_consumer* consumer) {
  int state = LIGHTQ_STATE_CLOSED;
  (void)in_turn(consumer, [&](lightq_consumer& of) -> int {
    state = static_cast<int>(of.consumer.state());
    return LIGHTQ_OK;
  });
  return state;
}

int lightq_consumer_get_stats(lightq_consumer* consumer, lightq_consumer_stats* stats) {
  return in_turn(consumer, [&](lightq_consumer& of) -> int {
    if (!is_sized(stats))
      return fail_argument("lightq_consumer_stats is null, or its size is that of no version");
    const lightq::ConsumerStats known = of.consumer.stats();
    write_sized(*stats, [&](lightq_consumer_stats& to) {
      to.received = known.received;
      to.again = known.again;
      to.acknowledged = known.acknowledged;
      to.rejected = known.rejected;
      to.late = known.late;
      to.revoked = known.revoked;
      to.lost = known.lost;
      to.opens = known.opens;
      to.new_logs = known.new_logs;
      to.unacknowledged = of.consumer.unacknowledged();
    });
    return LIGHTQ_OK;
  });
}

int lightq_consumer_late(lightq_consumer* consumer, lightq_range* ranges, size_t most, size_t* count) {
  return in_turn(consumer, [&](lightq_consumer& of) -> int {
    if (count == nullptr || (ranges == nullptr && most > 0))
      return fail_argument("there is no place for the ranges or their count");
    if (of.late.empty()) of.late = of.consumer.take_late();
    *count = std::min(most, of.late.size());
    for (std::size_t i = 0; i < *count; ++i) ranges[i] = {of.late[i].begin.value, of.late[i].end.value};
    of.late.erase(of.late.begin(), of.late.begin() + static_cast<std::ptrdiff_t>(*count));
    return LIGHTQ_OK;
  });
}

int lightq_consumer_close(lightq_consumer* consumer, int timeout_ms) {
  return in_turn(consumer, [&](lightq_consumer& of) -> int {
    if (of.consumer.finished()) return fail(LIGHTQ_CLOSED, "the consumer was closed before");
    return code_of(of.consumer.close(timeout_of(timeout_ms)));
  });
}

int lightq_consumer_free(lightq_consumer* consumer) {
  return free_handle(consumer);
}
}
