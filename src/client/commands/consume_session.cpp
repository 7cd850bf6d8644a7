/// `lightq consume` over a session: acknowledges a message once it was written to standard output. A message
/// that was not goes to another consumer. Layer: cli.
#include <algorithm>
#include <optional>
#include <vector>

#include "client/commands/consume.hpp"
#include "client/commands/consume_end.hpp"
#include "client/commands/consume_printer.hpp"
#include "client/session.hpp"
#include "client/terminal.hpp"
#include "client/units.hpp"

namespace lightq::cli {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto longest_wait = 200ms;                 // between checks for signals and for a broken connection
constexpr std::uint32_t bounded_count_max = 10'000;  // of messages for which credit is given at once
constexpr std::uint64_t unflushed_max = 2'500;       // messages that may wait in the buffer

/// One run of the command.
class SessionConsumeRun {
 public:
  SessionConsumeRun(const Common& common, const Consume& consume, Client client, Consumer consumer)
      : common_(common),
        consume_(consume),
        client_(std::move(client)),
        consumer_(std::move(consumer)),
        printer_(common, consume),
        end_(consume, client_, consumer_, printer_) {
    // A slow reader of standard output must not make the broker close this consumer.
    printer_.serve_meanwhile([this] { (void)consumer_.poll(); });
  }
  SessionConsumeRun(const SessionConsumeRun&) = delete;
  SessionConsumeRun& operator=(const SessionConsumeRun&) = delete;
  ~SessionConsumeRun() = default;

  int go() {
    const Result<void> received = receive_all();
    settle();
    for (const OffsetRange& range : not_printed_) consumer_.release(range);
    const Result<void> closed = consumer_.close(5s);
    printer_.summarize();
    tell_what_is_missing();
    if (!received) return fail(received.error(), consume_.topic);
    if (!closed && printer_.printed() > 0)
      say("the last printed messages may be delivered again: " + closed.error().text());
    return printer_.verdict();
  }

 private:
  Result<void> receive_all() {
    last_ = Clock::now();
    while (!interrupted() && !printer_.is_done()) {
      bound_credit();
      Result<std::optional<DeliveredBatch>> batch = consumer_.receive_batch(0ms);
      if (batch && !*batch) {
        settle();
        printer_.look_for_reader();
        if (printer_.is_done()) break;
        if (printer_.printed() > 0) printer_.show_progress();
        batch = consumer_.receive_batch(patience());
      }
      if (!batch) return batch.error();
      if (*batch) {
        print(**batch);
        last_ = Clock::now();
      } else if (is_over()) {
        break;
      }
    }
    return {};
  }

  [[nodiscard]] Timeout patience() const {
    return consume_.timeout.count() > 0 ? std::min<Timeout>(consume_.timeout, longest_wait) : longest_wait;
  }

  void print(DeliveredBatch& batch) {
    end_.came(batch.range());
    while (!batch.empty() && !printer_.is_done() && !interrupted()) {
      const Delivered message = batch.take();
      printer_.print(LoggedMessage{message.offset, message.time, message.text(), message.attributes()});
      const bool follows = !printed_.empty() && printed_.back().end == message.offset;
      if (follows) {
        printed_.back().end = message.offset + 1;
      } else {
        printed_.push_back({message.offset, message.offset + 1});
      }
      if (printer_.is_flushed()) {
        acknowledge();
      } else if (++unflushed_ >= unflushed_max) {
        settle();
      }
    }
    if (!batch.empty()) not_printed_.push_back(batch.range());
  }

  /// Writes buffered messages, and acknowledges those that were written.
  void settle() {
    if (!printer_.flush()) {
      forget_last(printer_.unprinted() - forgotten_);
      forgotten_ = printer_.unprinted();
    }
    acknowledge();
  }
  /// Gives the last `messages` back at the end, so that another consumer gets them.
  void forget_last(std::uint64_t messages) {
    while (messages > 0 && !printed_.empty()) {
      OffsetRange& last = printed_.back();
      const std::uint64_t some = std::min(messages, distance(last.begin, last.end));
      const Offset end = last.end;
      last.end = last.begin + (distance(last.begin, last.end) - some);
      not_printed_.push_back({last.end, end});
      messages -= some;
      if (last.begin == last.end) printed_.pop_back();
    }
  }
  void acknowledge() {
    for (const OffsetRange& range : printed_) consumer_.acknowledge(range);
    printed_.clear();
    unflushed_ = 0;
  }

  /// Gives each connection credit for the requested number of messages only, so that the broker sends no
  /// more.
  void bound_credit() {
    if (consume_.count == 0 || consume_.count > bounded_count_max) return;
    const std::uint64_t opens = consumer_.stats().opens;
    if (consumer_.connected() && opens == opens_) return;
    consumer_.resume();
    if (!consumer_.connected()) return;
    consumer_.pause();
    opens_ = opens;
  }

  /// Returns true if the command should end, after no message has arrived for a while.
  bool is_over() {
    const auto now = Clock::now();
    if (consume_.timeout.count() > 0 && now - last_ >= consume_.timeout) return true;
    tell_of_trouble(now);
    if (consume_.follow) end_.look_for_pause();
    return !consume_.follow && end_.has_come();
  }

  void tell_of_trouble(Clock::time_point now) {
    if (consumer_.connected()) {
      connected_ = now;
      told_ = false;
    }
    if (told_ || common_.quiet || now - connected_ <= 2s) return;
    told_ = true;
    say("waiting: the broker cannot be reached (" + consumer_.last_error().message + ")");
  }

  void tell_what_is_missing() const {
    const std::uint64_t lost = consumer_.stats().lost;
    if (lost == 0 || common_.quiet) return;
    say(format_messages(lost) + (lost == 1 ? " was" : " were") +
        " dropped or damaged before delivery; see lightq stats " + consume_.topic);
  }

  const Common& common_;
  const Consume& consume_;
  Client client_;
  Consumer consumer_;
  ConsumePrinter printer_;
  ConsumeEnd end_;
  std::vector<OffsetRange> printed_;      // printed and not acknowledged
  std::vector<OffsetRange> not_printed_;  // received, and given back at the end
  std::uint64_t forgotten_ = 0;           // of the messages that the printer has not written
  std::uint64_t unflushed_ = 0;           // messages in `printed_` that arrived since the last flush
  std::uint64_t opens_ = 0;               // the consumer's opens when its credit was last limited
  Clock::time_point last_ = Clock::now();
  Clock::time_point connected_ = Clock::now();
  bool told_ = false;  // that there is no connection
};

}  // namespace

int consume_session(const Common& common, const Consume& consume, Client client) {
  ConsumerOptions options;
  const bool shared = consume.mode == Mode::pull;
  options.mode = shared ? ConsumeMode::group : ConsumeMode::own;
  options.group = consume.group;
  options.from = consume.from.value_or(shared ? From::first() : From::next());
  options.connection = consume.connection;
  if (consume.count > 0 && consume.count <= bounded_count_max) {
    options.prefetch_messages = static_cast<std::uint32_t>(consume.count);
    options.prefetch_bytes = 1024 * limits::GiB;  // see bound_credit; the memory here is limited all the same
  }
  // A broken consumer is noticed by its silence. One with a slow reader keeps its messages.
  options.ack_timeout = 24h;
  options.may_be_busy = false;
  options.name = "lightq consume";
  Result<Consumer> consumer = client.consumer(consume.topic, std::move(options));
  if (!consumer) return fail(consumer.error(), consume.topic);
  SessionConsumeRun run(common, consume, std::move(client), std::move(*consumer));
  return run.go();
}

}  // namespace lightq::cli
