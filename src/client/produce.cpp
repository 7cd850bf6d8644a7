/// `lightq produce`: sends lines or generated messages, and waits until the broker has them. Layer: cli.
#include <unistd.h>

#include <algorithm>

#include "client/invocation.hpp"
#include "client/message_source.hpp"
#include "client/session.hpp"
#include "client/terminal.hpp"
#include "client/units.hpp"

namespace lightq::cli {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

/// How far a topic has come, in numbers that grow with each message the broker has dealt with.
struct Mark {
  std::uint64_t since_ms = 0;
  std::uint64_t dealt_with = 0;  // received, rejected or refused, since the broker's start
  std::uint64_t next_offset = 0;
  std::uint64_t turned_down = 0;  // rejected or refused
  bool durable = false;
  std::string blocked_by;
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
  mark.blocked_by = stats->blocked_by;
  return mark;
}

/// One run of the command.
class Run {
 public:
  Run(const Common& common, const Produce& produce, Client client, Producer producer, Mark before)
      : common_(common),
        produce_(produce),
        client_(std::move(client)),
        producer_(std::move(producer)),
        before_(std::move(before)),
        progress_(common.quiet) {}

  int go(MessageSource& source) {
    const Result<void> sent = send_all(source);
    Result<void> received;
    if (sent || producer_.sent() > 0) received = produce_.wait ? await_broker() : producer_.close(5s);
    progress_.clear();
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
      if (produce_.rate > 0 && !pause_for(due(producer_.sent()) - Clock::now())) break;
      if (Result<void> sent = send(source.message()); !sent) return sent;
      bytes_ += source.message().size();
      if ((producer_.sent() & 0xff) == 0 || produce_.rate > 0) show_progress();
    }
    return {};
  }

  [[nodiscard]] Clock::time_point due(std::uint64_t nth) const {
    const double seconds = static_cast<double>(nth) / static_cast<double>(produce_.rate);
    return started_ + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  }

  /// Sends one message; while the broker takes none, says why, joins again where that helps, and gives up in
  /// the end.
  Result<void> send(std::string_view message) {
    const auto began = Clock::now();
    while (true) {
      const Result<void> sent = producer_.send(message, 250ms);
      if (sent) {
        explained_ = false;
        return sent;
      }
      if (sent.error().code != ErrorCode::timeout) return sent;
      if (interrupted()) return {};
      if (Result<void> tended = reconnector_.tend(client_, producer_); !tended) return tended;
      const auto waited = Clock::now() - began;
      if (waited > 2s) explain();
      if (produce_.timeout.count() > 0 && waited > produce_.timeout) return stalled(waited);
    }
  }

  /// Says once what a stall is about.
  void explain() {
    if (explained_ || common_.quiet) return;
    explained_ = true;
    say("waiting: " + why_stalled());
  }

  std::string why_stalled() {
    if (!producer_.connected()) return "the broker is not there";
    const Result<Mark> now = mark_of(client_, produce_.topic);
    if (now && !now->blocked_by.empty()) {
      return "topic '" + produce_.topic + "' takes nothing now (blocked by " + now->blocked_by + ")";
    }
    return "topic '" + produce_.topic + "' takes nothing now";
  }

  Error stalled(Clock::duration waited) {
    const double seconds = std::chrono::duration<double>(waited).count();
    return {ErrorCode::timeout, "gave up after " + format_seconds(seconds) + ": " + why_stalled()};
  }

