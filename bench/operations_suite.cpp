/// Suite `operations`: the measurements and their results. Layer: bench.
#include "operations_suite.hpp"

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <lightq/client.hpp>
#include <lightq/consumer.hpp>
#include <lightq/producer.hpp>

#include "support/broker_route.hpp"
#include "support/load/http_client.hpp"
#include "support/machine.hpp"
#include "support/process_usage.hpp"

namespace lightq::bench {
namespace {

constexpr int groups_per_topic = 2;
constexpr int messages_per_topic = 5;
constexpr double scrape_ms_goal = 10;
constexpr double scrape_bytes_goal = 1'000'000;
constexpr double idle_bytes_goal = 12 << 20;
constexpr double idle_cpu_goal = 0.001;  // of a core
constexpr double start_ms_goal = 100;
constexpr std::uint64_t segment_bytes = 64 << 10;  // so that the topics fit on each disk
constexpr double http_posts_goal = 50'000;
constexpr double http_lines_goal = 1'000'000;
constexpr int http_connections = 32;
constexpr int lines_per_content = 2'000;
constexpr std::chrono::seconds settle_time{2};
constexpr std::chrono::seconds close_time{10};

class OperationsRun {
 public:
  explicit OperationsRun(const OperationsOptions& options) : options_(options) {}

  Report run() {
    report_.suite = "operations";
    report_.quick = options_.quick;
    if (options_.parts.wants("idle")) note(idle());
    if (options_.parts.wants("scrape")) note(scrape());
    if (options_.parts.wants("http")) note(messages());
    if (options_.parts.wants("start")) note(start());
    report_.notes.push_back("`./scripts/bench operations`, " + today() + ", " + machine_description() + ".");
    return std::move(report_);
  }

 private:
  enum class TopicKind { transient, durable };

  void note(const Result<void>& done) {
    if (!done) report_.failures.push_back(done.error().text());
  }
  /// Adds a row that compares with a goal that is not measured.
  void add(const std::string& name, const std::string& title, const std::string& unit,
           std::vector<double> ours, double goal, Better better = Better::less) {
    Row row = compare(name, title, unit, better, ours, "the goal", std::vector<double>(ours.size(), goal));
    row.goal = 1;
    row.floor = 0.5;
    report_.rows.push_back(std::move(row));
  }

  Result<void> idle() {
    std::fprintf(stderr, "operations: an idle broker\n");
    auto broker = BrokerProcess::start(options_.broker_binary, {"--http", "tcp://127.0.0.1:0"});
    if (!broker) return broker.error();
    std::this_thread::sleep_for(settle_time);
    const auto before = cpu_seconds_of((*broker)->id());
    if (!before) return before.error();
    std::this_thread::sleep_for(std::chrono::duration<double>(options_.idle_seconds()));
    const auto after = cpu_seconds_of((*broker)->id());
    const auto resident = resident_bytes_of((*broker)->id());
    if (!after || !resident) return (after ? resident.error() : after.error());
    add("idle_rss", "an idle broker with HTTP, memory with program and libraries", "MiB",
        {static_cast<double>(*resident) / (1 << 20)}, idle_bytes_goal / (1 << 20));
    add("idle_cpu", "an idle broker with HTTP, processor time", "% of a core",
        {100 * (*after - *before) / options_.idle_seconds() + 1e-6}, 100 * idle_cpu_goal);
    return {};
  }

  Result<void> scrape() {
    std::fprintf(stderr, "operations: %d topics\n", options_.topics());
    // More often than any Prometheus asks: the limit of requests counts each KiB of a response as one.
    auto broker = BrokerProcess::start(options_.broker_binary,
                                       {"--http", "tcp://127.0.0.1:0", "--requests-per-second", "1000000"});
    if (!broker) return broker.error();
    if (auto filled = fill(**broker, TopicKind::transient); !filled) return filled;
    auto client = HttpClient::connect((*broker)->http_uri(), "lightq_admin", (*broker)->admin_password());
    if (!client) return client.error();
    std::vector<double> times;
    std::vector<double> bytes;
    for (int i = -2; i < options_.scrapes(); ++i) {  // the first two check the password, and fill caches
      const auto begun = Clock::now();
      const auto text = client->get("/metrics");
      if (!text) return text.error();
      if (i < 0) continue;
      times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begun).count());
      bytes.push_back(static_cast<double>(text->size()));
    }
    const std::string what = "/metrics of " + std::to_string(options_.topics()) + " topics of 2 groups, ";
    add("scrape_1000_topics", what + "time", "ms", std::move(times), scrape_ms_goal);
    add("scrape_bytes", what + "length", "bytes", std::move(bytes), scrape_bytes_goal);
    return {};
  }

