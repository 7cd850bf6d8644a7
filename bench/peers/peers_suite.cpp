/// Suite `peers`: rounds of all peers in turn. Layer: bench peers.
#include "peers/peers_suite.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <stdexcept>
#include <utility>

#include "peers/peer_table.hpp"
#include "peers/work/backlog_work.hpp"
#include "peers/work/idle_work.hpp"
#include "peers/work/kill_work.hpp"
#include "peers/work/stream_work.hpp"
#include "support/child_process.hpp"
#include "support/machine.hpp"

namespace lightq::bench {
namespace {

constexpr std::size_t throughput_sizes[] = {100, 1'024};
constexpr double latency_rates[] = {1'000, 20'000};
constexpr double cpu_rate = 10'000;
constexpr int fan_out_consumers = 16;
constexpr int workers = 4;
constexpr int slow_factor = 100;
constexpr std::chrono::microseconds handler_time{1'000};
constexpr std::uint64_t run_messages_min = 500;
constexpr std::uint64_t run_messages_max = 20'000'000;
constexpr double thousand = 1'000;

std::string whole(double number) {
  return std::to_string(static_cast<long>(number));
}

const char* text_of(Storage storage) {
  switch (storage) {
    case Storage::memory: return "in memory";
    case Storage::page_cache: return "in page cache";
    case Storage::synced: return "after fsync";
    case Storage::standard: break;
  }
  return "default settings";
}

/// A peer in a part, with its server.
struct Entrant {
  const Peer* peer;
  std::shared_ptr<PeerServer> server;
  std::map<std::string, std::uint64_t> messages = {};  // of a run, by figure
};

/// Continues a server for one measurement.
class Turn {
 public:
  explicit Turn(PeerServer& server) : server_(server) { server_.resume(); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() { server_.pause(); }

 private:
  PeerServer& server_;
};

std::vector<std::string> names_of(const std::vector<std::unique_ptr<Peer>>& peers) {
  std::vector<std::string> names;
  for (const auto& peer : peers) names.push_back(peer->name());
  return names;
}

/// Returns LightQ, and those of the others that are wanted and installed. Says which are left out.
std::vector<std::unique_ptr<Peer>> chosen_peers(const PeersOptions& options,
                                                std::vector<std::string>& failures) {
  std::vector<std::unique_ptr<Peer>> chosen;
  for (auto& peer : all_peers(options.programs)) {
    const std::string name = peer->name();
    const bool named = std::count(options.wanted.begin(), options.wanted.end(), name) > 0;
    if (!options.wanted.empty() && !named && !chosen.empty()) continue;
    if (!peer->version()) {
      std::fprintf(stderr, "peers: %s is left out: it needs %s\n", name.c_str(), peer->needs().c_str());
      if (named) failures.push_back(name + " is not installed: it needs " + peer->needs());
      continue;
    }
    chosen.push_back(std::move(peer));
  }
  return chosen;
}

class PeersRun {
 public:
  explicit PeersRun(const PeersOptions& options)
      : options_(options), peers_(chosen_peers(options, report_.failures)), table_(names_of(peers_)) {
    report_.suite = "peers";
    report_.quick = options.quick;
  }

  Report run() {
    throughput("memory", Work::memory, Storage::memory, "In memory, confirmed and acknowledged");
    throughput("page-cache", Work::page_cache, Storage::page_cache,
               "Durable in page cache, confirmed and acknowledged");
    throughput("synced", Work::synced, Storage::synced, "Durable after fsync, confirmed and acknowledged");
    latency();
    work_queue();
    fan_out();
    idle();
    broker_cpu();
    kill();
    describe();
    if (stop_requested()) report_.failures.emplace_back("interrupted");
    report_.tables = table_.tables();
    report_.json = table_.json(options_.quick);
    return std::move(report_);
  }

 private:
  // --- The kinds of work ---

  void throughput(const std::string& part, Work work, Storage storage, const std::string& caption) {
    if (!wants(part)) return;
    WorkGroup group{caption, {}};
    for (const std::size_t size : throughput_sizes)
      group.figures.push_back(
          {part + "-" + std::to_string(size), std::to_string(size) + " B", "1,000 msg/s"});
    table_.begin(group);
    auto entrants = start_all(work, storage);
    for (const std::size_t size : throughput_sizes) {
      StreamWork wanted;
      wanted.message_bytes = size;
      wanted.queue.storage = storage;
      rounds(entrants, part + "-" + std::to_string(size), [&](Entrant& entrant, const std::string& figure) {
        return figures_of(figure, rate(entrant, wanted, figure));
      });
    }
  }

  void latency() {
    if (!wants("latency")) return;
    WorkGroup group{"One-way latency of 100 B, in memory, confirmed and acknowledged", {}};
    for (const double rate : latency_rates) {
      for (const char* point : {"p50", "p99"})
        group.figures.push_back(
            {"latency-" + whole(rate) + "-" + point, whole(rate) + " msg/s, " + point, "µs", Better::less});
    }
    table_.begin(group);
    auto entrants = start_all(Work::latency, Storage::memory);
    for (const double rate : latency_rates) {
      rounds(entrants, "latency-" + whole(rate), [&](Entrant& entrant, const std::string& figure) {
        const StreamTimes times = paced(entrant, rate, true);
        return Figures{{figure + "-p50", percentile(times.latency_us, 0.5)},
                       {figure + "-p99", percentile(times.latency_us, 0.99)}};
      });
    }
  }

  void work_queue() {
    if (!wants("work-queue")) return;
    table_.begin({std::to_string(options_.backlog_messages()) +
                      " messages, four workers of one group, handlers of 1 ms, one 100 times slower",
                  {{"work-queue", "time", "s", Better::less}}});
    auto entrants = start_all(Work::work_queue, Storage::memory);
    rounds(entrants, "work-queue", [&](Entrant& entrant, const std::string& figure) {
      BacklogWork work;
      work.queue = new_queue(Storage::memory, Pattern::work_queue, workers);
      work.messages = options_.backlog_messages();
      work.handlers.assign(workers, handler_time);
      work.handlers.back() *= slow_factor;
      return figures_of(figure, run_backlog_work(*entrant.server, work));
    });
  }

  void fan_out() {
    if (!wants("fan-out")) return;
    table_.begin({"1 to 16 consumers, each receives everything, 100 B, in memory",
                  {{"fan-out", "deliveries", "1,000 msg/s"}}});
    auto entrants = start_all(Work::fan_out, Storage::memory);
    StreamWork wanted;
    wanted.queue.pattern = Pattern::fan_out;
    wanted.queue.consumers = fan_out_consumers;
    rounds(entrants, "fan-out", [&](Entrant& entrant, const std::string& figure) {
      return figures_of(figure, fan_out_consumers * rate(entrant, wanted, figure));
    });
  }

  void idle() {
    if (!wants("idle")) return;
    const std::string many = std::to_string(options_.idle_queues()) + " queues";
    table_.begin({"An idle server with its default settings",
                  {{"idle-memory", "memory", "MiB", Better::less},
                   {"idle-cpu", "CPU", "% of a core", Better::less},
                   {"idle-memory-1000", "memory, " + many, "MiB", Better::less},
                   {"idle-cpu-1000", "CPU, " + many, "% of a core", Better::less}}});
    auto entrants = start_all(Work::idle, Storage::standard, !options_.quick);
    for (Entrant& entrant : entrants) {
      guarded(entrant, "idle", [&] {
        const Turn turn(*entrant.server);
        const IdleUse empty = run_idle_work(*entrant.server, 0, options_.idle_seconds());
        const IdleUse full = run_idle_work(*entrant.server, options_.idle_queues(), options_.idle_seconds());
        keep(entrant, {{"idle-memory", empty.resident_mebibytes},
                       {"idle-cpu", empty.cpu_percent},
                       {"idle-memory-1000", full.resident_mebibytes},
                       {"idle-cpu-1000", full.cpu_percent}});
      });
    }
  }

  void broker_cpu() {
    if (!wants("cpu")) return;
    table_.begin(
        {"Processor time of the server at 10,000 msg/s of 100 B, in memory, confirmed and acknowledged",
         {{"cpu", "a message", "µs", Better::less}}});
    auto entrants = start_all(Work::cpu, Storage::memory);
    rounds(entrants, "cpu", [&](Entrant& entrant, const std::string& figure) {
      const StreamTimes times = paced(entrant, cpu_rate, false);
      return figures_of(figure, times.server_cpu_seconds * 1e6 / (cpu_rate * options_.paced_seconds()));
    });
  }

  void kill() {
    if (!wants("kill")) return;
    table_.begin({"Kill -9 of the server while it confirms durable messages, default settings",
                  {{"kill-confirmed", "confirmed", "messages"},
                   {"kill-lost", "of these lost", "messages", Better::less},
                   {"kill-altered", "delivered altered", "messages", Better::less}}});
    auto entrants = start_all(Work::kill, Storage::standard, !options_.quick);
    rounds(entrants, "kill", [&](Entrant& entrant, const std::string&) {
      const KillCount count = run_kill_work(*entrant.server, new_queue(Storage::standard, Pattern::stream, 1),
                                            options_.confirmed_min());
      if (count.altered != 0 && entrant.peer->name().starts_with("lightq"))
        throw std::runtime_error(std::to_string(count.altered) + " messages came altered");
      return Figures{{"kill-confirmed", static_cast<double>(count.confirmed)},
                     {"kill-lost", static_cast<double>(count.lost)},
                     {"kill-altered", static_cast<double>(count.altered)}};
    });
  }

  // --- Execution ---

  using Figures = std::vector<std::pair<std::string, double>>;
  static Figures figures_of(const std::string& name, double value) { return {{name, value}}; }

  [[nodiscard]] bool wants(const std::string& part) const {
    if (!options_.parts.wants(part) || stop_requested() || peers_.empty()) return false;
    std::fprintf(stderr, "peers: %s\n", part.c_str());
    return true;
  }

  QueueTerms new_queue(Storage storage, Pattern pattern, int consumers) {
    return {new_name(), storage, pattern, consumers};
  }
  std::string new_name() { return "run-" + std::to_string(++queues_); }

  /// Starts the servers of the peers that can do the work, and pauses them. Servers live until the end of the
  /// suite and serve several parts, unless the part needs one of its own (`fresh`).
  std::vector<Entrant> start_all(Work work, Storage storage, bool fresh = false) {
    std::vector<Entrant> entrants;
    for (const auto& peer : peers_) {
      const Promise promise = peer->promise(work);
      if (!promise.note.empty()) table_.remark(peer->name(), promise.note);
      if (!promise.possible || stop_requested()) continue;
      Entrant entrant{peer.get(), nullptr};
      guarded(entrant, text_of(storage), [&] { entrant.server = server_of(*peer, storage, fresh); });
      if (entrant.server) entrants.push_back(std::move(entrant));
    }
    return entrants;
  }

  std::shared_ptr<PeerServer> server_of(const Peer& peer, Storage storage, bool fresh) {
    const auto kind =
        std::pair(peer.name(), std::string(peer.has_one_server() ? "any storage" : text_of(storage)));
    if (const auto found = servers_.find(kind); found != servers_.end() && !fresh) return found->second;
    std::shared_ptr<PeerServer> server = peer.start(storage);
    commands_[kind] = server->command();
    server->pause();
    if (!fresh) servers_[kind] = server;
    return server;
  }

  /// Calls `work`. An exception is noted as a failure of the peer. Returns false then.
  bool guarded(const Entrant& entrant, const std::string& what, const std::function<void()>& work) {
    try {
      work();
      return true;
    } catch (const std::exception& problem) {
      const std::string text = entrant.peer->name() + ", " + what + ": " + problem.what();
      std::fprintf(stderr, "FAILED: %s\n", text.c_str());
      report_.failures.push_back(text);
      return false;
    }
  }

  /// Measures all entrants in turn, in `rounds` rounds after one that warms up and does not count. Each round
  /// begins with another entrant. One that fails is left out from then on.
  void rounds(std::vector<Entrant>& entrants, const std::string& figure,
              const std::function<Figures(Entrant&, const std::string&)>& measure) {
    std::vector<bool> failed(entrants.size(), false);
    const int warm_up_rounds = options_.quick ? 0 : 1;
    for (int round = 0; round < options_.rounds() + warm_up_rounds; ++round) {
      for (std::size_t i = 0; i < entrants.size(); ++i) {
        const std::size_t place = (i + static_cast<std::size_t>(round)) % entrants.size();
        Entrant& entrant = entrants[place];
        if (failed[place] || stop_requested()) continue;
        failed[place] = !guarded(entrant, figure, [&] {
          const Turn turn(*entrant.server);
          const Figures figures = measure(entrant, figure);
          if (round >= warm_up_rounds) keep(entrant, figures);
        });
      }
    }
  }

  void keep(const Entrant& entrant, const Figures& figures) {
    for (const auto& [name, value] : figures) {
      std::fprintf(stderr, "  %s %s: %s\n", name.c_str(), entrant.peer->name().c_str(),
                   format_number(value).c_str());
      table_.add(entrant.peer->name(), name, value);
    }
  }

  /// Returns thousand messages a second. The first run of an entrant finds out how many messages take the
  /// time of a run.
  double rate(Entrant& entrant, StreamWork work, const std::string& figure) {
    std::uint64_t& messages = entrant.messages[figure];
    if (messages == 0) {
      messages = options_.messages_first(work.queue.storage);
      const double first = stream(entrant, work, messages);
      if (options_.quick) return first;
      messages = std::clamp(messages_at(first), run_messages_min, messages);
      // A second look: the first run is over before the server and its clients are warm.
      for (int look = 0; look < 2; ++look)
        messages = std::clamp(messages_at(stream(entrant, work, messages)), messages, run_messages_max);
    }
    return stream(entrant, work, messages);
  }

  /// Returns how many messages a run has at `rate`, in thousand a second.
  [[nodiscard]] std::uint64_t messages_at(double rate) const {
    return static_cast<std::uint64_t>(rate * thousand * options_.throughput_seconds());
  }

  double stream(Entrant& entrant, StreamWork work, std::uint64_t messages) {
    work.messages = messages;
    const StreamTimes times = run(entrant, work);
    return times.seconds > 0 ? static_cast<double>(messages) / times.seconds / thousand : 0;
  }

  StreamTimes paced(Entrant& entrant, double rate, bool prompt) {
    StreamWork work;
    work.queue.prompt = prompt;
    work.messages_per_second = rate;
    work.messages = static_cast<std::uint64_t>(rate * options_.paced_seconds());
    work.keeps_pace = !options_.quick;
    return run(entrant, work);
  }

  StreamTimes run(Entrant& entrant, StreamWork work) {
    work.queue.name = new_name();
    work.ordered = entrant.peer->keeps_order();
    work.confirmed = entrant.peer->confirms();
    return run_stream_work(*entrant.server, work);
  }

  // --- Description ---

  void describe() {
    auto& notes = report_.notes;
    notes.push_back("`./scripts/bench peers" + std::string(options_.quick ? " --quick" : "") + "`, " +
                    today() + ", " + machine_description() + ".");
    notes.emplace_back(
        "Medians (least–greatest) of rounds in which all peers take turns; ratios round by round, above 1 if "
        "LightQ "
        "is better.");
    for (const auto& peer : peers_) {
      std::string note = "`" + peer->name() + "`: " + peer->version().value_or("") + "; " + peer->way() + ".";
      for (const auto& [key, command] : commands_) {
        if (key.first == peer->name()) note += " " + key.second + ": `" + command + "`.";
      }
      notes.push_back(std::move(note));
    }
  }

  const PeersOptions& options_;
  Report report_;
  std::vector<std::unique_ptr<Peer>> peers_;
  PeerTable table_;
  std::map<std::pair<std::string, std::string>, std::string> commands_;  // by peer and storage
  std::map<std::pair<std::string, std::string>, std::shared_ptr<PeerServer>> servers_;
  int queues_ = 0;
};

}  // namespace

void list_peers(const PeerPrograms& programs) {
  for (const auto& peer : all_peers(programs)) {
    const auto version = peer->version();
    const std::string text = version ? *version + "; " + peer->way() : "left out: it needs " + peer->needs();
    std::printf("%-18s %s\n", peer->name().c_str(), text.c_str());
  }
}

bool is_peer(const std::string& name) {
  const std::vector<std::string> names = names_of(all_peers({}));
  return std::find(names.begin(), names.end(), name) != names.end();
}

Report measure_peers(const PeersOptions& options) {
  return PeersRun(options).run();
}

}  // namespace lightq::bench
