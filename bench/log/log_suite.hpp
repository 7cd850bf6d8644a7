/// The common code of suite `log`: options, directories, rows, checked messages. Layer: bench.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <lightq/queue.hpp>

#include "support/child_process.hpp"
#include "support/numbered_messages.hpp"
#include "support/report.hpp"
#include "support/suite_program.hpp"
#include "support/temp_dir.hpp"

namespace lightq::bench {

inline constexpr std::uint64_t MiB = limits::MiB;
inline constexpr std::uint64_t GiB = limits::GiB;

/// The amount of work.
struct LogOptions {
  bool quick = false;
  SuiteParts parts{{"queues", "bare-calls", "scans", "rates", "tails", "group-commit", "growth"}};
  std::string go_driver;  ///< path of lightq_bench_go; empty: rows that need it are omitted

  [[nodiscard]] int rounds() const { return quick ? 2 : 5; }
  /// For parts with short rounds, in which one round differs from the next by more than the goal permits.
  [[nodiscard]] int many_rounds() const { return quick ? 2 : 11; }
  /// Returns `full`, or an eighth of it if `quick`.
  [[nodiscard]] std::uint64_t amount(std::uint64_t full) const { return quick ? full / 8 : full; }
};

/// Throws if a signal has asked this process to stop.
void throw_if_stopped();
/// A separate directory for one queue or file, below the suite's. Removed with its contents.
class Scratch {
 public:
  [[nodiscard]] std::string path(const std::string& name) const {
    return (directory_.path() / name).string();
  }

 private:
  TempDir directory_;
};

/// Collects rows and failures.
class LogSuite {
 public:
  explicit LogSuite(LogOptions options);
  [[nodiscard]] const LogOptions& options() const { return options_; }
  /// Runs a part if it is wanted. An exception in it becomes a failure, and the suite continues with the next
  /// part.
  void run(const std::string& part, const std::function<void(LogSuite&)>& work);
  /// Adds a row. `goal` 0: the row only informs. The floor is 4/5 of the goal.
  void add(Row row, double goal);
  /// Adds a row with a stated figure as its reference.
  void add_expected(const std::string& name, const std::string& title, const std::string& unit, Better better,
                    const std::vector<double>& ours, double expected);
  void note(std::string text) { report_.notes.push_back(std::move(text)); }
  /// Calls `ours` and `reference` alternately, `rounds` + 1 times each; the first round is the warm-up. The
  /// order changes with each round.
  static void alternate(int rounds, const std::function<void()>& ours,
                        const std::function<void()>& reference);
  /// Alternates two measurements of one value each, and collects the values of all rounds except the first.
  static void alternate(int rounds, const std::function<double()>& ours,
                        const std::function<double()>& reference, std::vector<double>& our_values,
                        std::vector<double>& reference_values);
  [[nodiscard]] Report take_report() { return std::move(report_); }

 private:
  LogOptions options_;
  Report report_;
};

/// Touches `bytes` of memory and frees it: on a virtual machine the first touch of a page is slow.
void warm_memory(std::uint64_t bytes);

/// Returns options for a queue of `segments` segments that drops its oldest, so that its files are recycled.
QueueOptions recycling_options(std::uint64_t segment_bytes, std::uint64_t segments);

// The parts.
void measure_against_queues(LogSuite& suite);
void measure_against_bare_calls(LogSuite& suite);
void measure_scans(LogSuite& suite);
void measure_rates(LogSuite& suite);
void measure_tails(LogSuite& suite);
void measure_group_commit(LogSuite& suite);
void measure_growth(LogSuite& suite);

}  // namespace lightq::bench
