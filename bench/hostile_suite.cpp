/// Suite `hostile`: the measurements, their rounds and results. Layer: bench.
#include "hostile_suite.hpp"

#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "support/broker_route.hpp"
#include "support/load/bare_door.hpp"
#include "support/load/hostile_crowd.hpp"
#include "support/machine.hpp"
#include "support/process_usage.hpp"
#include "support/session_stream.hpp"

namespace lightq::bench {
namespace {

constexpr std::size_t session_sizes[] = {100, 1024};
constexpr std::size_t plain_bytes = 100;
constexpr double share_wanted = 0.8;

/// The load beside a stream: none, a crowd at the stream's broker, or the same crowd at a process that does
/// the minimum of any server. The last one measures the cost of the crowd itself.
enum class Surrounding { nobody, crowd, crowd_elsewhere };
constexpr Surrounding surroundings[] = {Surrounding::nobody, Surrounding::crowd,
                                        Surrounding::crowd_elsewhere};

const char* suffix_of(Surrounding surrounding) {
  switch (surrounding) {
    case Surrounding::nobody: return "_alone";
    case Surrounding::crowd: return "_crowded";
    case Surrounding::crowd_elsewhere: return "_elsewhere";
  }
  return "";
}

/// A kind of stream: its name, and the measurement of its rate in million messages per second.
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
             ends.transport = Transport::tcp;  // like the crowd
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

  /// Measures once in each surrounding, in another order each round. Round 0 warms up and does not count.
  void measure(Stream& stream, int round) {
    for (std::size_t i = 0; i < std::size(surroundings); ++i) {
      const auto turn = (static_cast<std::size_t>(round) + i) % std::size(surroundings);
      const Surrounding surrounding = surroundings[turn];
      if (stop_requested() || stream.failed) return;
      if (const auto measured = measure(stream, surrounding, round != 0); !measured)
        return give_up(stream, measured.error());
    }
  }

  Result<void> measure(Stream& stream, Surrounding surrounding, bool counts) {
    std::optional<BareDoor> door;
    std::unique_ptr<HostileCrowd> crowd;
    if (surrounding == Surrounding::crowd_elsewhere) {
      auto opened = BareDoor::open();
      if (!opened) return opened.error();
      door.emplace(std::move(*opened));
    }
    if (surrounding != Surrounding::nobody) {
      auto gathered = gather(door ? &*door : nullptr);
      if (!gathered) return gathered.error();
      crowd = std::move(*gathered);
    }
    const auto before = use_of(crowd.get());
    const auto rate = stream.rate();
    if (!rate) return rate.error();
    if (!counts) return {};
    const std::string where = suffix_of(surrounding);
    samples_[stream.name + where].push_back(*rate);
    if (!crowd) return {};
    const auto after = use_of(crowd.get());
    const double seconds = std::chrono::duration<double>(after.at - before.at).count();
    samples_["made" + where].push_back(static_cast<double>(after.made - before.made) / seconds);
    samples_["closed" + where].push_back(static_cast<double>(after.closed - before.closed) / seconds);
    samples_["cpu" + where].push_back(100 * (after.cpu_seconds - before.cpu_seconds) / seconds);
    return {};
  }

  /// The activity and cost of a crowd up to a moment.
  struct Use {
    Clock::time_point at = Clock::now();
    std::uint64_t made = 0;
    std::uint64_t closed = 0;
    double cpu_seconds = 0;
  };
  static Use use_of(const HostileCrowd* crowd) {
    if (crowd == nullptr) return {};
    const auto counts = crowd->counts();
    const auto cpu = cpu_seconds_of(crowd->id());
    return {Clock::now(), counts.made, counts.closed, cpu ? *cpu : 0};
  }

  /// Starts a crowd that connects to the BareDoor or, if that is null, to the broker's control socket, a
  /// session listener and a producers' endpoint.
  Result<std::unique_ptr<HostileCrowd>> gather(const BareDoor* door) {
    HostilePlan plan;
    plan.connections = options_.crowd();
    if (door != nullptr) {
      plan.uris.push_back(door->uri());
      return HostileCrowd::start(plan);
    }
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
    note_crowd(Surrounding::crowd, "At the broker");
    note_crowd(Surrounding::crowd_elsewhere, "At the bare listener");
    report_.notes.push_back("Medians (least–greatest) of " + std::to_string(options_.rounds()) +
                            " alternating rounds after a warm-up that does not count; ratios pair by pair.");
    if (const auto peak = peak_resident_bytes_of(*route_->process()))
      report_.notes.push_back("The broker's peak resident memory: " +
                              format_number(static_cast<double>(*peak) / (1024 * 1024)) + " MiB.");
    for (const Stream& stream : streams) {
      const auto& alone = samples_[stream.name + suffix_of(Surrounding::nobody)];
      const auto& crowded = samples_[stream.name + suffix_of(Surrounding::crowd)];
      const auto& elsewhere = samples_[stream.name + suffix_of(Surrounding::crowd_elsewhere)];
      if (crowded.empty() || alone.empty() || elsewhere.empty()) continue;
      Row row = compare("hostile_" + stream.name, stream.title, "million msg/s", Better::more, crowded,
                        "undisturbed", alone);
      row.goal = row.floor = share_wanted;
      report_.rows.push_back(std::move(row));
      report_.rows.push_back(compare("hostile_" + stream.name + "_beside_bare", stream.title, "million msg/s",
                                     Better::more, crowded, "the crowd at a bare listener", elsewhere));
      report_.rows.push_back(compare("hostile_" + stream.name + "_bare",
                                     stream.title + ", the crowd at a bare listener", "million msg/s",
                                     Better::more, elsewhere, "undisturbed", alone));
    }
  }

  void note_crowd(Surrounding surrounding, const std::string& where) {
    const std::string suffix = suffix_of(surrounding);
    if (!samples_.contains("made" + suffix)) return;
    report_.notes.push_back(where + ", connections a second that they made, and that were closed: " +
                            format_summary(summarize(samples_["made" + suffix])) + ", " +
                            format_summary(summarize(samples_["closed" + suffix])) +
                            "; their own process took " +
                            format_summary(summarize(samples_["cpu" + suffix])) + " % of one processor.");
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
