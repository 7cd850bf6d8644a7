/// Suite `clients`: the clients, their rounds and results. Layer: bench.
#include "clients/clients_suite.hpp"

#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "support/broker_route.hpp"
#include "support/machine.hpp"
#include "support/servers/nats_server.hpp"

namespace lightq::bench {
namespace {

constexpr std::uint64_t quick_messages = 10'000;
constexpr double floor_of_goal = 0.8;

/// A client that is measured: a program, and the calls that it uses.
struct Client {
  const char* name;
  const char* part;  ///< its language
  const char* title;
  const char* program;
  const char* mode;
  double messages;        ///< of a run that is not quick
  double goal = 0;        ///< messages a second; 0: none
  double goal_ratio = 0;  ///< of the client `cpp`; 0: none
};

/// A client of NATS, beside which the clients of its language stand.
struct NatsClient {
  const char* name;
  const char* part;
  const char* title;
  const char* program;
  const char* mode;
  double messages;
};

constexpr Client clients[] = {
    {"cpp", "cpp", "C++", "cpp", "single", 8e6},
    {"c", "c", "C", "c", "single", 8e6, 0, 0.8},
    {"go", "go", "Go", "go", "single", 4e6, 1.5e6},
    {"python", "python", "Python", "python", "single", 5e5, 150e3},
    {"python_batch", "python", "Python, batch calls", "python", "batch", 2e6, 500e3},
    {"python_asyncio", "python", "Python, asyncio", "python", "asyncio", 5e5, 150e3},
    {"python_asyncio_batch", "python", "Python, asyncio, batch calls", "python", "asyncio-batch", 2e6, 500e3},
};

constexpr NatsClient nats_clients[] = {
    {"nats_c", "c", "nats.c, nothing confirmed", "nats_c", "core", 2e6},
    {"nats_c_jetstream", "c", "nats.c, JetStream", "nats_c", "jetstream", 2e5},
    {"nats_go", "go", "nats.go, nothing confirmed", "nats_go", "core", 2e6},
    {"nats_go_jetstream", "go", "nats.go, JetStream", "nats_go", "jetstream", 2e5},
    {"nats_python", "python", "nats-py, nothing confirmed", "nats_python", "core", 2e5},
    {"nats_python_jetstream", "python", "nats-py, JetStream", "nats_python", "jetstream", 2e4},
};

/// A client's figures, one for each round.
struct Samples {
  std::vector<double> rate;  ///< million messages a second
  std::vector<double> cpu;   ///< seconds per million messages
};

class ClientsRun {
 public:
  explicit ClientsRun(const ClientsOptions& options) : options_(options) {}

  Report run() {
    report_.suite = "clients";
    report_.quick = options_.quick;
    if (start()) {
      make_steps();
      const std::uint64_t rounds = options_.quick ? 1 : options_.rounds;
      if (!options_.quick) round(0, false);
      for (std::uint64_t i = 0; i < rounds && !stop_requested(); ++i) round(i, true);
      make_report(rounds);
    }
    if (stop_requested()) note_failure("interrupted");
    return std::move(report_);
  }

  /// Runs one producer with one consumer. Errors: those of run_clients; the broker has other counts.
  Result<ClientResult> run_once(ClientRun run) {
    if (const auto made = broker_->prepare("clients-" + std::to_string(++runs_)); !made) return made.error();
    run.topic = broker_->topic();
    run.directory = directory_.path().string();
    run.environment = {{"LIGHTQ_BROKER", broker_->control_uri()},
                       {"LIGHTQ_USER", bench_user},
                       {"LIGHTQ_PASSWORD", bench_password}};
    auto result = run_clients(run);
    if (!result) return result.error();
    if (const auto counted = check_counts(run.message_count); !counted) return counted.error();
    return result;
  }

  bool start() {
    auto broker = BrokerRoute::start(options_.broker_binary, {{"broker_type", "queue"}});
    if (!broker) return note_failure(broker.error().text());
    broker_ = std::move(broker).value();
    const auto nats = options_.servers.empty() ? std::nullopt : find_program("nats-server", options_.servers);
    if (!nats) {
      report_.notes.push_back("No nats-server is here, so there are no rows beside NATS.");
      return true;
    }
    try {
      nats_.emplace(nats_command(*nats, {.jetstream = true}));
      return true;
    } catch (const std::exception& problem) {
      return note_failure(problem.what());
    }
  }

