/// Converts the options of C. Layer: capi.
#include "capi/conversions.hpp"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstring>

#include "capi/boundary.hpp"
#include "capi/sized.hpp"

namespace lightq::capi {

namespace {

Error out_of_range(const char* name) {
  return {ErrorCode::invalid_argument, std::string(name) + " is out of its range"};
}

/// Sets `to` if the program has given a time.
void take_time(int given, Timeout& to) {
  if (given != 0) to = Timeout(given);
}

Result<std::optional<Transport>> transport_of(int given) {
  switch (given) {
    case LIGHTQ_TRANSPORT_AUTO: return std::optional<Transport>();
    case LIGHTQ_TRANSPORT_TCP: return std::optional(Transport::tcp);
    case LIGHTQ_TRANSPORT_IPC: return std::optional(Transport::ipc);
    default: return out_of_range("transport");
  }
}

/// Takes the options that producers, consumers and readers have in common. Errors: invalid_argument.
template <typename Given, typename Options>
Result<void> take_connection(const Given& given, Opening<Options>& to) {
  const Result<std::optional<Transport>> transport = transport_of(given.transport);
  if (!transport) return transport.error();
  to.transport = *transport;
  if (given.over_zmq != 0) to.options.connection = ConnectionType::zmq;
  to.options.share_memory = given.no_shared_memory == 0;
  take_time(given.heartbeat_ms, to.options.heartbeat);
  if (given.heartbeat_ms == -1) to.options.heartbeat = Timeout(0);
  take_time(given.attempt_timeout_ms, to.options.attempt_timeout);
  take_time(given.backoff_ms, to.options.backoff);
  take_time(given.backoff_max_ms, to.options.backoff_max);
  to.options.name = text_of(given.name);
  return {};
}

/// Takes the longest frame. Errors: invalid_argument.
template <typename Given, typename Options>
Result<void> take_frame_bytes(const Given& given, Options& to) {
  if (given.frame_bytes_max < 0) return out_of_range("frame_bytes_max");
  if (given.frame_bytes_max > 0) to.frame_bytes_max = static_cast<std::uint32_t>(given.frame_bytes_max);
  return {};
}

Result<void> take_identity(const lightq_identity* given, ProducerOptions& to) {
  const auto identity = read_sized(given, "lightq_identity");
  if (!identity) return identity.error();
  if (identity->epoch < 0 || identity->epoch > UINT16_MAX) return out_of_range("epoch");
  to.identity.id = identity->id;
  to.identity.epoch = static_cast<std::uint16_t>(identity->epoch);
  if (identity->has_secret == 0) return {};
  session::ProducerSecret secret;
  static_assert(sizeof secret == sizeof identity->secret);
  std::memcpy(secret.data(), identity->secret, sizeof secret);
  to.identity_secret = secret;
  return {};
}

Result<void> take_producing(const lightq_producer_options& given, ProducerOptions& to) {
  if (given.level < LIGHTQ_LEVEL_DEFAULT || given.level > LIGHTQ_LEVEL_FLUSHED) return out_of_range("level");
  if (given.compression < LIGHTQ_UNCOMPRESSED || given.compression > LIGHTQ_ZSTD)
    return out_of_range("compression");
  to.level = static_cast<ConfirmLevel>(given.level);
  to.compression = static_cast<Codec>(given.compression);
  if (given.batch_bytes != 0) to.batch_bytes = given.batch_bytes;
  to.window_bytes = given.window_bytes;
  if (given.memory_bytes_max != 0) to.memory_bytes_max = given.memory_bytes_max;
  to.delayed = given.delayed != 0;
  if (given.full_batches != 0) to.eager_batches = 0;
  to.linger = Timeout(given.linger_ms);
  to.retry_refused = given.no_retry_refused == 0;
  to.resend_in_doubt = given.resend_in_doubt != 0;
  return take_identity(given.identity, to);
}

Result<void> take_consuming(const lightq_consumer_options& given, ConsumerOptions& to) {
  const auto from = place_of(given.from, given.from_value);
  if (!from) return from.error();
  if (given.prefetch_messages < 0) return out_of_range("prefetch_messages");
  if (given.own != 0) to.mode = ConsumeMode::own;
  to.group = text_of(given.group);
  to.from = *from;
  to.incarnation = given.incarnation;
  to.holds = given.holds != 0;
  if (given.automatic != 0) to.acknowledgement = Acknowledgement::automatic;
  if (given.prefetch_messages > 0) to.prefetch_messages = static_cast<std::uint32_t>(given.prefetch_messages);
  if (given.prefetch_bytes != 0) to.prefetch_bytes = given.prefetch_bytes;
  take_time(given.prefetch_time_ms, to.prefetch_time);
  to.ack_timeout = Timeout(given.ack_timeout_ms);
  to.may_be_busy = given.may_not_be_busy == 0;
  return take_frame_bytes(given, to);
}

/// Returns the options, of which `take` takes those that only they have. Errors: invalid_argument,
/// not_supported.
template <typename Options, typename Given, typename Take>
Result<Opening<Options>> opening(const Given* given, const char* name, Take take) {
  const auto read = read_sized(given, name);
  if (!read) return read.error();
  Opening<Options> made;
  if (const Result<void> done = take_connection(*read, made); !done) return done.error();
  if (const Result<void> done = take(*read, made.options); !done) return done.error();
  return made;
}

}  // namespace

Result<ClientOptions> client_options_of(const lightq_options& given) {
  if (given.request_timeout_ms < 0 || given.connect_timeout_ms < 0) return out_of_range("a timeout");
  ClientOptions options;
  options.user = {text_of(given.user), Secret(text_of(given.password))};
  options.admin = {text_of(given.admin_user), Secret(text_of(given.admin_password))};
  options.discover_credentials = given.no_discovery == 0;
  options.server_key = text_of(given.server_key);
  options.client_key_file = text_of(given.client_key_file);
  options.insecure = given.insecure != 0;
  options.data_dir = text_of(given.data_dir);
  take_time(given.request_timeout_ms, options.request_timeout);
  take_time(given.connect_timeout_ms, options.connect_timeout);
  return options;
}

Result<Opening<ProducerOptions>> opening_of(const lightq_producer_options* given) {
  return opening<ProducerOptions>(given, "lightq_producer_options", take_producing);
}

Result<Opening<ConsumerOptions>> opening_of(const lightq_consumer_options* given) {
  return opening<ConsumerOptions>(given, "lightq_consumer_options", take_consuming);
}

Result<Opening<ReaderOptions>> opening_of(const lightq_reader_options* given) {
  return opening<ReaderOptions>(given, "lightq_reader_options",
                                take_frame_bytes<lightq_reader_options, ReaderOptions>);
}

Result<session::Place> place_of(int from, std::uint64_t value) {
  switch (from) {
    case LIGHTQ_FROM_FIRST: return From::first();
    case LIGHTQ_FROM_NEXT: return From::next();
    case LIGHTQ_FROM_LAST: return From::last();
    case LIGHTQ_FROM_OFFSET: return From::offset({value});
    case LIGHTQ_FROM_TIME:
      return From::time({static_cast<std::int64_t>(std::min<std::uint64_t>(value, INT64_MAX))});
    default: return out_of_range("from");
  }
}

int write_interest(lightq_interest* interest, int fd, bool wants_write, SessionTime timer) {
  if (!is_sized(interest)) return fail_argument("lightq_interest is null, or its size is that of no version");
  int timeout_ms = -1;
  if (timer != session_never) {
    const auto left = std::chrono::ceil<Timeout>(timer - std::chrono::steady_clock::now());
    timeout_ms = static_cast<int>(std::clamp<Timeout::rep>(left.count(), 0, INT_MAX));
  }
  write_sized(*interest, [&](lightq_interest& to) {
    to.fd = fd;
    to.events = fd < 0 ? 0 : wants_write ? POLLIN | POLLOUT : POLLIN;
    to.timeout_ms = timeout_ms;
  });
  return LIGHTQ_OK;
}

lightq_report report_of(const SendReport& report) {
  lightq_report told = LIGHTQ_REPORT_INIT;
  told.begin = report.begin;
  told.end = report.end;
  told.fate = static_cast<int>(report.fate);
  told.code = report.error == nullptr ? LIGHTQ_OK : code_of(report.error->code);
  told.text = report.error == nullptr ? "" : report.error->message.c_str();
  told.delayed_first = report.number ? static_cast<std::int64_t>(*report.number) : -1;
  return told;
}

}  // namespace lightq::capi
