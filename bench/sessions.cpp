/// Benchmark suite `sessions`: LightQ's sessions, beside a bare TCP connection, libzmq and a relay of bytes,
/// in the same run. docs/benchmarks.md says how to read it. Layer: bench.
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <string_view>

#include "sessions_suite.hpp"
#include "support/child_process.hpp"

namespace {

using namespace lightq::bench;

constexpr int exit_failed = 1;  // something could not run, or order or content was wrong
constexpr int exit_usage = 2;
constexpr const char* usage =
    "usage: lightq_bench_sessions [--quick] [--json FILE] [--markdown FILE] [--broker BINARY]\n"
    "                             [--part NAME]...\n"
    "  --quick          fewer and shorter rounds: shows that all works, not how fast\n"
    "  --json FILE      the rows as an array of JSON objects\n"
    "  --markdown FILE  the tables as Markdown\n"
    "  --broker BINARY  the broker to measure; default: `lightq` beside this program's directory\n"
    "  --part NAME      only this part: throughput, latency, flat-out or fan-out\n"
    "Ends with 0 whatever the figures are, 1 if something could not run or came out wrong, 2 for bad "
    "usage.\n";

struct CommandLine {
  SessionsOptions options;
  std::string json_path;
  std::string markdown_path;
  bool good = true;
};

/// `lightq` in the build directory: this program lies in it, or in its `bench/`.
std::string default_broker(const char* program) {
  const std::filesystem::path directory = std::filesystem::path(program).parent_path();
  for (const char* candidate : {"lightq", "../lightq"}) {
    if (std::filesystem::exists(directory / candidate)) return (directory / candidate).string();
  }
  return (directory / "lightq").string();
}

CommandLine read_command_line(int argument_count, char** arguments) {
  CommandLine line;
  line.options.broker_binary = default_broker(arguments[0]);
  for (int i = 1; i < argument_count; ++i) {
    const std::string_view flag = arguments[i];
    const auto take_value = [&](std::string& to) {
      line.good = line.good && i + 1 < argument_count;
      if (line.good) to = arguments[++i];
    };
    if (flag == "--quick") {
      line.options.quick = true;
    } else if (flag == "--json") {
      take_value(line.json_path);
    } else if (flag == "--markdown") {
      take_value(line.markdown_path);
    } else if (flag == "--broker") {
      take_value(line.options.broker_binary);
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

int run(const CommandLine& line) {
  stop_on_signals();
  const Report report = measure_sessions(line.options);
  std::fputs(render_text(report).c_str(), stdout);
  const bool json_written = write(line.json_path, render_json(report));
  const bool markdown_written = write(line.markdown_path, render_markdown(report));
  return json_written && markdown_written && report.failures.empty() ? 0 : exit_failed;
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
    std::fprintf(stderr, "lightq_bench_sessions: %s\n", problem.what());
    return exit_failed;
  }
}
