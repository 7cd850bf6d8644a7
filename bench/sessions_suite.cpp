/// Suite `sessions`: the measurements, their rounds and results. Layer: bench.
#include "sessions_suite.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "support/broker_route.hpp"
#include "support/load/session_crowd.hpp"
#include "support/load/tcp_stream.hpp"
#include "support/machine.hpp"
#include "support/process_usage.hpp"
#include "support/proxy_route.hpp"
#include "support/session_stream.hpp"

namespace lightq::bench {
namespace {

constexpr std::size_t sizes[] = {100, 256, 512, 1024};
constexpr int subscribers = 16;
constexpr int crowd = 10;  // number of producers, and of consumers
constexpr std::size_t fan_topics = 1'000;
constexpr std::uint64_t fan_ring_bytes = 1ull << 20;
constexpr double single_messages_per_second = 10'000;
constexpr double mebibyte = 1 << 20;
// Permitted resident memory of the broker besides rings and mapped files: in total, and per connection.
constexpr double memory_allowed = 32 * mebibyte;
constexpr double connection_memory_allowed = 64 * 1024;
constexpr double ring_bytes = 64 * mebibyte;  // a topic's default
constexpr std::uint64_t file_retention_bytes = 256ull << 20;
constexpr std::uint64_t file_segment_bytes = 64ull << 20;
constexpr int proxy_high_water_messages = 1'000;  // libzmq's default
constexpr std::size_t smallest = 100;             // where libzmq's cost per message dominates

/// The values of each measurement by round.
using Samples = std::map<std::string, std::vector<double>>;

/// A measurement that runs once per round and adds to the samples.
struct Step {
  std::string name;
  std::function<Result<void>()> run;
  bool failed = false;
};

const SessionEnds over_zmq{.connection = ConnectionType::zmq};
const SessionEnds over_tcp{.transport = Transport::tcp};
const SessionEnds over_zmq_tcp{.transport = Transport::tcp, .connection = ConnectionType::zmq};

std::string at(const std::string& what, std::size_t size) {
  return what + "_" + std::to_string(size);
}

class SessionsRun {
 public:
  explicit SessionsRun(const SessionsOptions& options) : options_(options) {}

  Report run() {
    report_.suite = "sessions";
    report_.quick = options_.quick;
    if (start()) {
      if (options_.parts.wants("throughput")) {
        for (const std::size_t size : sizes) throughput(size);
      }
      if (options_.parts.wants("latency")) latency();
      if (options_.parts.wants("flat-out")) flat_out();
      if (options_.parts.wants("fan-out")) fan_out();
      if (options_.parts.wants("crowd")) many_clients();
      if (options_.parts.wants("topics")) many_topics();
      if (options_.parts.wants("single")) single_messages();
      if (options_.parts.wants("lag")) lag();
      make_report();
    }
    if (stop_requested()) note_failure("interrupted");
    return std::move(report_);
  }

 private:
  bool start() {
    const nlohmann::json recycling = {{"broker_type", "file"},
                                      {"retention_bytes", file_retention_bytes},
                                      {"segment_bytes", file_segment_bytes}};
    auto queue = BrokerRoute::start(options_.broker_binary, {{"broker_type", "queue"}});
    auto file = BrokerRoute::start(options_.broker_binary, recycling);
    auto proxy = ProxyRoute::start(proxy_high_water_messages);
    for (const auto* const route : {&queue, &file}) {
      if (*route) continue;
      note_failure(route->error().text());
      return false;
    }
    if (!proxy) {
      note_failure(proxy.error().text());
      return false;
    }
    proxy_ = std::move(proxy).value();
    queue_ = std::move(queue).value();
    file_ = std::move(file).value();
    return true;
  }

  // --- Measurements ---

