/// Suite `security`: the measurements, their rounds and results. Layer: bench.
#include "security_suite.hpp"

#include <cstdio>
#include <filesystem>
#include <functional>
#include <iomanip>
#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <vector>

#include "support/broker_route.hpp"
#include "support/load/connect_times.hpp"
#include "support/load/login_times.hpp"
#include "support/machine.hpp"
#include "support/session_stream.hpp"

namespace lightq::bench {
namespace {

constexpr std::size_t sizes[] = {100, 1024};
constexpr double tickets_goal = 0.97;
constexpr double tickets_floor = 0.9;
constexpr int logins_again = 10'000;
constexpr double login_us_allowed = 50;
constexpr std::uint64_t file_retention_bytes = 256ull << 20;
constexpr std::uint64_t file_segment_bytes = 64ull << 20;
constexpr double sessions_factor = 6;  // messages per session run, relative to a plain run

/// A measurement that runs once per round. Its values are stored under its name.
struct Step {
  std::string name;
  std::function<Result<double>()> measure;
  bool failed = false;
};

std::string at(const std::string& what, std::size_t size) {
  return what + "_" + std::to_string(size);
}

class SecurityRun {
 public:
  explicit SecurityRun(const SecurityOptions& options) : options_(options) {}

  Report run() {
    report_.suite = "security";
    report_.quick = options_.quick;
    if (start()) {
      for (const std::size_t size : sizes) {
        if (options_.parts.wants("tickets") || options_.parts.wants("curve")) plain(size);
        if (options_.parts.wants("tls") || options_.parts.wants("curve")) sessions(size);
      }
      if (options_.parts.wants("at-rest")) at_rest();
      if (options_.parts.wants("connects")) connects();
      if (options_.parts.wants("logins")) logins();
      make_report();
    }
    if (stop_requested()) note_failure("interrupted");
    return std::move(report_);
  }

 private:
  bool start() {
    const auto route = [&](const char* label, nlohmann::json settings,
                           const std::vector<std::string>& flags) -> std::unique_ptr<BrokerRoute> {
      settings["broker_type"] = "queue";
      auto made = BrokerRoute::start(options_.broker_binary, std::move(settings), flags);
      if (!made) {
        note_failure(made.error().text());
        return nullptr;
      }
      if (const auto prepared = (*made)->prepare(label); !prepared) {
        note_failure(prepared.error().text());
        return nullptr;
      }
      return std::move(*made);
    };
    clear_ = route("clear", nlohmann::json::object(), {});
    encrypted_ = route("encrypted", nlohmann::json::object(), {"--encrypt"});
    if (!clear_ || !encrypted_) return false;
    // Both use the same broker: two equal brokers may differ by more than the cost of a ticket.
    open_ = clear_->beside({{"broker_type", "queue"}, {"open", true}});
    const auto prepared = open_->prepare("open");
    if (!prepared) note_failure(prepared.error().text());
    return prepared.ok();
  }

  // --- Measurements ---

  void plain(std::size_t size) {
    StreamPlan plan = plan_of(size, 1);
    const auto through = [=, this](BrokerRoute* route) {
      return [=]() -> Result<double> {
        const auto ends = route->open();
        if (!ends) return ends.error();
        const auto rate = rate_of(run_stream(*ends, plan));
        if (const auto closed = route->close(*ends); rate && !closed) return closed.error();
        return rate;
      };
    };
    std::vector<Step> steps = {{at("ticket", size), through(clear_.get())}};
    if (options_.parts.wants("tickets")) steps.push_back({at("open", size), through(open_.get())});
    if (options_.parts.wants("curve")) {
      steps.push_back({at("curve", size), through(encrypted_.get())});
      steps.push_back({at("libzmq", size), [plan] { return rate_of(run_stream(both_with_keys(), plan)); }});
    }
    rounds("plain sockets, " + std::to_string(size) + " B", std::move(steps));
  }

  void sessions(std::size_t size) {
    const StreamPlan plan = plan_of(size, sessions_factor);
    const auto through = [=, this](BrokerRoute* route, ConnectionType connection) {
      return [=, this] { return session_rate(*route, connection, plan); };
    };
    std::vector<Step> steps;
    if (options_.parts.wants("tls")) {
      steps.push_back({at("tcp", size), through(clear_.get(), ConnectionType::socket)});
      steps.push_back({at("tls", size), through(encrypted_.get(), ConnectionType::socket)});
    }
    if (options_.parts.wants("curve")) {
      steps.push_back({at("over_zmq", size), through(clear_.get(), ConnectionType::zmq)});
      steps.push_back({at("over_curve", size), through(encrypted_.get(), ConnectionType::zmq)});
    }
    rounds("sessions, " + std::to_string(size) + " B", std::move(steps));
  }

