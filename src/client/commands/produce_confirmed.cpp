/// `lightq produce` over a session: every message is confirmed, and is stored once even if the broker
/// restarts. Layer: cli.
#include <poll.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include <lightq/detail/message_limit.hpp>

#include "client/commands/produce.hpp"
#include "client/commands/produce_report.hpp"
#include "client/session.hpp"
#include "client/terminal.hpp"
#include "client/units.hpp"

namespace lightq::cli {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto look_interval = 200ms;  // between checks for signals and for confirms

ProducerOptions options_for(const Produce& produce) {
  ProducerOptions options;
  options.level = produce.confirm;
  options.connection = produce.connection;
  options.send_timeout = look_interval;
  options.retry_refused = produce.retry_refused;
  options.compression = produce.compression;
  options.delayed = produce.due.has_value();
  options.name = "lightq " + produce.cmd;
  return options;
}

/// One run of the command.
class ConfirmedRun {
 public:
  ConfirmedRun(const Common& common, const Produce& produce, Client client, Producer producer)
      : produce_(produce),
        client_(std::move(client)),
        producer_(std::move(producer)),
        report_(common, produce) {
    for (const auto& [name, value] : produce.headers) headers_.push_back({name, value});
    listen();
  }
  ConfirmedRun(const ConfirmedRun&) = delete;
  ConfirmedRun& operator=(const ConfirmedRun&) = delete;

  int go(MessageSource& source) {
    const Result<void> sent = send_all(source);
    const Result<void> confirmed = await_confirms();
    const ProducerStats stats = producer_.stats();
    const bool on_disk = producer_.opened() && producer_.opened()->level == ConfirmLevel::flushed;
    const std::string received = produce_.due ? " scheduled" : " received by the broker";
    source.confirmed(stats.confirmed);
    report_.summarize(
        stats.confirmed,
        received +
            (on_disk ? produce_.due ? " and written to the broker's disk" : " and written to its disk" : ""));
    (void)producer_.close(1s);
    if (!sent) return fail(sent.error(), produce_.topic);
    if (!confirmed) return fail(confirmed.error(), produce_.topic);
    const std::optional<Error> turned_down = report_.turned_down();
    return turned_down ? fail(*turned_down, produce_.topic) : exit_ok;
  }

 private:
  /// Counts the messages that the broker refuses.
  void listen() {
    producer_.on_report([this](const SendReport& told) {
      if (told.fate == Fate::refused) report_.refused(told.end - told.begin, *told.error);
    });
  }

  Result<void> send_all(MessageSource& source) {
    if (Result<void> ready = prepare(); !ready) return ready;
    if (producer_.opened()) source.keep_at_most(producer_.opened()->message_bytes_max);
    while (!interrupted()) {
      if (Result<void> served = await_turn(source); !served) return served;
      if (interrupted()) break;
      const Result<bool> more = source.next();
      if (!more) return more.error();
      if (!*more) break;
      if (source.is_too_long()) {
        report_.turned_down_unsent(too_long(source).message);
      } else if (Result<void> sent = send(source); !sent) {
        return sent;
      }
    }
    return {};
  }

  static Error too_long(const MessageSource& source) {
    return MessageLimit{source.message().size(), "the broker's message_bytes_max"}.exceeded_by(
        source.message_bytes());
  }

  /// Learns the topic's longest message, so that a longer one is not sent, and makes memory for the longest.
  Result<void> prepare() {
    if (Result<void> open = await_open(); !open || !producer_.opened()) return open;
    ProducerOptions options = options_for(produce_);
    const std::uint64_t needed = producer_.opened()->message_bytes_max + 64 * limits::KiB;
    if (needed <= options.memory_bytes_max) return {};
    options.memory_bytes_max = needed;
    Result<Producer> roomier = client_.producer(produce_.topic, std::move(options));
    if (!roomier) return roomier.error();
    producer_ = std::move(*roomier);
    listen();
    return await_open();
  }

  /// Waits until the topic is open, or a signal arrives.
  Result<void> await_open() {
    const auto began = Clock::now();
    while (!interrupted() && !producer_.opened()) {
      const Result<void> open = producer_.wait_open(look_interval);
      if (open || interrupted()) break;
      if (producer_.state() != SessionState::connecting) return open;
      if (!is_patient(began)) return incomplete();
    }
    return {};
  }

  /// Serves the session until there is input and the next message is due, or a signal arrives.
  Result<void> await_turn(const MessageSource& source) {
    while (!interrupted()) {
      const auto now = Clock::now();
      const int input = source.awaited();
      if (input < 0 && (produce_.rate == 0 || report_.due() <= now)) return {};
      if (Result<void> usable = producer_.poll(0ms); !usable) return usable;
      const bool due = report_.due() <= now;
      const auto until =
          std::min({due ? now + look_interval : report_.due(), producer_.next_timer(), now + look_interval});
      if (wait(due ? input : -1, until)) return {};
    }
    return {};
  }

