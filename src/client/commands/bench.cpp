/// `lightq bench`: measures the throughput and latency of a producer and a consumer in this process, through
/// a running broker. Layer: cli.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <thread>

#include "client/commands/latencies.hpp"
#include "client/invocation.hpp"
#include "client/session.hpp"
#include "client/terminal.hpp"
#include "client/units.hpp"

namespace lightq::cli {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

/// The beginning of each message.
struct Stamp {
  std::uint32_t run;  ///< distinguishes this run's messages from others in the topic
  std::uint32_t number;
  std::int64_t sent_ns;
};

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count();
}

/// The consumer's results.
struct Seen {
  std::uint64_t received = 0;
  std::uint64_t out_of_order = 0;
  double seconds = 0;  // from the first message to the last
  Latencies latencies;
  Result<void> result;
};

/// Returns a number that is unlikely to repeat in other runs.
std::uint32_t run_number() {
  const auto now = static_cast<std::uint64_t>(now_ns());
  return static_cast<std::uint32_t>(now ^ now >> 32 ^ static_cast<std::uint64_t>(getpid()) << 16);
}

/// Sends one message. Stops waiting when `stop` is set, because the message is then no longer needed.
Result<void> send(PlainProducer& producer, std::string_view payload, const std::atomic<bool>& stop) {
  const auto deadline = Clock::now() + 10s;
  while (true) {
    Result<void> sent = producer.send(payload, 200ms);
    if (sent || sent.error().code != ErrorCode::timeout || Clock::now() > deadline) return sent;
    if (stop || interrupted()) return {};
  }
}

/// Sends the messages, evenly spaced if a rate is given.
Result<void> produce(PlainProducer& producer, const Bench& bench, std::uint32_t run,
                     const std::atomic<bool>& stop) {
  std::string payload(std::max<std::uint64_t>(bench.size_bytes, sizeof(Stamp)), '.');
  const auto started = Clock::now();
  for (std::uint64_t number = 0; number < bench.count && !stop && !interrupted(); ++number) {
    if (bench.rate > 0) {
      const double due = static_cast<double>(number) / static_cast<double>(bench.rate);
      const auto at =
          started + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(due));
      if (at > Clock::now() && !pause_for(at - Clock::now())) break;
    }
    const Stamp stamp{run, static_cast<std::uint32_t>(number), now_ns()};
    std::memcpy(payload.data(), &stamp, sizeof stamp);
    if (Result<void> sent = send(producer, payload, stop); !sent) return sent;
  }
  const bool unwanted = stop || interrupted();
  const Result<void> closed = producer.close(unwanted ? 0s : 10s);
  return unwanted ? Result<void>() : closed;
}

void show_progress(Progress& progress, std::uint64_t received, std::uint64_t expected) {
  if (progress.due()) progress.show(format_count(received) + " of " + format_messages(expected));
}

/// Receives until all messages have arrived, or none has for five seconds.
void consume(PlainConsumer& consumer, const Bench& bench, std::uint32_t run, bool quiet, Seen& seen) {
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::uint32_t next = 0;
  Progress progress(quiet);
  auto quiet_since = Clock::now();
  while (seen.received < bench.count && !interrupted()) {
    Result<std::optional<Message>> message = consumer.receive(200ms);
    if (!message) {
      seen.result = message.error();
      break;
    }
    if (!*message) {
      if (Clock::now() - quiet_since > 5s) break;
      continue;
    }
    quiet_since = Clock::now();
    if ((*message)->size() < sizeof(Stamp)) continue;  // not from this run
    Stamp stamp;
    std::memcpy(&stamp, (*message)->payload().data(), sizeof stamp);
    if (stamp.run != run) continue;
    last = now_ns();
    if (seen.received++ == 0) first = last;
    if ((seen.received & 0xff) == 0 || bench.rate > 0) show_progress(progress, seen.received, bench.count);
    if (stamp.number != next) ++seen.out_of_order;
    next = stamp.number + 1;
    seen.latencies.add(static_cast<std::uint64_t>(std::max<std::int64_t>(0, last - stamp.sent_ns)));
  }
  seen.seconds = static_cast<double>(last - first) / 1e9;
}

std::string histogram(const Latencies& latencies) {
  constexpr std::uint64_t from_ns = 1U << 14;  // 16 µs
  constexpr int rows = 20;
  constexpr double width = 50;
  std::array<std::uint64_t, rows> counts{};
  for (int i = 0; i < rows; ++i) {
    const std::uint64_t begin = i == 0 ? 0 : from_ns << (i - 1);
    counts[static_cast<std::size_t>(i)] = latencies.between(begin, from_ns << i);
  }
  const auto most = static_cast<double>(std::max<std::uint64_t>(1, *std::ranges::max_element(counts)));
  std::string text;
  for (int i = 0; i < rows; ++i) {
    const std::uint64_t count = counts[static_cast<std::size_t>(i)];
    if (count == 0) continue;
    const auto bar = static_cast<std::size_t>(static_cast<double>(count) / most * width);
    std::string below("< ");
    below += format_seconds(static_cast<double>(from_ns << i) / 1e9);
    const std::size_t width_bytes = below.find("µ") == std::string::npos ? 12 : 13;
    below.resize(std::max(below.size(), width_bytes), ' ');
    text += "  " + below + std::string(std::max<std::size_t>(bar, 1), '#') + " " + format_count(count) + "\n";
  }
  return text;
}

