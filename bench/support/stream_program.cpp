/// Talks with lightq_bench_stream over a pair of sockets. Layer: bench support.
#include "support/stream_program.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <string_view>

namespace lightq::bench {
namespace {

constexpr std::chrono::seconds answer_time_max{90};  // a stream has 60, and a broker may have to start
constexpr std::chrono::seconds stop_time_max{15};
constexpr std::string_view failed_prefix = "failed: ";

}  // namespace

Result<double> rate_in(const std::string& line) {
  if (line.starts_with(failed_prefix)) return failure(line.substr(failed_prefix.size()));
  double rate = 0;
  const char* const end = line.data() + line.size();
  const auto [last, error] = std::from_chars(line.data(), end, rate);
  if (error != std::errc() || last != end || !(rate > 0)) return failure("not an answer: '" + line + "'");
  return rate;
}

Result<std::unique_ptr<StreamProgram>> StreamProgram::start(const std::string& binary) {
  if (::access(binary.c_str(), X_OK) != 0) return system_error("cannot run " + binary);
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return system_error("cannot make a pair of sockets");
  Descriptor ours(ends[0]);
  const Descriptor theirs(ends[1]);
  Result<ChildProcess> process = ChildProcess::start([&]() -> int {
    ::dup2(theirs.get(), STDIN_FILENO);
    ::dup2(theirs.get(), STDOUT_FILENO);
    std::string program = binary;
    char* arguments[] = {program.data(), nullptr};
    ::execv(program.c_str(), arguments);
    return 127;
  });
  if (!process) return process.error();
  return std::unique_ptr<StreamProgram>(new StreamProgram(std::move(process).value(), std::move(ours)));
}

StreamProgram::~StreamProgram() {
  socket_ = Descriptor();  // the end of its input
  process_.wait_until(Clock::now() + stop_time_max);
}

Result<double> StreamProgram::run(const std::string& carrier, std::size_t message_bytes,
                                  std::uint64_t message_count) {
  const std::string line =
      carrier + " " + std::to_string(message_bytes) + " " + std::to_string(message_count) + "\n";
  if (::send(socket_.get(), line.data(), line.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(line.size()))
    return system_error("cannot ask for a stream");
  const Result<std::string> answered = answer();
  if (!answered) return answered.error();
  return rate_in(*answered);
}

Result<std::string> StreamProgram::answer() {
  const Clock::time_point give_up = Clock::now() + answer_time_max;
  std::string line;
  for (;;) {
    pollfd wanted{socket_.get(), POLLIN, 0};
    if (::poll(&wanted, 1, milliseconds_until(give_up)) != 1)
      return failure(stop_requested() ? "interrupted" : "the program did not answer in time");
    char letter = 0;
    if (::read(socket_.get(), &letter, 1) != 1) return failure("the program has ended");
    if (letter == '\n') return line;
    line += letter;
  }
}

}  // namespace lightq::bench