  /// Waits until the broker's statistics account for every message sent: a plain PUSH socket has no confirm.
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
                       "the broker restarted meanwhile, and a transient topic does not tell what it received "
                       "before"};
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
      if (waited > 2s) explain();
      const bool expired = produce_.timeout.count() > 0 && waited > produce_.timeout;
      if (expired || interrupted_again()) return incomplete();
      (void)pause_for(pause);
      pause = std::min(pause * 2, 100ms);
    }
  }

  /// After a signal the broker still gets a few seconds for what was sent.
  bool interrupted_again() {
    if (!interrupted()) return false;
    if (!interrupted_at_) interrupted_at_ = Clock::now();
    return Clock::now() - *interrupted_at_ > 5s;
  }

  /// How many of our messages the broker has dealt with; nothing when that cannot be known.
  [[nodiscard]] std::optional<std::uint64_t> received_of(const Mark& now) const {
    if (now.since_ms == before_.since_ms) return now.dealt_with - before_.dealt_with;
    if (!now.durable || now.next_offset < before_.next_offset) return std::nullopt;
    return now.next_offset - before_.next_offset + now.turned_down;
  }

  /// How many messages the broker has rejected or refused meanwhile.
  [[nodiscard]] std::uint64_t turned_down_of(const Mark& now) const {
    const std::uint64_t base = now.since_ms == before_.since_ms ? before_.turned_down : 0;
    return now.turned_down - std::min(now.turned_down, base);
  }

  /// An error when the broker did not keep all it was sent.
  [[nodiscard]] Result<void> all_kept() const {
    if (turned_down_ == 0) return {};
    return Error{ErrorCode::too_large, format_messages(turned_down_) +
                                           (turned_down_ == 1 ? " was" : " were") +
                                           " refused (too large) or rejected (log full); see "
                                           "lightq stats " +
                                           produce_.topic};
  }

  Error incomplete() {
    return {ErrorCode::timeout, "the broker has received " + format_count(received_.value_or(0)) + " of " +
                                    format_count(producer_.sent()) + " messages: " + why_stalled()};
  }

  void show_progress() {
    if (!progress_.due()) return;
    const double seconds = std::chrono::duration<double>(Clock::now() - started_).count();
    progress_.show(format_messages(producer_.sent()) + ", " + format_size(bytes_) + ", " +
                   format_rate(static_cast<double>(producer_.sent()) / seconds));
  }

  void summarize() {
    const double seconds = std::chrono::duration<double>(Clock::now() - started_).count();
    const std::string sent = std::to_string(producer_.sent());
    const std::uint64_t dealt_with = std::min(received_.value_or(0), producer_.sent());
    const std::uint64_t kept = dealt_with - std::min(dealt_with, turned_down_);
    const std::string received = received_ ? std::to_string(kept) : "null";
    if (common_.json) {
      Output out;
      out.write("{\"topic\":\"" + produce_.topic + "\",\"sent\":" + sent + ",\"received\":" + received +
                ",\"bytes\":" + std::to_string(bytes_) + ",\"seconds\":" + std::to_string(seconds) + "}\n");
    } else if (!common_.quiet) {
      const char* what = received_ && kept == producer_.sent() ? " received by the broker, " : " sent, ";
      say(format_messages(producer_.sent()) + what + format_size(bytes_) + " in " + format_seconds(seconds) +
          " (" + format_rate(static_cast<double>(producer_.sent()) / seconds) + ")");
    }
  }

  const Common& common_;
  const Produce& produce_;
  Client client_;
  Producer producer_;
  Mark before_;
  Progress progress_;
  Reconnector reconnector_;
  Clock::time_point started_ = Clock::now();
  std::uint64_t bytes_ = 0;
  std::optional<std::uint64_t> received_;  // or turned down
  std::uint64_t turned_down_ = 0;
  std::optional<Clock::time_point> interrupted_at_;
  bool explained_ = false;
};

}  // namespace

int run_produce(const Common& common, const Produce& produce) {
  Result<Client> client = open_client(common);
  if (!client) return fail(client.error());
  Mark before;
  if (produce.wait) {
    Result<Mark> now = mark_of(*client, produce.topic);
    if (!now) return fail(now.error(), produce.topic);
    before = std::move(*now);
  }
  Result<Producer> producer = client->producer(produce.topic);
  if (!producer) return fail(producer.error(), produce.topic);
  const bool reads_terminal = !produce.generate && produce.files.empty() && isatty(STDIN_FILENO) == 1;
  if (reads_terminal && !common.quiet) say("each line is a message; end with ctrl-D");
  const auto source = produce.generate ? generated(produce.count, produce.size_bytes)
                                       : lines_of(produce.files, produce.count);
  Run run(common, produce, std::move(*client), std::move(*producer), std::move(before));
  return run.go(*source);
}

}  // namespace lightq::cli