  void throughput(std::size_t size) {
    StreamPlan plan;
    plan.message_bytes = size;
    plan.message_count = static_cast<std::uint64_t>(options_.throughput_bytes() / static_cast<double>(size));
    plan.time_max = std::chrono::seconds(60);
    prepare("throughput-" + std::to_string(size));
    rounds(
        "throughput at " + std::to_string(size) + " B",
        {{"tcp", [=, this] { return keep_rate(at("tcp", size), run_tcp_stream(plan)); }},
         {"relay over TCP",
          [=, this] { return keep_rate(at("relay_tcp", size), run_batch_relay(plan, RelayWire::tcp)); }},
         {"relay over a Unix socket",
          [=, this] {
            return keep_rate(at("relay_unix", size), run_batch_relay(plan, RelayWire::unix_socket));
          }},
         {"zmq", [=, this] { return keep_rate(at("zmq", size), run_stream({}, fewer(plan))); }},
         {"queue", [=, this] { return session(at("queue", size), *queue_, plan, {}); }},
         {"queue over TCP", [=, this] { return session(at("over_tcp", size), *queue_, plan, over_tcp); }},
         {"queue over ZeroMQ", [=, this] { return session(at("over_zmq", size), *queue_, plan, over_zmq); }},
         {"queue over ZeroMQ and TCP",
          [=, this] { return session(at("over_zmq_tcp", size), *queue_, plan, over_zmq_tcp); }},
         {"file, received", [=, this] { return session(at("file", size), *file_, plan, {}); }},
         {"file, flushed", [=, this] {
            return session(at("flushed", size), *file_, plan, {.level = ConfirmLevel::flushed});
          }}});
  }

  void latency() {
    for (const double rate : {1'000.0, 20'000.0}) {
      StreamPlan plan;
      plan.messages_per_second = rate;
      plan.message_count = static_cast<std::uint64_t>(rate * options_.paced_seconds());
      const std::string at_rate = "_at_" + std::to_string(static_cast<int>(rate));
      prepare("latency-" + std::to_string(static_cast<int>(rate)));
      rounds(
          "latency at " + std::to_string(static_cast<int>(rate)) + " msg/s",
          {{"relay", [=, this] { return keep_latency("relay" + at_rate, run_tcp_relay(plan)); }},
           {"zmq_proxy", [=, this] { return through_proxy("proxy" + at_rate, plan); }},
           {"queue over ZeroMQ",
            [=, this] { return session("over_zmq" + at_rate, *queue_, plan, over_zmq); }},
           {"queue over ZeroMQ and TCP",
            [=, this] { return session("over_zmq_tcp" + at_rate, *queue_, plan, over_zmq_tcp); }},
           {"queue", [=, this] { return session("queue" + at_rate, *queue_, plan, {}); }},
           {"queue over TCP", [=, this] { return session("over_tcp" + at_rate, *queue_, plan, over_tcp); }}});
    }
  }

  void flat_out() {
    StreamPlan flat;
    flat.message_count = static_cast<std::uint64_t>(options_.throughput_bytes() / 4 / 100);
    StreamPlan fast = flat;
    fast.messages_per_second = 4e6;
    StreamPlan half_a_million;
    half_a_million.messages_per_second = 5e5;
    half_a_million.message_count = static_cast<std::uint64_t>(5e5 * options_.paced_seconds());
    const SessionEnds to_disk{.level = ConfirmLevel::flushed};
    prepare("flat-out");
    rounds("latency flat out",
           {{"queue", [=, this] { return session("queue_flat", *queue_, flat, {}, true); }},
            {"queue at 4 M/s", [=, this] { return session("queue_at_4M", *queue_, fast, {}); }},
            {"flushed", [=, this] { return session("flushed_flat", *file_, flat, to_disk, true); }},
            {"flushed at 500 k/s",
             [=, this] { return session("flushed_at_500k", *file_, half_a_million, to_disk); }}});
  }

  void fan_out() {
    StreamPlan plan;
    plan.message_count = static_cast<std::uint64_t>(options_.throughput_bytes() / 8 / 100);
    prepare("fan-out");
    rounds(
        "one producer to " + std::to_string(subscribers) + " subscribers",
        {{"queue", [=, this] { return session("fan_out", *queue_, plan, {.subscribers = subscribers}); }}});
  }

