/// The program lightq_bench_stream of this or another build, in a process. Layer: bench support.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "support/child_process.hpp"

namespace lightq::bench {

/// Runs streams one after the other in a program that keeps its brokers meanwhile. The destructor ends it.
/// One thread.
class StreamProgram {
 public:
  /// Starts the program. Error: it cannot be started.
  static Result<std::unique_ptr<StreamProgram>> start(const std::string& binary);
  StreamProgram(const StreamProgram&) = delete;
  StreamProgram& operator=(const StreamProgram&) = delete;
  ~StreamProgram();

  /// Runs one stream; bench/stream.cpp names the carriers. Returns messages per second. Errors: the
  /// program's; it has ended, said something else, or did not answer in time.
  Result<double> run(const std::string& carrier, std::size_t message_bytes, std::uint64_t message_count);

 private:
  StreamProgram(ChildProcess process, Descriptor socket)
      : process_(std::move(process)), socket_(std::move(socket)) {}
  Result<std::string> answer();

  ChildProcess process_;
  Descriptor socket_;  // its other end is the program's standard input and output
};

/// Returns the messages per second that a line of the program says, or the failure that it tells.
Result<double> rate_in(const std::string& line);

}  // namespace lightq::bench
