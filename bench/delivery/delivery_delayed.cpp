/// Parts `delay-waiting` and `delay-due`: a million delayed messages that wait, and those that fall due.
/// Layer: bench.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "delivery/delivery_suite.hpp"
#include "support/child_process.hpp"
#include "support/load/delayed_load.hpp"
#include "support/load/group_stream.hpp"
#include "support/process_usage.hpp"

namespace lightq::bench {
namespace {

constexpr int delayed_rounds = 3;
constexpr std::size_t small_bytes = message_bytes_min;
constexpr double mib = 1024.0 * 1024.0;
constexpr std::int64_t us_per_second = 1'000'000;
constexpr std::int64_t day_us = 24LL * 3600 * us_per_second;
constexpr std::chrono::seconds arrival_wait{60};

// The permitted figures.
constexpr double memory_mib_max = 64;
constexpr double idle_cpu_percent_max = 1;
constexpr double start_seconds_max = 1;
constexpr double lateness_ms_max = 10;
constexpr double burst_goal = 0.5;
constexpr double burst_floor = 0.35;

/// Sleeps for a time, or until a signal asks this process to stop.
void rest_for(std::chrono::milliseconds time) {
  const Clock::time_point end = Clock::now() + time;
  while (Clock::now() < end && !stop_requested())
    std::this_thread::sleep_for(std::min<Clock::duration>(std::chrono::milliseconds(50), end - Clock::now()));
  throw_if_stopped();
}

/// A topic, and how it is called in names and titles of rows.
struct DelayedTopic {
  const char* suffix;
  const char* title;
  nlohmann::json settings;
};
const DelayedTopic durable_topic{"", "durable", {{"broker_type", "file"}}};
const DelayedTopic ring_topic{
    "_queue", "transient", {{"broker_type", "queue"}, {"ring_bytes", std::uint64_t{1} << 30}}};

std::unique_ptr<BrokerRoute> broker_with(const DeliverySuite& suite, const DelayedTopic& topic,
                                         const std::string& label) {
  auto route = BrokerRoute::start(suite.options().broker_binary, topic.settings).value_or_throw();
  route->prepare(label).value_or_throw();
  return route;
}

double own_mib_of(const BrokerRoute& route) {
  return static_cast<double>(own_resident_bytes_of(*route.process()).value_or_throw()) / mib;
}

/// Throws unless this number of messages waits in the topic's schedule.
void expect_waiting(const BrokerRoute& route, std::uint64_t messages) {
  const nlohmann::json stats = route.command("stats", {}).value_or_throw();
  const auto waiting = stats.value("delayed", nlohmann::json::object()).value("messages", std::uint64_t{0});
  if (waiting != messages) {
    throw_failure("of " + std::to_string(messages) + " delayed messages " + std::to_string(waiting) +
                  " wait");
  }
}

// --- Messages that wait ---

/// One value of each for each round.
struct WaitingSamples {
  std::vector<double> memory_mib;
  std::vector<double> restarted_mib;
  std::vector<double> idle_percent;
  std::vector<double> empty_start_seconds;  // without messages
  std::vector<double> start_seconds;
  std::vector<double> killed_start_seconds;
  std::vector<double> publish_seconds;
};

/// Returns the broker's processor time in percent of one processor, over a time in which nothing happens. The
/// kernel counts in ticks of 10 ms: less than one counts as one.
double idle_percent_of(const BrokerRoute& route, std::chrono::milliseconds time) {
  const double before = cpu_seconds_of(*route.process()).value_or_throw();
  const Clock::time_point begun = Clock::now();
  rest_for(time);
  const double seconds = std::chrono::duration<double>(Clock::now() - begun).count();
  const double used = cpu_seconds_of(*route.process()).value_or_throw() - before;
  return 100 * std::max(used, 1.0 / static_cast<double>(::sysconf(_SC_CLK_TCK))) / seconds;
}

/// Ends the broker, and returns the seconds from its next start until the topic answers a command.
double start_seconds_of(BrokerRoute& route, int signal, std::uint64_t messages) {
  route.broker().stop(signal).value_or_throw();
  const Clock::time_point begun = Clock::now();
  route.broker().start_again().value_or_throw();
  const auto page = route.command("list_delayed", {{"limit", 1}}).value_or_throw();
  const double seconds = std::chrono::duration<double>(Clock::now() - begun).count();
  if (page["messages"].size() != std::min<std::uint64_t>(messages, 1))
    throw_failure("no delayed message is listed after a start");
  expect_waiting(route, messages);
  return seconds;
}

void measure_waiting_round(const DeliverySuite& suite, WaitingSamples& samples) {
  const bool quick = suite.options().quick;
  const std::uint64_t messages = quick ? 100'000 : 1'000'000;
  const auto route = broker_with(suite, durable_topic, "waiting");
  DelayedLoad load(messages, small_bytes);
  const DueTimes due{wall_us() + day_us, day_us, messages};
  samples.empty_start_seconds.push_back(start_seconds_of(*route, SIGTERM, 0));
  const double before_mib = own_mib_of(*route);
  const Clock::time_point begun = Clock::now();
  load.publish(session_ends_of(*route), 0, messages, [&](std::uint64_t n) { return due.of(n); })
      .value_or_throw();
  samples.publish_seconds.push_back(std::chrono::duration<double>(Clock::now() - begun).count());
  expect_waiting(*route, messages);
  rest_for(std::chrono::milliseconds(quick ? 300 : 2'000));  // the producer's memory is released
  samples.memory_mib.push_back(own_mib_of(*route) - before_mib);
  samples.idle_percent.push_back(idle_percent_of(*route, std::chrono::seconds(quick ? 2 : 10)));
  samples.start_seconds.push_back(start_seconds_of(*route, SIGTERM, messages));
  samples.restarted_mib.push_back(own_mib_of(*route) - before_mib);
  samples.killed_start_seconds.push_back(start_seconds_of(*route, SIGKILL, messages));
}

// --- Messages that fall due ---

struct DueSamples {
  std::vector<double> appended_p99_ms;
  std::vector<double> received_p50_ms;
  std::vector<double> received_p99_ms;
  std::vector<double> received_max_ms;
  std::vector<double> cpu_percent;
};

/// Publishes messages that fall due over a time, and receives them. `rate`: messages that fall due a second.
void measure_due_round(BrokerRoute& route, std::uint64_t rate, std::chrono::seconds time,
                       std::chrono::seconds lead, DueSamples& samples) {
  const std::uint64_t messages = rate * static_cast<std::uint64_t>(time.count());
  DelayedLoad load(messages, small_bytes);
  const DueTimes due{wall_us() + lead.count() * us_per_second, time.count() * us_per_second, messages};
  const double before = cpu_seconds_of(*route.process()).value_or_throw();
  load.run(session_ends_of(route), due, arrival_wait).value_or_throw();
  const double cpu_seconds = cpu_seconds_of(*route.process()).value_or_throw() - before;
  const Lateness late = load.lateness([&](std::uint64_t n) { return due.of(n); }).value_or_throw();
  samples.appended_p99_ms.push_back(percentile(late.appended_ms, 0.99));
  samples.received_p50_ms.push_back(percentile(late.received_ms, 0.5));
  samples.received_p99_ms.push_back(percentile(late.received_ms, 0.99));
  samples.received_max_ms.push_back(percentile(late.received_ms, 1));
  samples.cpu_percent.push_back(100 * cpu_seconds / static_cast<double>((time + lead).count()));
}

void measure_lateness(DeliverySuite& suite, BrokerRoute& route, const DelayedTopic& topic,
                      const std::string& row, const std::string& what, std::uint64_t rate,
                      std::chrono::seconds time) {
  const bool quick = suite.options().quick;
  DueSamples samples;
  for (int round = 0; round < suite.options().rounds(delayed_rounds); ++round) {
    throw_if_stopped();
    measure_due_round(route, rate, time, std::chrono::seconds(quick ? 2 : 8), samples);
  }
  const std::string name = row + topic.suffix;
  const std::string title = what + ", " + topic.title;
  suite.add_bound(name + "_p99", title + ", late in the log, p99", "ms", samples.appended_p99_ms,
                  lateness_ms_max);
  suite.add_bound(name + "_received_p99", title + ", late at the consumer, p99", "ms",
                  samples.received_p99_ms, lateness_ms_max);
  suite.add_bound(name + "_received_p50", title + ", late at the consumer, p50", "ms",
                  samples.received_p50_ms, 0);
  suite.add_bound(name + "_received_max", title + ", late at the consumer, most", "ms",
                  samples.received_max_ms, 0);
  suite.add_bound(name + "_cpu", title + ", broker's processor time, publishing included", "%",
                  samples.cpu_percent, 0);
}

/// Returns the rate, in million messages a second, at which messages that fall due at one moment arrive.
double burst_rate(BrokerRoute& route, std::uint64_t messages, std::chrono::seconds lead) {
  DelayedLoad load(messages, small_bytes);
  const DueTimes due{wall_us() + lead.count() * us_per_second, 0, messages};
  load.run(session_ends_of(route), due, arrival_wait).value_or_throw();
  load.lateness([&](std::uint64_t n) { return due.of(n); }).value_or_throw();
  return static_cast<double>(messages) / static_cast<double>(load.last_received_us() - due.first_us);
}

/// Compares with messages of the same number and size that a producer sends at once.
void measure_burst(DeliverySuite& suite, BrokerRoute& route, const DelayedTopic& topic) {
  constexpr std::uint64_t messages = 200'000;
  StreamPlan plan;
  plan.message_count = messages;
  plan.message_bytes = small_bytes;
  const auto burst = [&] { return burst_rate(route, messages, std::chrono::seconds(2)); };
  const auto stream = [&] {
    return run_group_stream(session_ends_of(route), plan, {.whole_batches = true, .group = "workers"})
               .value_or_throw()
               .messages_per_second /
           1e6;
  };
  const auto pairs = DeliverySuite::alternate(suite.options().rounds(2 * delayed_rounds), burst, stream);
  suite.add(compare("delay_burst" + std::string(topic.suffix),
                    "200,000 messages due at one moment, " + std::string(topic.title), "million msg/s",
                    Better::more, pairs.ours, "messages without a delay", pairs.reference),
            burst_goal, burst_floor);
}

}  // namespace

void measure_delay_waiting(DeliverySuite& suite) {
  WaitingSamples samples;
  for (int round = 0; round < suite.options().rounds(delayed_rounds); ++round) {
    throw_if_stopped();
    measure_waiting_round(suite, samples);
  }
  const std::string title = suite.options().quick ? "100,000 delayed messages" : "a million delayed messages";
  suite.add_bound("delay_memory", title + " wait, the broker's memory", "MiB", samples.memory_mib,
                  memory_mib_max);
  suite.add_bound("delay_memory_restarted", title + " wait, the broker's memory after a start", "MiB",
                  samples.restarted_mib, memory_mib_max);
  suite.add_bound("delay_idle_cpu", title + ", none is due, the broker's processor time", "%",
                  samples.idle_percent, idle_cpu_percent_max);
  suite.add_bound("delay_start", title + ", start of the broker", "s", samples.start_seconds,
                  start_seconds_max);
  suite.add_bound("delay_start_killed", title + ", start of the broker after SIGKILL", "s",
                  samples.killed_start_seconds, start_seconds_max);
  suite.add_bound("delay_start_empty", "no delayed messages, start of the broker", "s",
                  samples.empty_start_seconds, 0);
  suite.add_bound("delay_publish", title + ", until all are confirmed", "s", samples.publish_seconds, 0);
}

void measure_delay_due(DeliverySuite& suite) {
  const bool quick = suite.options().quick;
  for (const DelayedTopic* topic : {&durable_topic, &ring_topic}) {
    const auto route = broker_with(suite, *topic, "due");
    measure_lateness(suite, *route, *topic, "delay_lateness", "100,000 messages fall due a second", 100'000,
                     std::chrono::seconds(quick ? 1 : 10));
    measure_lateness(suite, *route, *topic, "delay_second", "200,000 messages fall due in one second",
                     200'000, std::chrono::seconds(1));
    measure_burst(suite, *route, *topic);
  }
}

}  // namespace lightq::bench