  void many_clients() {
    StreamPlan plan;
    plan.message_count = static_cast<std::uint64_t>(options_.throughput_bytes() / 2 / 100);
    plan.time_max = std::chrono::seconds(60);
    prepare("crowd");
    rounds("many producers and consumers",
           {{"one to one", [=, this] { return session("one_to_one", *queue_, plan, {}); }},
            {"ten to ten", [=, this] {
               return keep_rate("ten_to_ten", run_session_crowd(ends_of(*queue_, {}), plan, crowd, crowd));
             }}});
  }

  void many_topics() {
    StreamPlan plan;
    plan.message_count = static_cast<std::uint64_t>(options_.throughput_bytes() / 5 / 100);
    plan.time_max = std::chrono::seconds(60);
    auto route = BrokerRoute::start(options_.broker_binary,
                                    {{"broker_type", "queue"}, {"ring_bytes", fan_ring_bytes}});
    if (!route) return note_failure(route.error().text());
    const auto fan = (*route)->make_fan(fan_topics);
    if (!fan) return note_failure(fan.error().text());
    rounds("many topics", {{"a thousand topics", [=, this, &fan] {
                              return keep_rate("thousand_topics", run_topic_fan(*fan, plan));
                            }}});
  }

  void single_messages() {
    StreamPlan plan;
    plan.messages_per_second = single_messages_per_second;
    plan.message_count = static_cast<std::uint64_t>(single_messages_per_second * options_.paced_seconds());
    prepare("single");
    rounds("single messages", {{"through a relay",
                                [=, this]() -> Result<void> {
                                  const auto result = run_tcp_relay(plan);
                                  if (!result) return result.error();
                                  keep("single_relay_cpu", result->relay_cpu_seconds * 1e6 / count_of(plan));
                                  return {};
                                }},
                               {"queue", [=, this] { return session("single", *queue_, plan, {}); }}});
  }

  /// Measures a durable topic with a group and a subscriber. The group has no consumers and stays behind, the
  /// subscriber keeps up.
  void lag() {
    StreamPlan plan;
    plan.message_count = static_cast<std::uint64_t>(options_.throughput_bytes() / 2 / 1024);
    plan.message_bytes = 1024;
    plan.time_max = std::chrono::seconds(60);
    StreamPlan few = plan;
    few.message_count = 1000;
    prepare("lag");
    if (const auto begun = session("group", *file_, few, {}); !begun)
      return note_failure(begun.error().text());
    rounds("a group that lags",
           {{"file", [=, this] { return session("lag", *file_, plan, {.subscribers = 1}); }}});
  }

  // --- Execution ---

  /// Returns a plan with a fifth of the messages: libzmq's wire is slower, and runs should take equal time.
  [[nodiscard]] static StreamPlan fewer(StreamPlan plan) {
    plan.message_count /= 5;
    return plan;
  }

  void prepare(const std::string& label) {
    for (BrokerRoute* const route : {queue_.get(), file_.get()}) {
      if (const Result<void> made = route->prepare(label); !made) note_failure(made.error().text());
    }
  }

  /// Round 0 warms up and does not count. Each round begins with another step.
  void rounds(const std::string& title, std::vector<Step> steps) {
    for (int round = 0; round <= options_.rounds(); ++round) {
      counts_ = round > 0;
      for (std::size_t turn = 0; turn < steps.size(); ++turn) {
        Step& step = steps[(turn + static_cast<std::size_t>(round)) % steps.size()];
        if (step.failed || stop_requested()) continue;
        if (const Result<void> ran = step.run(); !ran && !stop_requested()) {
          step.failed = true;
          note_failure(title + ", " + step.name + ": " + ran.error().text());
        }
      }
      std::fprintf(stderr, "%s: %s of %d done\n", title.c_str(),
                   round == 0 ? "warm-up" : ("round " + std::to_string(round)).c_str(), options_.rounds());
    }
  }

  [[nodiscard]] static double count_of(const StreamPlan& plan) {
    return static_cast<double>(plan.message_count);
  }