  /// Waits until `until` for input or the session. Returns true if there is input.
  bool wait(int input, Clock::time_point until) const {
    const auto session_events = static_cast<short>(producer_.wants_write() ? POLLIN | POLLOUT : POLLIN);
    pollfd watched[2] = {{input, POLLIN, 0}, {producer_.fd(), session_events, 0}};
    const auto left = std::max<std::chrono::nanoseconds>(until - Clock::now(), 0ns);
    const timespec most{left / 1s, static_cast<long>((left % 1s).count())};
    return ::ppoll(watched, 2, &most, nullptr) > 0 && watched[0].revents != 0;
  }

  /// Sends one message. While there is no memory for it, explains why, and gives up in the end.
  Result<void> send(const MessageSource& source) {
    const std::string_view message = source.message();
    const auto began = Clock::now();
    while (true) {
      const Result<std::uint64_t> sent =
          source.attributes() == nullptr ? send_once(message) : producer_.send(message, *source.attributes());
      if (sent) {
        report_.sent(message.size());
        return {};
      }
      if (sent.error().code == ErrorCode::too_large) {
        report_.turned_down_unsent(sent.error().message);
        return {};
      }
      if (sent.error().code != ErrorCode::timeout) return sent.error();
      if (interrupted()) return {};
      if (!is_patient(began)) return incomplete();
    }
  }

  /// Sends one message with the requested attributes. The report counts payload bytes.
  Result<std::uint64_t> send_once(std::string_view message) {
    if (headers_.empty() && produce_.key.empty() && produce_.key_separator.empty() && produce_.id.empty() &&
        !produce_.due && produce_.ttl.count() == 0)
      return producer_.send(message);
    Attributes attributes{.key = produce_.key, .headers = headers_, .id = produce_.id, .ttl = produce_.ttl};
    if (produce_.due && *produce_.due < 0) attributes.delay = std::chrono::microseconds(-*produce_.due);
    if (produce_.due && *produce_.due > 0) attributes.deliver_at = {*produce_.due};
    const std::size_t at =
        produce_.key_separator.empty() ? std::string_view::npos : message.find(produce_.key_separator);
    if (at != std::string_view::npos) {
      attributes.key = message.substr(0, at);
      message.remove_prefix(at + produce_.key_separator.size());
    }
    return producer_.send(message, attributes);
  }

  Result<void> await_confirms() {
    const auto began = Clock::now();
    std::optional<Clock::time_point> interrupted_at;
    while (producer_.unconfirmed() > 0) {
      const Result<void> flushed = producer_.flush(look_interval);
      if (flushed || producer_.unconfirmed() == 0) break;
      const SessionState state = producer_.state();
      if (state == SessionState::in_doubt) return in_doubt();
      if (state == SessionState::failed || state == SessionState::closed) return flushed.error();
      if (interrupted() && !interrupted_at) interrupted_at = Clock::now();
      if (interrupted_at && Clock::now() - *interrupted_at > 5s) return incomplete();
      if (!is_patient(began)) return incomplete();
    }
    return {};
  }

  /// Explains a stall that started at `began`. Returns false if nothing has been confirmed for too long.
  bool is_patient(Clock::time_point began) {
    if (producer_.confirmed() != confirmed_) {
      confirmed_ = producer_.confirmed();
      moved_ = Clock::now();
    }
    const auto waited = Clock::now() - std::max(began, moved_);
    if (waited > 2s) report_.explain(why_stalled());
    return produce_.timeout.count() == 0 || waited <= produce_.timeout;
  }

  std::string why_stalled() {
    if (producer_.state() == SessionState::open) return report_.why_stalled(client_);
    const std::string& why = producer_.last_error().message;
    return why.empty() ? "the broker cannot be reached" : "the broker cannot be reached (" + why + ")";
  }

  Error incomplete() {
    return {ErrorCode::timeout, "the broker has confirmed " + format_count(producer_.confirmed()) + " of " +
                                    format_count(report_.messages()) + " messages: " + why_stalled()};
  }

  [[nodiscard]] Error in_doubt() const {
    return {ErrorCode::closed, format_messages(producer_.in_doubt()) +
                                   " may be stored or not: the broker restarted, and a transient topic "
                                   "forgets which messages it received"};
  }

  const Produce& produce_;
  Client client_;
  Producer producer_;
  ProduceReport report_;
  std::vector<Header> headers_;
  std::uint64_t confirmed_ = 0;
  Clock::time_point moved_ = Clock::now();
};

}  // namespace

int produce_confirmed(const Common& common, const Produce& produce, Client client, MessageSource& source) {
  Result<Producer> producer = client.producer(produce.topic, options_for(produce));
  if (!producer) return fail(producer.error(), produce.topic);
  ConfirmedRun run(common, produce, std::move(client), std::move(*producer));
  return run.go(source);
}

}  // namespace lightq::cli
