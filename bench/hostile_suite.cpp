/// Layer: bench.
#include "hostile_suite.hpp"

#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "support/broker_route.hpp"
#include "support/hostile_crowd.hpp"
#include "support/machine.hpp"
#include "support/process_usage.hpp"
#include "support/session_stream.hpp"

namespace lightq::bench {
namespace {

constexpr std::size_t session_sizes[] = {100, 1024};
constexpr std::size_t plain_bytes = 100;
constexpr double share_wanted = 0.8;

/// One kind of stream: its name, and how its rate is found, in million messages a second.
struct Stream {
  std::string name;
  std::string title;
  std::function<Result<double>()> rate;
  bool failed = false;
};

class HostileRun {
 public:
  explicit HostileRun(const HostileOptions& options) : options_(options) {}

  Report run() {
    report_.suite = "hostile";
    report_.quick = options_.quick;
    auto route = BrokerRoute::start(options_.broker_binary, {{"broker_type", "queue"}});
    if (!route) {
      note_failure(route.error().text());
      return std::move(report_);
    }
    route_ = std::move(*route);
    if (const auto made = route_->prepare("hostile"); !made) note_failure(made.error().text());
    auto streams = list_streams();
    for (int round = 0; round <= options_.rounds() && !stop_requested(); ++round) {
      for (Stream& stream : streams) {
        if (!stream.failed) measure(stream, round);
      }
      std::fprintf(stderr, "%s of %d done\n",
                   round == 0 ? "warm-up" : ("round " + std::to_string(round)).c_str(), options_.rounds());
    }
    make_report(streams);
    if (stop_requested()) note_failure("interrupted");
    return std::move(report_);
  }

 private:
  std::vector<Stream> list_streams() {
    std::vector<Stream> streams;
    for (const std::size_t size : session_sizes) {
      if (!options_.parts.wants("sessions")) break;
      StreamPlan plan;
      plan.message_bytes = size;
      plan.message_count = static_cast<std::uint64_t>(options_.stream_bytes() / static_cast<double>(size));
      plan.time_max = std::chrono::seconds(60);
      const std::string bytes = std::to_string(size);
      streams.push_back(
          {"session_" + bytes, "session over TCP, " + bytes + " B", [this, plan]() -> Result<double> {
             SessionEnds ends;
             ends.control_uri = route_->control_uri();
             ends.server_key = route_->server_key();
             ends.topic = route_->topic();
             const auto result = run_session_stream(ends, plan, false);
             if (!result) return result.error();
             return result->stream.messages_per_second / 1e6;
           }});
    }
    if (options_.parts.wants("plain")) {
      StreamPlan plan;
      plan.message_bytes = plain_bytes;
      plan.message_count = static_cast<std::uint64_t>(options_.stream_bytes() / 10 / plain_bytes);
      plan.time_max = std::chrono::seconds(60);
      streams.push_back({"plain_100", "plain ZeroMQ sockets, 100 B", [this, plan]() -> Result<double> {
                           const auto ends = route_->open();
                           if (!ends) return ends.error();
                           const auto result = run_stream(*ends, plan);
                           if (!result) return result.error();
                           if (const auto closed = route_->close(*ends); !closed) return closed.error();
                           return result->messages_per_second / 1e6;
                         }});
    }
    return streams;
  }

  /// Alone, then in the crowd, or the other way round. Round 0 warms up and does not count.
  void measure(Stream& stream, int round) {
    for (const bool crowded : {round % 2 == 0, round % 2 != 0}) {
      if (stop_requested() || stream.failed) return;
      std::unique_ptr<HostileCrowd> crowd;
      if (crowded) {
        auto gathered = gather();
        if (!gathered) return give_up(stream, gathered.error());
        crowd = std::move(*gathered);
      }
      const auto before = crowd ? crowd->counts() : HostileCrowd::Counts{};
      const auto began = Clock::now();
      const auto rate = stream.rate();
      if (!rate) return give_up(stream, rate.error());
      if (round == 0) continue;
      samples_[stream.name + (crowded ? "_crowded" : "_alone")].push_back(*rate);
      if (!crowd) continue;
      const double seconds = std::chrono::duration<double>(Clock::now() - began).count();
      const auto after = crowd->counts();
      samples_["made"].push_back(static_cast<double>(after.made - before.made) / seconds);
      samples_["closed"].push_back(static_cast<double>(after.closed - before.closed) / seconds);
    }
  }

  /// At the control socket, at a door of sessions, and at producers' endpoint alike.
  Result<std::unique_ptr<HostileCrowd>> gather() {
    HostilePlan plan;
    plan.connections = options_.crowd();
    plan.uris.push_back(route_->control_uri());
    for (const char* const delivery : {"session", "plain"}) {
      const auto uri = route_->address_of(delivery);
      if (!uri) return uri.error();
      plan.uris.push_back(*uri);
    }
    return HostileCrowd::start(plan);
  }

  void give_up(Stream& stream, const Error& error) {
    stream.failed = true;
    note_failure(stream.title + ": " + error.text());
  }
  void note_failure(const std::string& text) {
    report_.failures.push_back(text);
    std::fprintf(stderr, "FAILED: %s\n", text.c_str());
  }

  void make_report(const std::vector<Stream>& streams) {
    report_.notes.push_back("`./scripts/bench hostile" + std::string(options_.quick ? " --quick" : "") +
                            "`, " + today() + ", " + machine_description() + ".");
    report_.notes.push_back(
        std::to_string(options_.crowd()) +
        " hostile connections, a quarter each silent, slow, talking garbage, coming and going, at the "
        "control "
        "socket, a session's address and a plain endpoint; each comes again two seconds after it was "
        "closed.");
    if (samples_.contains("made"))
      report_.notes.push_back("Connections a second that they made, and that the broker closed: " +
                              format_summary(summarize(samples_["made"])) + ", " +
                              format_summary(summarize(samples_["closed"])) + ".");
    report_.notes.push_back("Medians (least–greatest) of " + std::to_string(options_.rounds()) +
                            " alternating rounds after a warm-up that does not count; ratios pair by pair.");
    if (const auto peak = peak_resident_bytes_of(*route_->process()))
      report_.notes.push_back("The broker's peak resident memory: " +
                              format_number(static_cast<double>(*peak) / (1024 * 1024)) + " MiB.");
    for (const Stream& stream : streams) {
      const auto crowded = samples_.find(stream.name + "_crowded");
      const auto alone = samples_.find(stream.name + "_alone");
      if (crowded == samples_.end() || alone == samples_.end()) continue;
      Row row = compare("hostile_" + stream.name, stream.title, "million msg/s", Better::more,
                        crowded->second, "undisturbed", alone->second);
      row.goal = row.floor = share_wanted;
      report_.rows.push_back(std::move(row));
    }
  }

  const HostileOptions& options_;
  Report report_;
  std::map<std::string, std::vector<double>> samples_;
  std::unique_ptr<BrokerRoute> route_;
};

}  // namespace

Report measure_hostile(const HostileOptions& options) {
  return HostileRun(options).run();
}

}  // namespace lightq::bench
