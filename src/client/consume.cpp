/// `lightq consume`: prints a topic's messages. Layer: cli.
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "client/invocation.hpp"
#include "client/message_format.hpp"
#include "client/session.hpp"
#include "client/terminal.hpp"
#include "client/units.hpp"

namespace lightq::cli {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

/// One run of the command.
class ConsumeRun {
 public:
  ConsumeRun(const Common& common, const Consume& consume, Client client, PlainConsumer consumer)
      : common_(common),
        consume_(consume),
        client_(std::move(client)),
        consumer_(std::move(consumer)),
        progress_(common.quiet || isatty(STDOUT_FILENO) == 1) {}  // messages on the terminal show it better

  int go() {
    const Result<void> received = receive_all();
    const Result<void> left = end_in_order();
    out_.flush();
    progress_.clear();
    summarize();
    if (!received) return fail(received.error(), consume_.topic);
    if (!left) return fail(left.error(), consume_.topic);
    const bool short_of_count = consume_.count > 0 && printed_ < consume_.count;
    const bool in_vain = short_of_count && !interrupted() && open_;
    if (in_vain)
      say("only " + format_count(printed_) + " of " + format_count(consume_.count) + " messages came");
    return out_.failed() || in_vain ? exit_failure : exit_ok;
  }

 private:
  [[nodiscard]] bool enough() const { return !open_ || (consume_.count > 0 && printed_ >= consume_.count); }

  Result<void> receive_all() {
    auto last = Clock::now();
    while (!interrupted() && !enough()) {
      Result<std::optional<Message>> message = consumer_.receive(0ms);
      if (message && !*message) {
        open_ = out_.flush() && open_;
        if (printed_ > 0) show_progress();
        message = consumer_.receive(consume_.timeout.count() > 0 ? std::min<Timeout>(consume_.timeout, 200ms)
                                                                 : Timeout(200));
      }
      if (!message) return message.error();
      if (*message) {
        print(**message);
        last = Clock::now();
        continue;
      }
      const Result<bool> over = idle(Clock::now() - last);
      if (!over) return over.error();
      if (*over) return {};
    }
    return {};
  }

  void print(const Message& message) {
    line_.clear();
    append_message(line_, consume_.topic, message.text(), consume_.format);
    bytes_ += message.size();
    ++printed_;
    open_ = out_.write(line_) && open_;
    if ((printed_ & 0xff) == 0) show_progress();
  }

  void show_progress() {
    if (progress_.due()) progress_.show(format_messages(printed_) + ", " + format_size(bytes_));
  }

  /// Nothing came for a while: whether that is the end.
  Result<bool> idle(Clock::duration quiet) {
    if (consume_.timeout.count() > 0 && quiet >= consume_.timeout) return true;
    if (!consume_.follow && is_drained()) return true;
    if (Result<void> tended = reconnector_.tend(client_, consumer_); !tended) return tended.error();
    return false;
  }

  /// Whether the broker has nothing more for us than what it has handed over already.
  bool is_drained() {
    const Result<TopicStats> stats = client_.stats(consume_.topic);
    if (!stats) return false;
    tell_of_pause(*stats);
    if (consume_.mode == Mode::pull) {
      return std::ranges::all_of(stats->groups, [](const GroupStats& group) {
        return group.group != protocol::default_group || group.lag == 0;
      });
    }
    return std::ranges::any_of(stats->subscribers, [&](const SubscriberStats& subscriber) {
      return subscriber.bind_uri == consumer_.bind_uri() && subscriber.lag == 0 &&
             subscriber.delivered <= consumer_.received();
    });
  }

  /// Once: it would look as if nothing went on.
  void tell_of_pause(const TopicStats& stats) {
    const bool group_paused =
        consume_.mode == Mode::pull && std::ranges::any_of(stats.groups, [](const GroupStats& group) {
          return group.group == protocol::default_group && group.paused;
        });
    if (common_.quiet || !(stats.paused || group_paused) || std::exchange(told_of_pause_, true)) return;
    say("topic '" + stats.topic + "' is paused" + (stats.paused ? "" : " for its pullers") +
        "; waiting until it is resumed");
  }

  /// Tells the broker, and prints what it had handed over already; that is nobody else's any more.
  Result<void> end_in_order() {
    if (const Result<void> left = consumer_.leave(); !left) {
      const bool gone = left.error().code == ErrorCode::endpoint_not_found ||
                        left.error().code == ErrorCode::topic_not_found ||
                        left.error().code == ErrorCode::timeout;
      return gone ? Result<void>() : left;
    }
    const auto deadline = Clock::now() + 10s;
    while (!consumer_.finished() && !enough() && Clock::now() < deadline) {
      Result<std::optional<Message>> message = consumer_.receive(200ms);
      if (!message) return message.error();
      if (*message) print(**message);
      if (!*message && !consumer_.connected()) break;
    }
    if (consumer_.outstanding() > 0) {
      say("another " + format_messages(consumer_.outstanding()) +
          " had been handed to this consumer and cannot be had any more: a plain pull consumer cannot give "
          "back what waits in its pipe");
    }
    return {};
  }

  void summarize() {
    if (common_.quiet) return;
    const double seconds = std::chrono::duration<double>(Clock::now() - started_).count();
    say(format_messages(printed_) + ", " + format_size(bytes_) + " in " + format_seconds(seconds));
  }

  const Common& common_;
  const Consume& consume_;
  Client client_;
  PlainConsumer consumer_;
  Output out_;
  Progress progress_;
  Reconnector reconnector_;
  std::string line_;
  Clock::time_point started_ = Clock::now();
  std::uint64_t printed_ = 0;
  std::uint64_t bytes_ = 0;
  bool open_ = true;
  bool told_of_pause_ = false;
};

}  // namespace

int run_consume(const Common& common, const Consume& consume) {
  Result<Client> client = open_client(common);
  if (!client) return fail(client.error());
  PlainConsumerOptions options;
  options.mode = consume.mode;
  if (consume.count > 0)
    options.high_water_messages = static_cast<int>(std::min<std::uint64_t>(consume.count, 1000));
  Result<PlainConsumer> consumer = client->plain_consumer(consume.topic, options);
  if (!consumer) return fail(consumer.error(), consume.topic);
  ConsumeRun run(common, consume, std::move(*client), std::move(*consumer));
  return run.go();
}

}  // namespace lightq::cli