  [[nodiscard]] SessionEnds ends_of(const BrokerRoute& route, SessionEnds ends) const {
    ends.control_uri = route.control_uri();
    ends.server_key = route.server_key();
    ends.topic = route.topic();
    ends.window_bytes = options_.window_bytes;
    return ends;
  }

  Result<void> session(const std::string& name, BrokerRoute& route, const StreamPlan& plan, SessionEnds ends,
                       bool stamped = false) {
    ends = ends_of(route, std::move(ends));
    const Result<double> cpu_before = cpu_seconds_of(*route.process());
    if (!cpu_before) return cpu_before.error();
    const Result<SessionResult> result = run_session_stream(ends, plan, stamped);
    if (!result) return result.error();
    const Result<double> cpu_after = cpu_seconds_of(*route.process());
    if (!cpu_after) return cpu_after.error();
    const double gigabytes = count_of(plan) * static_cast<double>(plan.message_bytes) / 1e9;
    keep(name + "_cpu_per_gb", (*cpu_after - *cpu_before) / gigabytes);
    keep(name + "_cpu", (*cpu_after - *cpu_before) * 1e6 / count_of(plan));
    const Result<std::uint64_t> resident = own_resident_bytes_of(*route.process());
    if (!resident) return resident.error();
    keep(name + "_memory", static_cast<double>(*resident) / mebibyte);
    if (!result->confirm_us.empty()) {
      keep(name + "_confirm_p50", percentile(result->confirm_us, 0.50));
      keep(name + "_confirm_p99", percentile(result->confirm_us, 0.99));
    }
    if (const Result<void> kept = keep_latency(name, result->stream); !kept) return kept;
    return keep_rate(name, result->stream);
  }

  Result<void> through_proxy(const std::string& name, const StreamPlan& plan) {
    const Result<StreamEnds> ends = proxy_->open();
    if (!ends) return ends.error();
    return keep_latency(name, run_stream(*ends, plan));
  }
  Result<void> keep_rate(const std::string& name, const Result<StreamResult>& result) {
    if (!result) return result.error();
    keep(name, result->messages_per_second / 1e6);
    return {};
  }
  Result<void> keep_latency(const std::string& name, const Result<StreamResult>& result) {
    if (!result) return result.error();
    if (result->latency_us.empty()) return {};
    keep(name + "_p50", percentile(result->latency_us, 0.50));
    keep(name + "_p99", percentile(result->latency_us, 0.99));
    return {};
  }
  void keep(const std::string& name, double value) {
    if (counts_) samples_[name].push_back(value);
  }

  void note_failure(const std::string& text) {
    report_.failures.push_back(text);
    std::fprintf(stderr, "FAILED: %s\n", text.c_str());
  }

  // --- Report ---

