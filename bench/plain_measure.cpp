/// The rounds of suite `plain`. Layer: bench.
#include "plain_measure.hpp"

#include <cstdio>

#include "support/broker_route.hpp"
#include "support/process_usage.hpp"
#include "support/proxy_route.hpp"
#include "support/statistics.hpp"

namespace lightq::bench {
namespace {

constexpr int default_high_water_messages = 1'000;  // libzmq's default
constexpr double calibration_bytes = 40e6;

// Small enough that segments are recycled from the second round on, and large enough that no consumer falls
// behind it. Otherwise retention would remove messages that the consumer has not received, and the check
// would report them.
constexpr std::uint64_t file_retention_bytes = 256ull << 20;
constexpr std::uint64_t file_segment_bytes = 64ull << 20;

struct Way {
  std::string key;
  bool measures_latency = false;
  std::unique_ptr<Route> route;
  bool failed = false;
};

class PlainRun {
 public:
  explicit PlainRun(const PlainOptions& options) : options_(options) {}

  Measurements run() {
    start_ways();
    for (const Load& load : throughput_loads()) measure_throughput(load);
    for (const Load& load : latency_loads()) measure_latency(load);
    note_peaks();
    return std::move(measured_);
  }

 private:
  void start_ways() {
    add(way::direct, true, std::unique_ptr<Route>(std::make_unique<DirectRoute>()));
    add(way::proxy, true, ProxyRoute::start(default_high_water_messages));
    add(way::proxy_deep, false, ProxyRoute::start(client_high_water_messages));
    if (options_.references_only) return;
    const nlohmann::json recycling = {{"broker_type", "file"},
                                      {"retention_bytes", file_retention_bytes},
                                      {"segment_bytes", file_segment_bytes}};
    add(way::queue, true, BrokerRoute::start(options_.broker_binary, {{"broker_type", "queue"}}));
    add(way::file, true, BrokerRoute::start(options_.broker_binary, recycling));
    add(way::file_keeping, false, BrokerRoute::start(options_.broker_binary, {{"broker_type", "file"}}));
  }

  template <typename Kind>
  void add(const char* key, bool measures_latency, Result<std::unique_ptr<Kind>> route) {
    if (!route) {
      note_failure(std::string(key) + ": " + route.error().text());
      return;
    }
    ways_.push_back({key, measures_latency, std::move(route).value(), false});
  }
  void add(const char* key, bool measures_latency, std::unique_ptr<Route> route) {
    ways_.push_back({key, measures_latency, std::move(route), false});
  }

  void measure_throughput(const Load& load) {
    StreamPlan plan;
    plan.message_bytes = load.message_bytes;
    if (stop_requested() || !prepare_all(load, [](const Way&) { return true; })) return;
    plan.message_count = calibrate(plan);
    if (plan.message_count > 0) run_rounds(load, plan, options_.rounds());
  }

  void measure_latency(const Load& load) {
    StreamPlan plan;
    plan.message_bytes = load.message_bytes;
    plan.messages_per_second = load.messages_per_second;
    plan.message_count = static_cast<std::uint64_t>(load.messages_per_second * options_.run_seconds());
    if (stop_requested()) return;
    if (!prepare_all(load, [](const Way& each) { return each.measures_latency; })) return;
    run_rounds(load, plan, options_.latency_rounds());
  }

  /// Selects and prepares the routes for this load. Returns false if none is left.
  template <typename Wanted>
  bool prepare_all(const Load& load, Wanted wanted) {
    chosen_.clear();
    const std::string label = std::to_string(load.message_bytes) + "-" +
                              std::to_string(static_cast<long>(load.messages_per_second));
    for (Way& each : ways_) {
      if (each.failed || !wanted(each)) continue;
      const Result<void> prepared = each.route->prepare(label);
      if (prepared) {
        chosen_.push_back(&each);
      } else {
        give_up(each, load, prepared.error());
      }
    }
    return !chosen_.empty();
  }

  /// Returns the number of messages that take run_seconds through the reference; 0 if the reference does not
  /// work.
  std::uint64_t calibrate(StreamPlan plan) {
    plan.message_count =
        static_cast<std::uint64_t>(calibration_bytes / static_cast<double>(plan.message_bytes));
    for (Way* each : chosen_) {
      if (each->key != way::proxy_deep) continue;
      const Result<StreamEnds> ends = each->route->open();
      if (!ends) break;
      const Result<StreamResult> result = run_stream(*ends, plan);
      if (!result) break;
      return static_cast<std::uint64_t>(result->messages_per_second * options_.run_seconds());
    }
    if (!stop_requested()) note_failure("calibration through zmq_proxy failed");
    return 0;
  }