  Result<void> messages() {
    std::fprintf(stderr, "operations: messages over HTTP\n");
    auto broker = BrokerProcess::start(options_.broker_binary,
                                       {"--http", "tcp://127.0.0.1:0", "--requests-per-second", "1000000"});
    if (!broker) return broker.error();
    ClientOptions options;
    options.admin = {"lightq_admin", (*broker)->admin_password()};
    options.user = {bench_user, bench_password};
    auto client = Client::connect((*broker)->control().uri(), std::move(options));
    if (!client) return client.error();
    std::vector<HttpClient> connections;
    for (int i = 0; i < http_connections; ++i) {
      auto connection =
          HttpClient::connect((*broker)->http_uri(), "lightq_admin", (*broker)->admin_password());
      if (!connection) return connection.error();
      connections.push_back(std::move(*connection));
    }
    std::string lines;
    for (int i = 0; i < lines_per_content; ++i) lines += "{\"payload\":\"" + std::string(16, 'x') + "\"}\n";
    std::vector<double> posts;
    std::vector<double> many;
    for (int run = 0; run < options_.runs(); ++run) {
      const std::string topic = "run-" + std::to_string(run);
      if (auto made = client->create_topic(topic); !made) return made;
      auto rate =
          post(connections, topic, "application/octet-stream", std::string(16, 'x'), options_.posts());
      if (!rate) return rate.error();
      posts.push_back(*rate);
      rate = post(connections, topic, "application/x-ndjson", lines, options_.contents());
      if (!rate) return rate.error();
      many.push_back(*rate * lines_per_content);
    }
    const std::string over = ", over " + std::to_string(http_connections) + " connections";
    add("http_post", "a message of 16 bytes in each POST" + over, "messages/s", std::move(posts),
        http_posts_goal, Better::more);
    add("http_ndjson", std::to_string(lines_per_content) + " messages of 16 bytes in each POST" + over,
        "messages/s", std::move(many), http_lines_goal, Better::more);
    return {};
  }

  /// Measures starts after clean stops, until broker.json says that the broker is ready.
  Result<void> start() {
    std::fprintf(stderr, "operations: starts with %d topics\n", options_.topics());
    auto broker = BrokerProcess::start(options_.broker_binary, {"--http", "tcp://127.0.0.1:0"});
    if (!broker) return broker.error();
    if (auto filled = fill(**broker, TopicKind::durable); !filled) return filled;
    std::vector<double> times;
    for (int i = -1; i < options_.starts(); ++i) {  // the first one reads files that are not in memory yet
      if (auto stopped = (*broker)->stop(SIGTERM); !stopped) return stopped;
      const auto begun = Clock::now();
      if (auto started = (*broker)->start_again(); !started) return started;
      if (i >= 0) times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begun).count());
    }
    add("start_1000_topics",
        "a start with " + std::to_string(options_.topics()) + " durable topics of 2 groups, until ready",
        "ms", std::move(times), start_ms_goal);
    return {};
  }

  /// Posts the content again and again to a topic in memory, with one request under way on each connection.
  /// Returns the requests a second.
  static Result<double> post(std::vector<HttpClient>& connections, const std::string& topic,
                             const std::string& type, const std::string& content, int count) {
    const std::string path = "/api/v1/topics/" + topic + "/messages";
    const auto begun = Clock::now();
    int sent = 0;
    for (; sent < count; sent += static_cast<int>(connections.size())) {
      for (HttpClient& connection : connections) {
        if (auto done = connection.post(path, type, content); !done) return done.error();
      }
      for (HttpClient& connection : connections) {
        if (auto answer = connection.receive(); !answer) return answer.error();
      }
    }
    return sent / std::chrono::duration<double>(Clock::now() - begun).count();
  }

  /// Makes topics with two groups each. One group has acknowledged a message, and both have some left.
  [[nodiscard]] Result<void> fill(const BrokerProcess& broker, TopicKind kind) const {
    ClientOptions options;
    options.admin = {"lightq_admin", broker.admin_password()};
    options.user = {bench_user, bench_password};
    auto client = Client::connect(broker.control().uri(), std::move(options));
    if (!client) return client.error();
    TopicSettings settings;
    if (kind == TopicKind::durable) {
      settings.broker_type = BrokerType::file;
      settings.segment_bytes = segment_bytes;
    }
    for (int i = 0; i < options_.topics(); ++i) {
      const std::string topic = "topic-" + std::to_string(i);
      if (auto made = client->create_topic(topic, settings); !made) return made;
      if (auto filled = fill_topic(*client, topic); !filled) return filled;
    }
    return {};
  }
  static Result<void> fill_topic(Client& client, const std::string& topic) {
    auto producer = client.producer(topic);
    if (!producer) return producer.error();
    for (int i = 0; i < messages_per_topic; ++i) {
      if (auto sent = producer->send("message"); !sent) return sent.error();
    }
    if (auto closed = producer->close(close_time); !closed) return closed;
    for (int group = 0; group < groups_per_topic; ++group) {
      ConsumerOptions wanted;
      wanted.group = "group-" + std::to_string(group);
      auto consumer = client.consumer(topic, wanted);
      if (!consumer) return consumer.error();
      auto message = consumer->receive(close_time);
      if (!message) return message.error();
      if (!*message) return failure("no message in " + topic);
      consumer->acknowledge(**message);
      if (auto closed = consumer->close(close_time); !closed) return closed;
    }
    return {};
  }

  const OperationsOptions& options_;
  Report report_;
};

}  // namespace

Report measure_operations(const OperationsOptions& options) {
  return OperationsRun(options).run();
}

}  // namespace lightq::bench