  void make_report() {
    report_.notes.push_back("`./scripts/bench sessions" + std::string(options_.quick ? " --quick" : "") +
                            window_flag() + "`, " + today() + ", " + machine_description() + ".");
    report_.notes.push_back("Medians (least–greatest) of " + std::to_string(options_.rounds()) +
                            " alternating rounds after a warm-up that does not count; ratios pair by pair.");
    throughput_table();
    for (const std::size_t size : sizes) {
      const std::string bytes = std::to_string(size) + " B";
      against("queue", "tcp", size, "transient, " + bytes, "TCP alone", 0.75, 0.5);
      against("over_tcp", "tcp", size, "transient, TCP, " + bytes, "TCP alone", 0, 0);
      against("over_tcp", "relay_tcp", size, "transient, TCP, " + bytes, "relay of batches, TCP", 0, 0);
      against("queue", "relay_unix", size, "transient, " + bytes, "relay of batches, Unix socket", 0, 0);
      against("queue", "zmq", size, "transient, " + bytes, "PUSH→PULL alone", 0, 0);
      const bool small = size == smallest;
      against("over_zmq", "zmq", size, "transient, ZeroMQ, " + bytes, "PUSH→PULL alone", small ? 3.5 : 1.6,
              small ? 2.5 : 1.1);
      against("over_zmq_tcp", "zmq", size, "transient, ZeroMQ, TCP, " + bytes, "PUSH→PULL alone", 0, 0);
      against("file", "tcp", size, "durable, received, " + bytes, "TCP alone", 0.5, 0.35);
      against("flushed", "tcp", size, "durable, flushed, " + bytes, "TCP alone", 0.3, 0.2);
      bound(at("queue", size) + "_cpu_per_gb", "broker's CPU, transient, " + bytes, "s per GB", 0.4, 0.6);
      bound(at("over_tcp", size) + "_cpu_per_gb", "broker's CPU, transient, TCP, " + bytes, "s per GB", 0, 0);
    }
    const std::string relay = "relay of bytes";
    for (const std::string rate : {"_at_1000", "_at_20000"}) {
      for (const std::string way : {"queue", "over_tcp"}) {
        const bool judged = way == "queue";
        beside(way + rate + "_p50", "relay" + rate + "_p50", relay, judged ? 1.1 : 0, judged ? 1.3 : 0);
        beside(way + rate + "_p99", "relay" + rate + "_p99", relay, judged ? 1.5 : 0, judged ? 2 : 0);
      }
      for (const std::string part : {"_p50", "_p99"}) {
        beside("over_zmq" + rate + part, "proxy" + rate + part, "zmq_proxy", 1, 1.3);
        beside("over_zmq_tcp" + rate + part, "proxy" + rate + part, "zmq_proxy", 0, 0);
      }
    }
    bound("queue_flat_p50", "one-way latency flat out, p50", "µs", 200, 200);
    bound("queue_flat_p99", "one-way latency flat out, p99", "µs", 1000, 1000);
    bound("queue_at_4M_p99", "one-way latency at 4 M msg/s, p99", "µs", 2000, 2000);
    bound("flushed_flat_confirm_p99", "from send to confirm on disk, flat out, p99", "µs", 15'000, 15'000);
    bound("flushed_at_500k_confirm_p50", "from send to confirm on disk, 500 k msg/s, p50", "µs", 500, 500);
    deliveries();
    many_rows();
    memory("queue_" + std::to_string(smallest), 2, ring_bytes, "transient topic of 64 MiB, flat out");
    memory("fan_out", subscribers + 1, ring_bytes, "transient topic of 64 MiB, 16 subscribers");
    memory("lag", 2, 0, "durable topic, a group of which lags");
  }

  [[nodiscard]] std::string window_flag() const {
    return options_.window_bytes == 0 ? "" : " --window " + std::to_string(options_.window_bytes);
  }

  void throughput_table() {
    Table table{"Throughput, million messages a second", {"through"}, {}};
    for (const std::size_t size : sizes) table.heads.push_back(std::to_string(size) + " B");
    const std::pair<const char*, const char*> ways[] = {{"tcp", "TCP, no broker, nothing looked at"},
                                                        {"relay_tcp", "relay of batches, TCP"},
                                                        {"relay_unix", "relay of batches, Unix socket"},
                                                        {"zmq", "PUSH→PULL, no broker"},
                                                        {"queue", "`queue`"},
                                                        {"over_tcp", "`queue`, TCP"},
                                                        {"over_zmq", "`queue`, ZeroMQ"},
                                                        {"over_zmq_tcp", "`queue`, ZeroMQ, TCP"},
                                                        {"file", "`file`, received"},
                                                        {"flushed", "`file`, flushed"}};
    for (const auto& [key, title] : ways) {
      std::vector<std::string> cells = {title};
      for (const std::size_t size : sizes) {
        const auto found = samples_.find(at(key, size));
        cells.push_back(found == samples_.end() ? "–" : format_summary(summarize(found->second)));
      }
      table.cells.push_back(std::move(cells));
    }
    report_.tables.push_back(std::move(table));
  }

  void add(Row row, double goal, double floor) {
    row.goal = goal;
    row.floor = floor;
    report_.rows.push_back(std::move(row));
  }

