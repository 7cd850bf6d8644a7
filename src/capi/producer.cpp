/// The producer of C. Layer: capi.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <lightq/base/limits.hpp>

#include "capi/boundary.hpp"
#include "capi/conversions.hpp"
#include "capi/handles.hpp"
#include "capi/sized.hpp"

namespace lightq::capi {

namespace {

/// The attributes of one message. Not movable: the attributes refer to the headers.
struct GivenAttributes {
  GivenAttributes() = default;
  GivenAttributes(const GivenAttributes&) = delete;
  GivenAttributes& operator=(const GivenAttributes&) = delete;
  std::vector<Header> headers;
  Attributes attributes;
};

/// Returns bytes that C has given; nothing if they are missing.
std::optional<std::string_view> bytes_of(const void* data, std::size_t bytes) {
  if (data == nullptr && bytes > 0) return std::nullopt;
  return std::string_view(static_cast<const char*>(data), bytes);
}

/// Takes the headers. Errors: invalid_argument, too_large.
Result<void> take_headers(const lightq_attributes& given, GivenAttributes& to) {
  if (given.header_count > limits::headers_max)
    return Error{ErrorCode::too_large,
                 "a message has at most " + std::to_string(limits::headers_max) + " headers"};
  if (given.headers == nullptr && given.header_count > 0)
    return Error{ErrorCode::invalid_argument, "headers is null"};
  for (std::size_t i = 0; i < given.header_count; ++i) {
    const lightq_header& header = given.headers[i];
    const auto name = bytes_of(header.name, header.name_bytes);
    const auto value = bytes_of(header.value, header.value_bytes);
    if (!name || !value) return Error{ErrorCode::invalid_argument, "the name or value of a header is null"};
    to.headers.push_back({*name, *value});
  }
  to.attributes.headers = to.headers;
  return {};
}

/// Takes the attributes of a message. Errors: invalid_argument, not_supported, too_large.
Result<void> take_attributes(const lightq_attributes* given, GivenAttributes& to) {
  using std::chrono::milliseconds;
  const auto read = read_sized(given, "lightq_attributes");
  if (!read) return read.error();
  const auto key = bytes_of(read->key, read->key_bytes);
  const auto id = bytes_of(read->id, read->id_bytes);
  if (!key || !id) return Error{ErrorCode::invalid_argument, "the key or the id is null"};
  if (read->delay_ms > limits::delay_us_max / 1000 || read->delay_ms < 0)
    return Error{ErrorCode::invalid_argument, "delay_ms is 0 to ten years (3,653 days)"};
  to.attributes.key = *key;
  to.attributes.id = *id;
  to.attributes.time = {read->time_us};
  to.attributes.delay = milliseconds(read->delay_ms);
  to.attributes.deliver_at = {read->deliver_at_us};
  to.attributes.ttl = milliseconds(read->ttl_ms);
  return take_headers(*read, to);
}

/// Checks a body. Errors: INVALID_ARGUMENT, TOO_LARGE.
int check_body(const void* body, std::size_t bytes) {
  if (body == nullptr && bytes > 0) [[unlikely]]
    return fail_argument("the body is null");
  if (bytes > limits::message_bytes_max_max) [[unlikely]]
    return fail(LIGHTQ_TOO_LARGE, "no broker accepts a message of this length");
  return LIGHTQ_OK;
}

/// Sends a message, and sets `*number` unless it is null.
int send(lightq_producer& to, const void* body, std::size_t bytes, const lightq_attributes* attributes,
         int timeout_ms, std::uint64_t* number, MessageCallback callback = {}) {
  if (const int code = check_body(body, bytes); code != LIGHTQ_OK) return code;
  const Timeout timeout = timeout_of(timeout_ms);
  if (timeout != to.send_timeout) [[unlikely]]
    to.producer.set_send_timeout(to.send_timeout = timeout);
  const ByteView payload(static_cast<const std::byte*>(body), bytes);
  std::optional<Result<std::uint64_t>> sent;
  if (attributes == nullptr && !callback) [[likely]] {
    sent.emplace(to.producer.send(payload));
  } else {
    GivenAttributes given;
    if (const Result<void> taken = take_attributes(attributes, given); !taken) return fail(taken.error());
    sent.emplace(to.producer.send(payload, given.attributes, std::move(callback)));
  }
  if (!*sent) [[unlikely]]
    return fail(sent->error());
  if (number != nullptr) *number = **sent;
  return LIGHTQ_OK;
}

/// Passes a report on to a callback of C.
void report_to(lightq_report_callback callback, void* user, const SendReport& report) {
  const lightq_report told = report_of(report);
  call_back([&] { callback(user, &told); });
}
static_assert(static_cast<int>(Fate::confirmed) == LIGHTQ_CONFIRMED);
static_assert(static_cast<int>(Fate::refused) == LIGHTQ_REFUSED);
static_assert(static_cast<int>(Fate::unknown) == LIGHTQ_UNKNOWN);
static_assert(static_cast<int>(SessionState::in_doubt) == LIGHTQ_STATE_IN_DOUBT);
static_assert(static_cast<int>(SessionState::closed) == LIGHTQ_STATE_CLOSED);

/// The fate of one message.
struct Outcome {
  std::optional<Fate> fate;
  Error error;
};

}  // namespace

}  // namespace lightq::capi