  static Result<double> rate_of(const Result<StreamResult>& result) {
    if (!result) return result.error();
    return result->messages_per_second / 1e6;
  }

  /// Returns the ends of a direct connection: the consumer binds and has its own key.
  static StreamEnds both_with_keys() {
    StreamEnds ends;
    ends.consumer_keys = StreamKeys::generate("");
    ends.producer_keys = StreamKeys::generate(ends.consumer_keys.public_key);
    return ends;
  }

  static Result<double> session_rate(const BrokerRoute& route, ConnectionType connection,
                                     const StreamPlan& plan) {
    SessionEnds ends;
    ends.control_uri = route.control_uri();
    ends.server_key = route.server_key();
    ends.topic = route.topic();
    ends.connection = connection;
    ends.transport = Transport::tcp;  // the wire that is encrypted or not
    const auto result = run_session_stream(ends, plan, false);
    if (!result) return result.error();
    return result->stream.messages_per_second / 1e6;
  }

  /// Measures durable topics with recycled segments, as in suite `sessions`.
  void at_rest() {
    const TempDir directory;
    const std::string keys = (directory.path() / "storage.keys").string();
    if (const auto written = write_key(keys); !written) return note_failure(written.error().text());
    const auto start_route = [&](bool encrypted) -> std::unique_ptr<BrokerRoute> {
      auto made = BrokerRoute::start(options_.broker_binary,
                                     {{"broker_type", "file"},
                                      {"retention_bytes", file_retention_bytes},
                                      {"segment_bytes", file_segment_bytes},
                                      {"encrypt_at_rest", encrypted}},
                                     {"--storage-key-file", keys});
      const auto prepared = made ? (*made)->prepare("at-rest") : Result<void>(made.error());
      if (prepared) return std::move(*made);
      note_failure(prepared.error().text());
      return nullptr;
    };
    const auto clear = start_route(false);
    const auto encrypted = start_route(true);
    if (!clear || !encrypted) return;
    for (const std::size_t size : sizes) {
      const StreamPlan plan = plan_of(size, sessions_factor / 2);
      std::vector<Step> steps;
      for (const auto& [name, route] :
           {std::pair("file", clear.get()), std::pair("file_encrypted", encrypted.get())})
        steps.push_back({at(name, size), [route = route, plan] {
                           return session_rate(*route, ConnectionType::socket, plan);
                         }});
      rounds("durable topics, " + std::to_string(size) + " B", std::move(steps));
    }
  }

  /// Writes 32 random bytes in the broker's key format, readable only by their owner.
  static Result<void> write_key(const std::string& path) {
    std::random_device random;
    std::ostringstream text;
    for (int i = 0; i < 32; ++i) text << std::hex << std::setw(2) << std::setfill('0') << (random() & 0xFFU);
    if (auto written = write_file(path, text.str() + "\n"); !written) return written;
    std::filesystem::permissions(path, std::filesystem::perms::owner_read);
    return {};
  }

  void connects() {
    const auto through = [this](BrokerRoute* route) {
      return [=, this]() -> Result<double> {
        const auto ends = route->open();
        if (!ends) return ends.error();
        const auto times = measure_connects(ends->producer_uri, ends->producer_ticket, ends->producer_keys,
                                            options_.connects());
        if (!times) return times.error();
        if (const auto closed = route->close(*ends); !closed) return closed.error();
        return percentile(*times, 0.5);
      };
    };
    rounds("connects", {{"connect_open", through(open_.get())},
                        {"connect_ticket", through(clear_.get())},
                        {"connect_curve", through(encrypted_.get())}});
  }

  void logins() {
    rounds("logins", {{"login", [this]() -> Result<double> {
                         const auto times = measure_logins(logins_again);
                         if (!times) return times.error();
                         first_login_us_.push_back(times->first_us);
                         login_p99_us_.push_back(times->again_p99_us);
                         return times->again_p50_us;
                       }}});
  }

  // --- Execution ---

  [[nodiscard]] StreamPlan plan_of(std::size_t size, double factor) const {
    StreamPlan plan;
    plan.message_bytes = size;
    plan.message_count =
        static_cast<std::uint64_t>(factor * options_.plain_bytes() / static_cast<double>(size));
    plan.time_max = std::chrono::seconds(60);
    return plan;
  }

