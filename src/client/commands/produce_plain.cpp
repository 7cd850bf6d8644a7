/// `lightq produce --plain`: sends over a plain ZeroMQ socket, without confirms. Layer: cli.
#include <algorithm>

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

/// A topic's progress, in counters that grow with each message that the broker handles.
struct Mark {
  std::uint64_t since_ms = 0;
  std::uint64_t dealt_with = 0;  // received, rejected or refused, since the broker's start
  std::uint64_t next_offset = 0;
  std::uint64_t turned_down = 0;  // rejected or refused
  bool durable = false;
};

Result<Mark> mark_of(Client& client, const std::string& topic) {
  Result<TopicStats> stats = client.stats(topic);
  if (!stats) return stats.error();
  Mark mark;
  mark.since_ms = stats->since_ms;
  mark.turned_down = stats->rejected + stats->refused;
  mark.dealt_with = stats->messages_received + mark.turned_down;
  mark.next_offset = stats->next_offset;
  mark.durable = stats->topic_type == BrokerType::file || stats->topic_type == BrokerType::queue_file;
  return mark;
}

/// One run of the command.
class PlainRun {
 public:
  PlainRun(const Common& common, const Produce& produce, Client client, PlainProducer producer, Mark before)
      : produce_(produce),
        client_(std::move(client)),
        producer_(std::move(producer)),
        before_(std::move(before)),
        report_(common, produce) {}

  int go(MessageSource& source) {
    const Result<void> sent = send_all(source);
    Result<void> received;
    if (sent || producer_.sent() > 0) received = produce_.wait ? await_broker() : producer_.close(5s);
    summarize();
    if (!sent) return fail(sent.error(), produce_.topic);
    if (!received) return fail(received.error(), produce_.topic);
    return exit_ok;
  }

 private:
  Result<void> send_all(MessageSource& source) {
    while (!interrupted()) {
      const Result<bool> more = source.next();
      if (!more) return more.error();
      if (!*more) break;
      if (source.is_too_long())
        return MessageLimit{source.message().size(), "the maximum for a message"}.exceeded_by(
            source.message_bytes());
      if (produce_.rate > 0 && !pause_for(report_.due() - Clock::now())) break;
      if (Result<void> sent = send(source.message()); !sent) return sent;
      report_.sent(source.message().size());
    }
    return {};
  }

  /// Sends one message. While the broker accepts none, explains why, joins again if that may help, and gives
  /// up in the end.
  Result<void> send(std::string_view message) {
    const auto began = Clock::now();
    while (true) {
      const Result<void> sent = producer_.send(message, 250ms);
      if (sent || sent.error().code != ErrorCode::timeout) return sent;
      if (interrupted()) return {};
      if (Result<void> tended = reconnector_.tend(client_, producer_); !tended) return tended;
      const auto waited = Clock::now() - began;
      if (waited > 2s) report_.explain(why_stalled());
      if (produce_.timeout.count() > 0 && waited > produce_.timeout)
        return ProduceReport::gave_up(waited, why_stalled());
    }
  }

  std::string why_stalled() {
    return producer_.connected() ? report_.why_stalled(client_) : "the broker cannot be reached";
  }

  /// Waits until the broker's statistics count every message sent. A plain PUSH socket has no confirms.
  Result<void> await_broker() {
    auto moved = Clock::now();
    auto pause = 2ms;
    std::uint64_t last = 0;
    while (true) {
      const Result<Mark> now = mark_of(client_, produce_.topic);
      if (now) {
        received_ = received_of(*now);
        if (!received_) {
          return Error{ErrorCode::closed,
                       "the broker restarted in the meantime, and a transient topic forgets which messages "
                       "it received"};
        }
        turned_down_ = turned_down_of(*now);
        if (*received_ >= producer_.sent()) return all_kept();
        if (*received_ != last) moved = Clock::now();
        last = *received_;
      } else if (!Reconnector::is_passing(now.error())) {
        return now.error();
      }
      if (Result<void> tended = reconnector_.tend(client_, producer_); !tended) return tended;
      const auto waited = Clock::now() - moved;
      if (waited > 2s) report_.explain(why_stalled());
      const bool expired = produce_.timeout.count() > 0 && waited > produce_.timeout;
      if (expired || interrupted_again()) return incomplete();
      (void)pause_for(pause);
      pause = std::min(pause * 2, 100ms);
    }
  }

  /// Returns true once a signal arrived more than five seconds ago. Until then the broker may still receive
  /// messages.
  bool interrupted_again() {
    if (!interrupted()) return false;
    if (!interrupted_at_) interrupted_at_ = Clock::now();
    return Clock::now() - *interrupted_at_ > 5s;
  }

  /// Returns how many of this run's messages the broker has handled; nothing if that is unknown.
  [[nodiscard]] std::optional<std::uint64_t> received_of(const Mark& now) const {
    if (now.since_ms == before_.since_ms) return now.dealt_with - before_.dealt_with;
    if (!now.durable || now.next_offset < before_.next_offset) return std::nullopt;
    return now.next_offset - before_.next_offset + now.turned_down;
  }

  /// Returns how many messages the broker has rejected or refused since the run began.
  [[nodiscard]] std::uint64_t turned_down_of(const Mark& now) const {
    const std::uint64_t base = now.since_ms == before_.since_ms ? before_.turned_down : 0;
    return now.turned_down - std::min(now.turned_down, base);
  }

  /// Returns an error if the broker did not keep all messages.
  [[nodiscard]] Result<void> all_kept() const {
    if (turned_down_ == 0) return {};
    return report_.not_kept(turned_down_);
  }

  Error incomplete() {
    return {ErrorCode::timeout, "the broker has received " + format_count(received_.value_or(0)) + " of " +
                                    format_count(producer_.sent()) + " messages: " + why_stalled()};
  }

  void summarize() {
    const std::uint64_t dealt_with = std::min(received_.value_or(0), producer_.sent());
    const std::uint64_t kept = dealt_with - std::min(dealt_with, turned_down_);
    report_.summarize(received_ ? std::optional(kept) : std::nullopt, " received by the broker");
  }

  const Produce& produce_;
  Client client_;
  PlainProducer producer_;
  Mark before_;
  ProduceReport report_;
  Reconnector reconnector_;
  std::optional<std::uint64_t> received_;  // or rejected or refused
  std::uint64_t turned_down_ = 0;
  std::optional<Clock::time_point> interrupted_at_;
};

}  // namespace

int produce_plain(const Common& common, const Produce& produce, Client client, MessageSource& source) {
  Mark before;
  if (produce.wait) {
    Result<Mark> now = mark_of(client, produce.topic);
    if (!now) return fail(now.error(), produce.topic);
    before = std::move(*now);
  }
  Result<PlainProducer> producer = client.plain_producer(produce.topic);
  if (!producer) return fail(producer.error(), produce.topic);
  PlainRun run(common, produce, std::move(client), std::move(*producer), std::move(before));
  return run.go(source);
}

}  // namespace lightq::cli