  void against(const std::string& ours, const std::string& reference, std::size_t size,
               const std::string& title, const std::string& reference_name, double goal, double floor) {
    const auto mine = samples_.find(at(ours, size));
    const auto theirs = samples_.find(at(reference, size));
    if (mine == samples_.end() || theirs == samples_.end()) return;
    add(compare(at("session_" + ours + "_vs_" + reference, size), title, "million msg/s", Better::more,
                mine->second, reference_name, theirs->second),
        goal, floor);
  }

  /// Adds a row against a reference. Goal and floor are the permitted multiples of the reference's latency.
  void beside(const std::string& ours, const std::string& reference, const std::string& reference_name,
              double goal, double floor) {
    const auto mine = samples_.find(ours);
    const auto theirs = samples_.find(reference);
    if (mine == samples_.end() || theirs == samples_.end()) return;
    add(compare("session_" + ours, "one-way latency, " + ours, "µs", Better::less, mine->second,
                reference_name, theirs->second),
        goal > 0 ? 1 / goal : 0, floor > 0 ? 1 / floor : 0);
  }

  /// Adds a row against a permitted figure. `goal` 0: the row only informs.
  void bound(const std::string& name, const std::string& title, const std::string& unit, double goal,
             double floor) {
    const auto mine = samples_.find(name);
    if (mine == samples_.end()) return;
    const std::vector<double> allowed(mine->second.size(), goal > 0 ? goal : 1);
    add(compare("session_" + name, title, unit, Better::less, mine->second, goal > 0 ? "the goal" : "one",
                allowed),
        goal > 0 ? 1 : 0, goal > 0 ? goal / floor : 0);
  }

  void many_rows() {
    const auto beside_the_one = [this](const std::string& ours, const std::string& reference,
                                       const std::string& title, const std::string& unit, Better better,
                                       const std::string& reference_name, double goal) {
      const auto mine = samples_.find(ours);
      const auto theirs = samples_.find(reference);
      if (mine == samples_.end() || theirs == samples_.end()) return;
      add(compare("session_" + ours, title, unit, better, mine->second, reference_name, theirs->second), goal,
          goal);
    };
    beside_the_one("ten_to_ten", "one_to_one", "10 producers, 10 consumers of a group, 100 B",
                   "million msg/s", Better::more, "1 producer, 1 consumer", 0.8);
    beside_the_one("single_cpu", "single_relay_cpu", "broker's CPU for single messages at 10,000/s",
                   "µs per message", Better::less, "relay of bytes", 1 / 1.3);
    const auto found = samples_.find("thousand_topics");
    if (found == samples_.end()) return;
    add(compare("session_thousand_topics", "1,000 topics in turn on one connection, 100 B a frame",
                "million frames/s", Better::more, found->second, "the goal",
                std::vector<double>(found->second.size(), 1.5)),
        1, 1);
  }

  /// Adds a row against the permitted memory: the ring, a part per connection, and a total.
  void memory(const std::string& of, int connections, double ring, const std::string& title) {
    const double allowed = ring + memory_allowed + connections * connection_memory_allowed;
    bound(of + "_memory", "broker's own resident memory, " + title, "MiB", allowed / mebibyte,
          allowed / mebibyte);
  }

  void deliveries() {
    const auto found = samples_.find("fan_out");
    if (found == samples_.end()) return;
    std::vector<double> all = found->second;
    for (double& each : all) each *= subscribers;
    add(compare("session_fan_out", std::to_string(subscribers) + " subscribers, deliveries, 100 B",
                "million msg/s", Better::more, all, "the goal", std::vector<double>(all.size(), 30)),
        1, 20.0 / 30);
  }

  const SessionsOptions& options_;
  Report report_;
  Samples samples_;
  std::unique_ptr<BrokerRoute> queue_;
  std::unique_ptr<BrokerRoute> file_;
  std::unique_ptr<ProxyRoute> proxy_;
  bool counts_ = false;
};

}  // namespace

Report measure_sessions(const SessionsOptions& options) {
  return SessionsRun(options).run();
}

}  // namespace lightq::bench
