/// Runs the Go driver and parses its output. Layer: bench support.
#include "log/go_queue.hpp"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/child_process.hpp"

namespace lightq::bench {
namespace {

constexpr auto time_max = std::chrono::minutes(2);

/// `ended`: the result of the process.
Result<QueueTimes> read_times(const std::string& output, const Result<void>& ended) {
  QueueTimes times;
  std::string text;
  std::ifstream file(output);
  for (std::string line; std::getline(file, line); text += " " + line) {
    const nlohmann::json parsed = nlohmann::json::parse(line, nullptr, false);
    if (!parsed.is_object()) continue;
    const std::string operation = parsed.value("operation", "");
    if (operation == "append") times.append_ns = parsed.value("ns_per_operation", 0.0);
    if (operation == "read") times.read_ns = parsed.value("ns_per_operation", 0.0);
  }
  if (!ended) return failure(ended.error().message + ":" + text);
  if (times.append_ns > 0 && times.read_ns > 0) return times;
  return failure("the Go driver gave no times:" + text);
}

Result<void> run_driver(const std::vector<std::string>& command, const std::string& output) {
  Result<ChildProcess> child = ChildProcess::execute(command, {}, output);
  if (!child) return child.error();
  std::vector<ChildProcess> children;
  children.push_back(std::move(child).value());
  return wait_for_all(children, {"Go driver"}, Clock::now() + time_max);
}

}  // namespace

Result<std::vector<std::string>> go_queues(const std::string& driver, const std::string& directory) {
  const std::string output = directory + "/queues.out";
  if (const Result<void> ended = run_driver({driver, "-queues"}, output); !ended) return ended.error();
  std::vector<std::string> names;
  std::ifstream file(output);
  for (std::string line; std::getline(file, line);) names.push_back(line);
  return names;
}

Result<QueueTimes> run_go_queue(const std::string& driver, const GoQueueRun& run) {
  std::error_code problem;
  std::filesystem::create_directories(run.directory, problem);
  const std::string output = run.directory + ".out";
  const Result<void> ended = run_driver(
      {driver, "-queue", run.queue, "-directory", run.directory, "-size", std::to_string(run.message_bytes),
       "-count", std::to_string(run.messages), "-segment-bytes", std::to_string(run.segment_bytes),
       "-segment-messages", std::to_string(run.segment_messages), "-mapped-segments",
       std::to_string(run.mapped_segments)},
      output);
  return read_times(output, ended);
}

}  // namespace lightq::bench
