/// Runs a producer and a consumer program, and reads their output. Layer: bench support.
#include "clients/client_program.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>

#include "support/child_process.hpp"
#include "support/text_file.hpp"

namespace lightq::bench {
namespace {

constexpr std::chrono::milliseconds look_interval{2};
constexpr std::chrono::seconds ready_time_max{30};
constexpr std::size_t output_end_bytes = 1500;
const std::string received_word = "received ";

/// Returns the end of a program's output, for a message.
std::string last_words(const std::string& output) {
  return end_of(output, output_end_bytes);
}

/// Returns the processor time of all children that have ended.
double seconds_of_ended_children() {
  rusage usage{};
  ::getrusage(RUSAGE_CHILDREN, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

Result<ChildProcess> start(const ClientRun& run, const std::string& role) {
  const bool produces = role == "produce";
  std::vector<std::string> command = produces ? run.producer : run.consumer;
  const std::vector<std::string> more = {role, produces ? run.producer_mode : run.consumer_mode, run.topic,
                                         std::to_string(client_message_bytes),
                                         std::to_string(run.message_count)};
  command.insert(command.end(), more.begin(), more.end());
  return ChildProcess::execute(command, run.environment, run.directory + "/" + role + ".out");
}

Result<void> wait_until_ready(ChildProcess& consumer, const std::string& output) {
  const Clock::time_point give_up = Clock::now() + ready_time_max;
  while (Clock::now() < give_up && !stop_requested()) {
    if (contents_of(output).starts_with("ready\n")) return {};
    if (const auto end = consumer.wait_until(Clock::now() + look_interval))
      return failure("consumer: " + end->text() + "\n" + last_words(contents_of(output)));
  }
  return failure("the consumer was not ready in time\n" + last_words(contents_of(output)));
}

Result<double> seconds_in(const std::string& output) {
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(received_word)) continue;
    std::istringstream number(line.substr(received_word.size()));
    double seconds = 0;
    if (number >> seconds && seconds > 0) return seconds;
  }
  return failure("the consumer gave no time\n" + last_words(output));
}

}  // namespace

bool add_programs(const std::string& file, ClientPrograms& programs) {
  std::ifstream list(file);
  if (!list) return false;
  for (std::string line; std::getline(list, line);) {
    const std::size_t equals = line.find('=');
    if (equals == std::string::npos) return false;
    std::istringstream words(line.substr(equals + 1));
    std::vector<std::string> command{std::istream_iterator<std::string>(words), {}};
    if (command.empty()) return false;
    programs[line.substr(0, equals)] = std::move(command);
  }
  return true;
}

Result<ClientResult> run_clients(const ClientRun& run) {
  const std::string consumer_output = run.directory + "/consume.out";
  std::ofstream(consumer_output, std::ios::trunc).flush();  // drops the output of the last run
  const double cpu_before = seconds_of_ended_children();
  Result<ChildProcess> consumer = start(run, "consume");
  if (!consumer) return consumer.error();
  if (const auto ready = wait_until_ready(*consumer, consumer_output); !ready) return ready.error();
  Result<ChildProcess> producer = start(run, "produce");
  if (!producer) return producer.error();
  std::vector<ChildProcess> children;
  children.push_back(std::move(consumer).value());
  children.push_back(std::move(producer).value());
  const Result<void> ended = wait_for_all(children, {"consumer", "producer"}, Clock::now() + run.time_max);
  const std::string received = contents_of(consumer_output);
  if (!ended) {
    return failure(ended.error().message + "\n" + last_words(received) +
                   last_words(contents_of(run.directory + "/produce.out")));
  }
  const Result<double> seconds = seconds_in(received);
  if (!seconds) return seconds.error();
  ClientResult result;
  const auto measured = static_cast<double>(run.message_count - 1 - run.message_count / 10);
  result.messages_per_second = measured / *seconds;
  result.cpu_seconds_per_million =
      (seconds_of_ended_children() - cpu_before) * 1e6 / static_cast<double>(run.message_count);
  return result;
}

}  // namespace lightq::bench