 private:
  /// Something that runs once in each round.
  struct Step {
    std::string name;
    std::function<Result<ClientResult>()> run;
  };

  [[nodiscard]] std::uint64_t count_of(double messages) const {
    return options_.quick ? quick_messages : static_cast<std::uint64_t>(messages);
  }

  void make_steps() {
    for (const Client& client : clients) {
      const bool wanted = options_.parts.wants(client.part) ||
                          (client.part == std::string("cpp") && options_.parts.wants("c"));
      if (!wanted || !has_program(client.program, client.title)) continue;
      steps_.push_back({client.name, [&client, this] {
                          return run_once(run_of(client.program, client.mode, client.messages));
                        }});
    }
    for (const NatsClient& client : nats_clients) {
      if (!nats_ || !options_.parts.wants(client.part) || !has_program(client.program, client.title))
        continue;
      steps_.push_back({client.name, [&client, this] {
                          ClientRun run = run_of(client.program, client.mode, client.messages);
                          run.topic = "clients-" + std::to_string(++runs_);
                          run.directory = directory_.path().string();
                          run.environment = {
                              {"NATS_URL", "nats://127.0.0.1:" + std::to_string(nats_->port())}};
                          return run_clients(run);
                        }});
    }
  }

  bool has_program(const char* program, const char* title) {
    if (options_.programs.contains(program)) return true;
    report_.notes.push_back(std::string(title) + ": left out, because its program could not be built here.");
    return false;
  }

  [[nodiscard]] ClientRun run_of(const char* program, const char* mode, double messages) const {
    ClientRun run;
    run.producer = run.consumer = options_.programs.find(program)->second;
    run.producer_mode = run.consumer_mode = mode;
    run.message_count = count_of(messages);
    return run;
  }

  /// Each round begins with another step.
  void round(std::uint64_t number, bool counts) {
    for (std::size_t i = 0; i < steps_.size() && !stop_requested(); ++i) {
      Step& step = steps_[(i + number) % steps_.size()];
      if (failed_.contains(step.name)) continue;
      std::fprintf(stderr, "clients: %s%s\n", step.name.c_str(), counts ? "" : ", warm-up");
      const auto result = step.run();
      if (!result) {
        failed_.insert(step.name);
        note_failure(step.name + ": " + result.error().message);
        continue;
      }
      if (!counts) continue;
      samples_[step.name].rate.push_back(result->messages_per_second / 1e6);
      samples_[step.name].cpu.push_back(result->cpu_seconds_per_million);
    }
  }

  /// Compares the broker's counts: everything arrived once, and was acknowledged.
  Result<void> check_counts(std::uint64_t count) {
    const auto stats = broker_->command("stats", {});
    if (!stats) return stats.error();
    if (const auto received = stats->value("messages_received", std::uint64_t{0}); received != count)
      return failure("the broker received " + std::to_string(received) + " messages instead of " +
                     std::to_string(count));
    for (const auto& group : stats->at("groups")) {
      if (group.value("group", "") != "bench") continue;
      const auto pending = group.value("pending", count);
      if (pending == 0) return {};
      return failure(std::to_string(pending) + " messages were not acknowledged");
    }
    return failure("the topic has no group `bench`");
  }

  bool note_failure(const std::string& text) {
    report_.failures.push_back(text);
    std::fprintf(stderr, "FAILED: %s\n", text.c_str());
    return false;
  }

  // --- Report ---

  void make_report(std::uint64_t rounds) {
    report_.notes.push_back("`./scripts/bench clients" + std::string(options_.quick ? " --quick" : "") +
                            "`, " + today() + ", " + machine_description() + ".");
    report_.notes.push_back("Medians (least–greatest) of " + std::to_string(rounds) +
                            " alternating rounds after a warm-up that does not count; ratios pair by pair.");
    table();
    for (const Client& client : clients) {
      const Samples* const ours = samples_of(client.name);
      if (ours == nullptr) continue;
      judge(client, *ours);
      for (const NatsClient& other : nats_clients) {
        const Samples* const theirs = samples_of(other.name);
        if (theirs == nullptr || std::string(other.part) != client.part) continue;
        add_row(client, "_vs_" + std::string(other.name), *ours, other.title, theirs->rate, 0);
        add_cpu_row(client, other, *ours, *theirs);
      }
    }
  }