using namespace lightq::capi;

extern "C" {

int lightq_producer_open(lightq_client* client, const char* topic, const lightq_producer_options* options,
                         lightq_producer** producer) {
  return open_handle(client, topic, options, producer, [](auto& of, const char* name, auto& opening) {
    return of.producer(name, std::move(opening.options), opening.transport);
  });
}

int lightq_send(lightq_producer* producer, const void* body, size_t body_bytes,
                const lightq_attributes* attributes, int timeout_ms) {
  return in_turn(
      producer,
      [&](lightq_producer& to) { return send(to, body, body_bytes, attributes, timeout_ms, nullptr); }, true);
}

int lightq_send_numbered(lightq_producer* producer, const void* body, size_t body_bytes,
                         const lightq_attributes* attributes, int timeout_ms, uint64_t* number) {
  return in_turn(
      producer,
      [&](lightq_producer& to) { return send(to, body, body_bytes, attributes, timeout_ms, number); }, true);
}

int lightq_send_confirmed(lightq_producer* producer, const void* body, size_t body_bytes,
                          const lightq_attributes* attributes, int timeout_ms) {
  return in_turn(producer, [&](lightq_producer& to) -> int {
    const auto begun = std::chrono::steady_clock::now();
    const auto outcome = std::make_shared<Outcome>();
    std::uint64_t number = 0;
    const int code = send(to, body, body_bytes, attributes, timeout_ms, &number,
                          [outcome](lightq::Fate fate, const lightq::Error* error) {
                            outcome->fate = fate;
                            if (error != nullptr) outcome->error = *error;
                          });
    if (code != LIGHTQ_OK) return code;
    const auto passed = std::chrono::duration_cast<lightq::Timeout>(std::chrono::steady_clock::now() - begun);
    const auto waited =
        to.producer.wait_settled(number, std::max(timeout_of(timeout_ms) - passed, lightq::Timeout(0)));
    if (!outcome->fate)
      return waited ? fail(LIGHTQ_INTERNAL, "a settled message has no fate") : fail(waited.error());
    return *outcome->fate == lightq::Fate::confirmed ? LIGHTQ_OK : fail(outcome->error);
  });
}

int lightq_flush(lightq_producer* producer, int timeout_ms) {
  return in_turn(producer,
                 [&](lightq_producer& of) { return code_of(of.producer.flush(timeout_of(timeout_ms))); });
}

int lightq_wait_settled(lightq_producer* producer, uint64_t number, int timeout_ms) {
  return in_turn(producer, [&](lightq_producer& of) -> int {
    if (number >= of.producer.stats().sent) return fail_argument("no message of this number was sent");
    return code_of(of.producer.wait_settled(number, timeout_of(timeout_ms)));
  });
}

int lightq_producer_poll(lightq_producer* producer, int timeout_ms) {
  return in_turn(producer,
                 [&](lightq_producer& of) { return code_of(of.producer.poll(timeout_of(timeout_ms))); });
}

int lightq_producer_interest(lightq_producer* producer, lightq_interest* interest) {
  return in_turn(producer, [&](lightq_producer& of) -> int {
    const int fd = of.producer.fd();
    const bool wants_write = of.producer.wants_write();
    return write_interest(interest, fd, wants_write, of.producer.next_timer());
  });
}

int lightq_producer_fd(lightq_producer* producer) {
  int fd = -1;
  (void)in_turn(producer, [&](lightq_producer& of) -> int {
    fd = of.producer.fd();
    return LIGHTQ_OK;
  });
  return fd;
}

int lightq_producer_on_report(lightq_producer* producer, lightq_report_callback callback, void* user) {
  return in_turn(producer, [&](lightq_producer& of) -> int {
    of.producer.on_report(callback == nullptr ? lightq::ReportCallback()
                                              : [callback, user](const lightq::SendReport& report) {
                                                  report_to(callback, user, report);
                                                });
    return LIGHTQ_OK;
  });
}

int lightq_producer_keep_reports(lightq_producer* producer) {
  return in_turn(producer, [&](lightq_producer& of) -> int {
    of.producer.on_report([&of](const lightq::SendReport& report) { of.reports.add(report); });
    return LIGHTQ_OK;
  });
}

int lightq_next_report(lightq_producer* producer, lightq_report* report) {
  return in_turn(producer, [&](lightq_producer& of) -> int {
    if (!is_sized(report)) return fail_argument("lightq_report is null, or its size is that of no version");
    auto kept = of.reports.take();
    if (!kept) return fail(LIGHTQ_TIMEOUT, "no report is kept");
    of.told = std::move(kept->text);
    kept->report.size = report->size;  // a program of another version has another struct
    kept->report.text = of.told.c_str();
    write_sized(*report, [&](lightq_report& to) { to = kept->report; });
    return LIGHTQ_OK;
  });
}

int lightq_producer_resolve(lightq_producer* producer, int resend) {
  return in_turn(producer, [&](lightq_producer& of) -> int {
    of.producer.resolve(resend != 0);
    return LIGHTQ_OK;
  });
}

int lightq_producer_state(lightq_producer* producer) {
  int state = LIGHTQ_STATE_CLOSED;
  const auto read = [&](lightq_producer& of) {
    state = static_cast<int>(of.producer.state());
    return LIGHTQ_OK;
  };
  (void)in_turn(producer, read, true);
  return state;
}

int lightq_producer_identity(lightq_producer* producer, lightq_identity* identity) {
  return in_turn(producer, [&](lightq_producer& of) -> int {
    if (!is_sized(identity))
      return fail_argument("lightq_identity is null, or its size is that of no version");
    const lightq::ProducerIdentity& known = of.producer.identity();
    const auto& opened = of.producer.opened();
    write_sized(*identity, [&](lightq_identity& to) {
      to.id = known.id;
      to.epoch = known.epoch;
      to.has_secret = opened && opened->secret ? 1 : 0;
      std::memset(to.secret, 0, sizeof to.secret);
      if (to.has_secret != 0) std::memcpy(to.secret, opened->secret->data(), sizeof to.secret);
    });
    return LIGHTQ_OK;
  });
}

int lightq_producer_get_stats(lightq_producer* producer, lightq_producer_stats* stats) {
  return in_turn(producer, [&](lightq_producer& of) -> int {
    if (!is_sized(stats))
      return fail_argument("lightq_producer_stats is null, or its size is that of no version");
    const lightq::ProducerStats known = of.producer.stats();
    write_sized(*stats, [&](lightq_producer_stats& to) {
      to.sent = known.sent;
      to.confirmed = known.confirmed;
      to.refused = known.refused;
      to.unknown = known.unknown;
      to.lost = known.lost;
      to.unconfirmed = of.producer.unconfirmed();
      to.opens = known.opens;
    });
    return LIGHTQ_OK;
  });
}

int lightq_producer_close(lightq_producer* producer, int timeout_ms) {
  return in_turn(producer, [&](lightq_producer& of) -> int {
    if (of.producer.state() == lightq::SessionState::closed)
      return fail(LIGHTQ_CLOSED, "the producer was closed before");
    return code_of(of.producer.close(timeout_of(timeout_ms)));
  });
}

int lightq_producer_free(lightq_producer* producer) {
  return free_handle(producer);
}
}
