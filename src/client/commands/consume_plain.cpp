/// `lightq consume --plain`: receives over a plain ZeroMQ socket, without acknowledgements. Layer: cli.
#include <algorithm>

#include <utility>

#include "client/commands/consume.hpp"
#include "client/commands/consume_printer.hpp"
#include "client/session.hpp"
#include "client/terminal.hpp"
#include "client/units.hpp"

namespace lightq::cli {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

/// One run of the command.
class PlainConsumeRun {
 public:
  PlainConsumeRun(const Common& common, const Consume& consume, Client client, PlainConsumer consumer)
      : consume_(consume),
        client_(std::move(client)),
        consumer_(std::move(consumer)),
        printer_(common, consume) {}

  int go() {
    const Result<void> received = receive_all();
    const Result<void> left = end_in_order();
    printer_.flush();
    printer_.summarize();
    if (!received) return fail(received.error(), consume_.topic);
    if (!left) return fail(left.error(), consume_.topic);
    return printer_.verdict();
  }

 private:
  Result<void> receive_all() {
    auto last = Clock::now();
    while (!interrupted() && !printer_.is_done()) {
      Result<std::optional<Message>> message = consumer_.receive(0ms);
      if (message && !*message) {
        printer_.flush();
        printer_.look_for_reader();
        if (printer_.is_done()) break;
        if (printer_.printed() > 0) printer_.show_progress();
        message = consumer_.receive(consume_.timeout.count() > 0 ? std::min<Timeout>(consume_.timeout, 200ms)
                                                                 : Timeout(200));
      }
      if (!message) return message.error();
      if (*message) {
        printer_.print((*message)->text());
        last = Clock::now();
        continue;
      }
      const Result<bool> over = idle(Clock::now() - last);
      if (!over) return over.error();
      if (*over) return {};
    }
    return {};
  }

  /// Returns true if the command should end, after no message has arrived for the time `quiet`.
  Result<bool> idle(Clock::duration quiet) {
    if (consume_.timeout.count() > 0 && quiet >= consume_.timeout) return true;
    const bool looks = !consume_.follow || !std::exchange(has_looked_, true);  // also says that it is paused
    if (looks && is_drained() && !consume_.follow) return true;
    if (Result<void> tended = reconnector_.tend(client_, consumer_); !tended) return tended.error();
    return false;
  }

  /// Returns true if the broker has nothing for this consumer beyond the messages already sent to it.
  bool is_drained() {
    const Result<TopicStats> stats = client_.stats(consume_.topic);
    if (!stats) return false;
    printer_.tell_of_pause(*stats);
    if (consume_.mode == Mode::pull) {
      return std::ranges::all_of(stats->groups, [](const GroupStats& group) {
        return group.group != protocol::default_group || group.ready == 0;
      });
    }
    return std::ranges::any_of(stats->subscribers, [&](const SubscriberStats& subscriber) {
      return subscriber.bind_uri == consumer_.bind_uri() && subscriber.lag == 0 &&
             subscriber.delivered <= consumer_.received();
    });
  }

  /// Leaves the endpoint, and prints the messages that the broker had already sent. No other consumer gets
  /// these.
  Result<void> end_in_order() {
    if (const Result<void> left = consumer_.leave(); !left) {
      const bool gone = left.error().code == ErrorCode::endpoint_not_found ||
                        left.error().code == ErrorCode::topic_not_found ||
                        left.error().code == ErrorCode::timeout;
      return gone ? Result<void>() : left;
    }
    const auto deadline = Clock::now() + 10s;
    while (!consumer_.finished() && !printer_.is_done() && Clock::now() < deadline) {
      Result<std::optional<Message>> message = consumer_.receive(200ms);
      if (!message) return message.error();
      if (*message) printer_.print((*message)->text());
      if (!*message && !consumer_.connected()) break;
    }
    if (consumer_.outstanding() > 0) {
      say("another " + format_messages(consumer_.outstanding()) +
          " had been sent to this consumer and are lost: a plain pull consumer cannot return messages that "
          "wait in its pipe");
    }
    return {};
  }

  const Consume& consume_;
  Client client_;
  PlainConsumer consumer_;
  ConsumePrinter printer_;
  bool has_looked_ = false;
  Reconnector reconnector_;
};

}  // namespace

int consume_plain(const Common& common, const Consume& consume, Client client) {
  PlainConsumerOptions options;
  options.mode = consume.mode;
  if (consume.count > 0)
    options.high_water_messages = static_cast<int>(std::min<std::uint64_t>(consume.count, 1000));
  Result<PlainConsumer> consumer = client.plain_consumer(consume.topic, options);
  if (!consumer) return fail(consumer.error(), consume.topic);
  PlainConsumeRun run(common, consume, std::move(client), std::move(*consumer));
  return run.go();
}

}  // namespace lightq::cli