  /// Round 0 warms up and does not count. Each round begins with another step.
  void rounds(const std::string& title, std::vector<Step> steps) {
    for (int round = 0; round <= options_.rounds(); ++round) {
      for (std::size_t turn = 0; turn < steps.size(); ++turn) {
        Step& step = steps[(turn + static_cast<std::size_t>(round)) % steps.size()];
        if (step.failed || stop_requested()) continue;
        const Result<double> value = step.measure();
        if (!value) {
          step.failed = true;
          if (!stop_requested()) note_failure(title + ", " + step.name + ": " + value.error().text());
        } else if (round > 0) {
          samples_[step.name].push_back(*value);
        }
      }
      std::fprintf(stderr, "%s: %s of %d done\n", title.c_str(),
                   round == 0 ? "warm-up" : ("round " + std::to_string(round)).c_str(), options_.rounds());
    }
  }

  void note_failure(const std::string& text) {
    report_.failures.push_back(text);
    std::fprintf(stderr, "FAILED: %s\n", text.c_str());
  }

  // --- Report ---

  void make_report() {
    report_.notes.push_back(
        "`./scripts/bench security" + std::string(options_.quick ? " --quick" : "") +
        (options_.rounds_given > 0 ? " --rounds " + std::to_string(options_.rounds()) : "") + "`, " +
        today() + ", " + machine_description() + ".");
    report_.notes.push_back("Medians (least–greatest) of " + std::to_string(options_.rounds()) +
                            " alternating rounds after a warm-up that does not count; ratios pair by pair.");
    for (const std::size_t size : sizes) {
      const std::string bytes = ", " + std::to_string(size) + " B";
      against(at("ticket", size), at("open", size), "plain sockets with tickets" + bytes, "an open topic",
              tickets_goal, tickets_floor);
      against(at("curve", size), at("ticket", size), "plain sockets over CURVE" + bytes, "in clear");
      against(at("curve", size), at("libzmq", size), "plain sockets over CURVE" + bytes,
              "PUSH→PULL over CURVE, no broker");
      against(at("tls", size), at("tcp", size), "sessions over TLS" + bytes, "over TCP");
      against(at("over_curve", size), at("over_zmq", size), "sessions over CURVE" + bytes,
              "over ZeroMQ in clear");
      against(at("file_encrypted", size), at("file", size), "durable, encrypted at rest" + bytes, "in clear");
    }
    login_row();
    connect("connect_ticket", "a plain socket's connect with a ticket");
    connect("connect_curve", "a plain socket's connect over CURVE");
  }

  void login_row() {
    const auto found = samples_.find("login");
    if (found == samples_.end()) return;
    Row row = compare("security_login", "credentials that were right before, p50", "µs", Better::less,
                      found->second, "the goal", std::vector<double>(found->second.size(), login_us_allowed));
    row.goal = row.floor = 1;
    report_.rows.push_back(std::move(row));
    report_.notes.push_back(
        "Credentials that were not seen before took " + format_summary(summarize(first_login_us_)) +
        " µs, those that were right before at p99 " + format_summary(summarize(login_p99_us_)) + " µs.");
  }

  void against(const std::string& ours, const std::string& reference, const std::string& title,
               const std::string& reference_name, double goal = 0, double floor = 0) {
    compare_with(ours, reference, title, "million msg/s", Better::more, reference_name, goal, floor);
  }
  void connect(const std::string& ours, const std::string& title) {
    compare_with(ours, "connect_open", title, "µs", Better::less, "to an open topic", 0, 0);
  }
  void compare_with(const std::string& ours, const std::string& reference, const std::string& title,
                    const std::string& unit, Better better, const std::string& reference_name, double goal,
                    double floor) {
    const auto mine = samples_.find(ours);
    const auto theirs = samples_.find(reference);
    if (mine == samples_.end() || theirs == samples_.end()) return;
    Row row = compare("security_" + ours + "_vs_" + reference, title, unit, better, mine->second,
                      reference_name, theirs->second);
    row.goal = goal;
    row.floor = floor;
    report_.rows.push_back(std::move(row));
  }

  const SecurityOptions& options_;
  Report report_;
  std::map<std::string, std::vector<double>> samples_;
  std::vector<double> first_login_us_;
  std::vector<double> login_p99_us_;
  std::unique_ptr<BrokerRoute> open_;
  std::unique_ptr<BrokerRoute> clear_;
  std::unique_ptr<BrokerRoute> encrypted_;
};

}  // namespace

Report measure_security(const SecurityOptions& options) {
  return SecurityRun(options).run();
}

}  // namespace lightq::bench