/// Returns a run that measures latency: a fifth of the rate that was reached, for about two seconds, so that
/// no message waits behind many others.
Bench paced(const Bench& bench, double reached) {
  constexpr double share = 0.2;
  constexpr std::uint64_t fewest = 100;
  Bench slow = bench;
  slow.rate = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(reached * share));
  slow.count = std::min(bench.count, std::max(fewest, 2 * slow.rate));
  return slow;
}

double rate_of(const Seen& seen) {
  return seen.seconds > 0 && seen.received > 1 ? static_cast<double>(seen.received - 1) / seen.seconds : 0;
}

/// Prints the rate of `seen`, and the latencies of `calm`, which arrived at `paced_rate` messages a second.
void report(const Common& common, const Bench& bench, const Seen& seen, const Seen& calm,
            std::uint64_t paced_rate) {
  const std::uint64_t size = std::max<std::uint64_t>(bench.size_bytes, sizeof(Stamp));
  const double rate = rate_of(seen);
  const auto at = [&](double share) { return calm.latencies.percentile(share); };
  Output out;
  if (common.json) {
    out.write("{\"cmd\":\"bench\",\"status\":\"ok\",\"received\":" + std::to_string(seen.received) +
              ",\"expected\":" + std::to_string(bench.count) +
              ",\"out_of_order\":" + std::to_string(seen.out_of_order) +
              ",\"size_bytes\":" + std::to_string(size) + ",\"seconds\":" + std::to_string(seen.seconds) +
              ",\"messages_per_second\":" + std::to_string(rate) + ",\"latency_messages_per_second\":" +
              std::to_string(paced_rate) + ",\"latency_seconds\":{\"p50\":" + std::to_string(at(0.5)) +
              ",\"p90\":" + std::to_string(at(0.9)) + ",\"p99\":" + std::to_string(at(0.99)) +
              ",\"p999\":" + std::to_string(at(0.999)) + ",\"max\":" + std::to_string(at(1)) + "}}\n");
    return;
  }
  out.write("received  " + format_count(seen.received) + " of " + format_count(bench.count) +
            " messages of " + format_size(size) +
            (seen.out_of_order == 0 ? ", in order" : ", some OUT OF ORDER or missing") + "\n");
  out.write("rate      " + format_rate(rate) + ", " +
            format_size(static_cast<std::uint64_t>(rate * static_cast<double>(size))) + "/s\n");
  out.write("latency   p50 " + format_seconds(at(0.5)) + ", p90 " + format_seconds(at(0.9)) + ", p99 " +
            format_seconds(at(0.99)) + ", p99.9 " + format_seconds(at(0.999)) + ", max " +
            format_seconds(at(1)) + ", at " + format_rate(static_cast<double>(paced_rate)) + "\n");
  if (!common.quiet) out.write(histogram(calm.latencies));
}

/// Explains missing messages, if the broker's statistics show the reason.
void explain_missing(Client& client, const std::string& topic) {
  const Result<TopicStats> stats = client.stats(topic);
  if (!stats || stats->refused + stats->rejected + stats->dropped == 0) return;
  say("topic '" + topic + "': " + format_count(stats->refused) + " refused (too large), " +
      format_count(stats->rejected) + " rejected (log full), " + format_count(stats->dropped) + " dropped");
}

int measure(const Common& common, const Bench& bench, Client& client, const std::string& topic) {
  Result<PlainConsumer> consumer = client.plain_consumer(topic, {.mode = bench.mode});
  if (!consumer) return fail(consumer.error(), topic);
  Result<PlainProducer> producer = client.plain_producer(topic);
  if (!producer) return fail(producer.error(), topic);
  const auto run_once = [&](const Bench& what, Seen& seen) {
    const std::uint32_t run = run_number();
    std::atomic<bool> stop{false};
    Result<void> sent;
    std::jthread sender([&] { sent = produce(*producer, what, run, stop); });
    consume(*consumer, what, run, common.quiet, seen);
    stop = true;
    sender.join();
    return sent;
  };
  Seen seen;
  Seen calm;
  Result<void> sent = run_once(bench, seen);
  const bool complete = seen.received == bench.count;
  const Bench slow = bench.rate > 0 ? bench : paced(bench, rate_of(seen));
  if (bench.rate == 0 && complete && sent && !interrupted()) {
    producer = client.plain_producer(topic);  // the first one is closed, so that all its messages are sent
    sent = producer ? run_once(slow, calm) : producer.error();
  }
  (void)consumer->leave();
  const bool has_calm = calm.received > 0;
  report(common, bench, seen, has_calm ? calm : seen, has_calm ? slow.rate : bench.rate);
  if (!complete) explain_missing(client, topic);
  if (!sent) return fail(sent.error(), topic);
  if (!seen.result) return fail(seen.result.error(), topic);
  return (complete || interrupted()) && seen.out_of_order == 0 ? exit_ok : exit_failure;
}

}  // namespace

int run_bench(const Common& common, const Bench& bench) {
  Result<Client> client = open_client(common);
  if (!client) return fail(client.error());
  if (!bench.topic.empty()) return measure(common, bench, *client, bench.topic);
  const std::string topic = "bench-" + std::to_string(getpid());
  TopicSettings settings;
  settings.broker_type = bench.type;
  if (const Result<void> created = client->create_topic(topic, settings); !created) {
    return fail(created.error(), topic);
  }
  const int code = measure(common, bench, *client, topic);
  if (const Result<void> deleted = client->delete_topic(topic); !deleted) return fail(deleted.error(), topic);
  return code;
}

}  // namespace lightq::cli
