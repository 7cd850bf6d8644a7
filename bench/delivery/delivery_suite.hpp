/// The common code of suite `delivery`: options, rounds and rows. Layer: bench.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "support/broker_route.hpp"
#include "support/report.hpp"
#include "support/session_stream.hpp"
#include "support/suite_program.hpp"

namespace lightq::bench {

struct DeliveryOptions {
  bool quick = false;
  std::string broker_binary;
  std::string stream_binary;         ///< lightq_bench_stream of this build
  std::string before_stream_binary;  ///< that of the build to compare with; its broker lies beside it
  std::string before_commit;         ///< the commit of that build, for texts
  std::uint64_t rounds_wanted = 0;   ///< 0: the number of each part
  SuiteParts parts{{"unused", "slow-member", "retry", "attempts", "delay", "delay-waiting", "delay-due",
                    "delay-ten-million", "ttl", "leases", "state"}};

  /// Returns the number of rounds of a part that has `full` of them.
  [[nodiscard]] int rounds(int full) const {
    if (rounds_wanted != 0) return static_cast<int>(rounds_wanted);
    return quick ? 2 : full;
  }
};

/// Throws if a signal has asked this process to stop.
void throw_if_stopped();

/// Throws: something came out wrong.
[[noreturn]] void throw_failure(const std::string& what);

/// Collects rows and failures. A part that fails throws std::exception.
class DeliverySuite {
 public:
  explicit DeliverySuite(DeliveryOptions options);
  [[nodiscard]] const DeliveryOptions& options() const { return options_; }

  /// Runs a part if it is wanted. An exception in it becomes a failure, and the suite continues with the next
  /// part.
  void run(const std::string& part, const std::function<void(DeliverySuite&)>& work);
  /// Adds a row. `goal` and `floor` are ratios; 0: the row only informs.
  void add(Row row, double goal = 0, double floor = 0);
  /// Adds a row against a permitted figure, of which less is better. `allowed` 0: the row only informs, and
  /// its reference is one unit.
  void add_bound(const std::string& name, const std::string& title, const std::string& unit,
                 const std::vector<double>& ours, double allowed);
  void note(std::string text) { report_.notes.push_back(std::move(text)); }
  void add_table(Table table) { report_.tables.push_back(std::move(table)); }
  [[nodiscard]] Report take_report() { return std::move(report_); }

  /// Calls both measurements in `rounds` + 1 rounds, of which the first does not count. The order changes
  /// with each round. Returns one value of each per round.
  struct Pairs {
    std::vector<double> ours;
    std::vector<double> reference;
  };
  static Pairs alternate(int rounds, const std::function<double()>& ours,
                         const std::function<double()>& reference);

 private:
  DeliveryOptions options_;
  Report report_;
};

/// Returns the ends of sessions over a route's topic, with default options.
SessionEnds session_ends_of(const BrokerRoute& route);

/// Returns the geometric mean; 0 for none. Requires: all values are above 0.
double geometric_mean(const std::vector<double>& values);
/// Returns the row that sums up rows with the same number of rounds, by geometric means. `rounds`: for each
/// row, the ratio of each round; they give the least and greatest ratio of the sum.
Row sum_up(std::string name, std::string title, const std::vector<Row>& rows,
           const std::vector<std::vector<double>>& rounds);

// The parts.
void measure_unused(DeliverySuite& suite);
void measure_slow_member(DeliverySuite& suite);
void measure_retry(DeliverySuite& suite);
void measure_attempts(DeliverySuite& suite);
void measure_delay(DeliverySuite& suite);
void measure_ttl(DeliverySuite& suite);
void measure_delay_waiting(DeliverySuite& suite);
void measure_delay_due(DeliverySuite& suite);
void measure_delay_ten_million(DeliverySuite& suite);
void measure_leases(DeliverySuite& suite);
void measure_state(DeliverySuite& suite);

}  // namespace lightq::bench