  /// Round 0 warms up and does not count. Each round begins with another route, so that no route always runs
  /// after an idle phase or after the heaviest load.
  void run_rounds(const Load& load, const StreamPlan& plan, int rounds) {
    for (int round = 0; round <= rounds; ++round) {
      for (std::size_t turn = 0; turn < chosen_.size(); ++turn) {
        if (stop_requested()) return;
        Way& each = *chosen_[(turn + static_cast<std::size_t>(round)) % chosen_.size()];
        if (!each.failed) run_once(each, load, plan, round > 0);
      }
      tell(load, round, rounds);
    }
  }

  void run_once(Way& each, const Load& load, const StreamPlan& plan, bool counts) {
    const Result<void> ran = measure_once(each, load, plan, counts);
    if (!ran && !stop_requested()) give_up(each, load, ran.error());
  }

  Result<void> measure_once(Way& each, const Load& load, const StreamPlan& plan, bool counts) {
    const Result<StreamEnds> ends = each.route->open();
    if (!ends) return ends.error();
    const Result<double> cpu_before = cpu_seconds(each);
    if (!cpu_before) return cpu_before.error();
    const Result<StreamResult> result = run_stream(*ends, plan);
    if (!result) return result.error();
    const Result<double> cpu_after = cpu_seconds(each);
    if (!cpu_after) return cpu_after.error();
    const Result<void> closed = each.route->close(*ends);
    if (!closed) return closed.error();
    if (!counts) return {};
    Series& series = measured_.series[{each.key, load}];
    series.messages_per_second.push_back(result->messages_per_second);
    series.cpu_seconds_per_million.push_back((*cpu_after - *cpu_before) * 1e6 /
                                             static_cast<double>(plan.message_count));
    if (!result->latency_us.empty()) {
      series.latency_p50_us.push_back(percentile(result->latency_us, 0.50));
      series.latency_p99_us.push_back(percentile(result->latency_us, 0.99));
    }
    return {};
  }

  static Result<double> cpu_seconds(const Way& each) {
    const std::optional<pid_t> process = each.route->process();
    if (!process) return 0.0;
    return cpu_seconds_of(*process);
  }

  void give_up(Way& each, const Load& load, const Error& error) {
    each.failed = true;
    measured_.series.erase({each.key, load});
    note_failure(each.key + ", " + std::to_string(load.message_bytes) + " B: " + error.text());
  }

  void note_failure(const std::string& text) {
    measured_.failures.push_back(text);
    std::fprintf(stderr, "FAILED: %s\n", text.c_str());
  }

  void note_peaks() {
    for (const Way& each : ways_) {
      const std::optional<pid_t> process = each.route->process();
      if (!process || each.failed) continue;
      const Result<std::uint64_t> peak = peak_resident_bytes_of(*process);
      if (peak) measured_.peak_mebibytes[each.key] = static_cast<double>(*peak) / (1024 * 1024);
    }
    if (stop_requested()) note_failure("interrupted");
  }

  static void tell(const Load& load, int round, int rounds) {
    const std::string which = round == 0 ? "warm-up" : "round " + std::to_string(round);
    const std::string kind =
        load.messages_per_second > 0
            ? "latency at " + std::to_string(static_cast<long>(load.messages_per_second)) + " msg/s"
            : "throughput";
    std::fprintf(stderr, "%s, %zu B: %s of %d done\n", kind.c_str(), load.message_bytes, which.c_str(),
                 rounds);
  }

  const PlainOptions& options_;
  std::vector<Way> ways_;
  std::vector<Way*> chosen_;  // the routes for the current load
  Measurements measured_;
};

}  // namespace

std::vector<Load> throughput_loads() {
  return {{100, 0}, {256, 0}, {512, 0}, {1024, 0}};
}

std::vector<Load> latency_loads() {
  return {{100, 1'000}, {100, 20'000}};
}

const Series* Measurements::find(const std::string& way_key, const Load& load) const {
  const auto found = series.find({way_key, load});
  return found == series.end() ? nullptr : &found->second;
}

Measurements measure_plain(const PlainOptions& options) {
  return PlainRun(options).run();
}

}  // namespace lightq::bench
