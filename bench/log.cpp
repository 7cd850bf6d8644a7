/// Benchmark suite `log`: the embedded queue beside other queues, beside the bare calls it stands on, and
/// against stated figures. docs/benchmarks.md says how to read it. Layer: bench.
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>

#include "log_self_check.hpp"
#include "log_suite.hpp"

namespace {

using namespace lightq::bench;

constexpr int exit_failed = 1;  // something could not run, or content was wrong
constexpr int exit_usage = 2;
constexpr const char* usage =
    "usage: lightq_bench_log [--quick] [--json FILE] [--markdown FILE] [--go-driver BINARY] [--part "
    "NAME]...\n"
    "       lightq_bench_log --self-check\n"
    "  --quick             fewer and shorter rounds: shows that all works, not how fast\n"
    "  --json FILE         the rows as an array of JSON objects\n"
    "  --markdown FILE     the tables as Markdown\n"
    "  --go-driver BINARY  what runs the queues written in Go (bench/go); without it their rows are left "
    "out\n"
    "  --part NAME         only this part: queues, bare-calls, scans, rates, tails, group-commit, growth\n"
    "  --self-check        show that the checks can fail, and end\n"
    "Ends with 0 whatever the figures are, 1 if something could not run or came out wrong, 2 for bad "
    "usage.\n";

struct CommandLine {
  LogOptions options;
  std::string json_path;
  std::string markdown_path;
  bool self_check = false;
  bool good = true;
};

CommandLine read_command_line(int argument_count, char** arguments) {
  CommandLine line;
  for (int i = 1; i < argument_count; ++i) {
    const std::string_view flag = arguments[i];
    const auto take_value = [&](std::string& to) {
      line.good = line.good && i + 1 < argument_count;
      if (line.good) to = arguments[++i];
    };
    if (flag == "--quick") {
      line.options.quick = true;
    } else if (flag == "--self-check") {
      line.self_check = true;
    } else if (flag == "--json") {
      take_value(line.json_path);
    } else if (flag == "--markdown") {
      take_value(line.markdown_path);
    } else if (flag == "--go-driver") {
      take_value(line.options.go_driver);
    } else if (flag == "--part") {
      take_value(line.options.parts.emplace_back());
    } else {
      line.good = false;
    }
  }
  return line;
}

bool write(const std::string& path, const std::string& text) {
  if (path.empty()) return true;
  const lightq::Result<void> written = write_file(path, text);
  if (!written) std::fprintf(stderr, "%s\n", written.error().text().c_str());
  return written.ok();
}

Report measure(const LogOptions& options) {
  LogSuite suite(options);
  warm_memory(options.amount(4 * GiB));
  suite.run("queues", measure_against_queues);
  suite.run("bare-calls", measure_against_bare_calls);
  suite.run("scans", measure_scans);
  suite.run("rates", measure_rates);
  suite.run("tails", measure_tails);
  suite.run("group-commit", measure_group_commit);
  suite.run("growth", measure_growth);
  return suite.take_report();
}

int run(const CommandLine& line) {
  stop_on_signals();
  if (line.self_check) return self_check_log() ? 0 : exit_failed;
  const Report report = measure(line.options);
  std::fputs(render_text(report).c_str(), stdout);
  const bool json_written = write(line.json_path, render_json(report));
  const bool markdown_written = write(line.markdown_path, render_markdown(report));
  return json_written && markdown_written && report.failures.empty() && !stop_requested() ? 0 : exit_failed;
}

}  // namespace

int main(int argument_count, char** arguments) {
  const CommandLine line = read_command_line(argument_count, arguments);
  if (!line.good) {
    std::fputs(usage, stderr);
    return exit_usage;
  }
  try {
    return run(line);
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "lightq_bench_log: %s\n", problem.what());
    return exit_failed;
  }
}