  void table() {
    Table table{"100 B, one producer and one consumer process",
                {"client", "million msg/s", "CPU of both processes, s per million messages"},
                {}};
    const auto add = [&](const char* name, const char* title) {
      if (const Samples* const found = samples_of(name))
        table.cells.push_back(
            {title, format_summary(summarize(found->rate)), format_summary(summarize(found->cpu))});
    };
    for (const Client& client : clients) add(client.name, client.title);
    for (const NatsClient& client : nats_clients) add(client.name, client.title);
    report_.tables.push_back(std::move(table));
  }

  /// Adds the row with the client's goal.
  void judge(const Client& client, const Samples& ours) {
    if (client.goal > 0)
      add_row(client, "", ours, "the goal", std::vector<double>(ours.rate.size(), client.goal / 1e6), 1);
    const Samples* const cpp = samples_of("cpp");
    if (client.goal_ratio > 0 && cpp != nullptr)
      add_row(client, "_vs_cpp", ours, "C++", cpp->rate, client.goal_ratio);
  }

  void add_row(const Client& client, const std::string& suffix, const Samples& ours,
               const std::string& reference_name, const std::vector<double>& reference, double goal) {
    Row row = compare("client_" + std::string(client.name) + suffix, client.title, "million msg/s",
                      Better::more, ours.rate, reference_name, reference);
    row.goal = goal;
    row.floor = goal * floor_of_goal;
    report_.rows.push_back(std::move(row));
  }

  void add_cpu_row(const Client& client, const NatsClient& other, const Samples& ours,
                   const Samples& theirs) {
    report_.rows.push_back(compare("client_" + std::string(client.name) + "_cpu_vs_" + other.name,
                                   std::string(client.title) + ", CPU of both processes",
                                   "s per million messages", Better::less, ours.cpu, other.title,
                                   theirs.cpu));
  }

  [[nodiscard]] const Samples* samples_of(const std::string& name) const {
    const auto found = samples_.find(name);
    return found == samples_.end() || failed_.contains(name) ? nullptr : &found->second;
  }

  const ClientsOptions& options_;
  Report report_;
  std::unique_ptr<BrokerRoute> broker_;
  std::optional<ServerProcess> nats_;
  TempDir directory_;
  std::vector<Step> steps_;
  std::map<std::string, Samples> samples_;
  std::set<std::string> failed_;
  int runs_ = 0;
};

// --- Self-check ---

constexpr std::uint64_t check_messages = 2'000;

/// Runs a producer with a consumer and compares the result with the expected one.
bool check_pair(ClientsRun& runner, const ClientsOptions& options, const std::string& producer,
                const std::string& producer_mode, const Client& consumer, const std::string& wrong) {
  ClientRun run;
  run.producer = options.programs.find(producer)->second;
  run.consumer = options.programs.find(consumer.program)->second;
  run.producer_mode = producer_mode;
  run.consumer_mode = consumer.mode;
  run.message_count = check_messages;
  run.time_max = std::chrono::seconds(30);
  const auto result = runner.run_once(run);
  const std::string both = producer + " (" + producer_mode + ") to " + consumer.name;
  if (wrong.empty()) {
    if (!result) std::fprintf(stderr, "%s: %s\n", both.c_str(), result.error().message.c_str());
    return result.ok();
  }
  const bool seen = !result && result.error().message.find(wrong) != std::string::npos;
  if (!seen) {
    std::fprintf(stderr, "%s: the fault was not seen: %s\n", both.c_str(),
                 result ? "success" : result.error().message.c_str());
  }
  return seen;
}

}  // namespace

Report measure_clients(const ClientsOptions& options) {
  return ClientsRun(options).run();
}

bool clients_self_check(const ClientsOptions& options) {
  ClientsRun runner(options);
  if (!runner.start() || !options.programs.contains("cpp")) return false;
  bool good = true;
  // The words of the error, by the producer's mode: the consumers see all faults but an additional message.
  const std::pair<const char*, const char*> faults[] = {{"swap", "message 1000 "},
                                                        {"lose", "message 1000 "},
                                                        {"repeat", "message 1000 "},
                                                        {"damage", "message 1000 "},
                                                        {"extra", "the broker received 2001 messages"}};
  for (const Client& client : clients) {
    if (!options.programs.contains(client.program)) continue;
    good = check_pair(runner, options, client.program, client.mode, clients[0], "") && good;
    good = check_pair(runner, options, "cpp", "single", client, "") && good;
    for (const auto& [mode, words] : faults)
      good = check_pair(runner, options, "cpp", mode, client, words) && good;
  }
  return good;
}

}  // namespace lightq::bench
