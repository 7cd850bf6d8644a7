/// Runs embedded queues written in Go through a driver program (bench/go) in a separate process. Layer: bench
/// support.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <lightq/base/result.hpp>

namespace lightq::bench {

/// One round: appends messages of one size, then reads and checks them.
struct GoQueueRun {
  std::string queue;      ///< the queue's name in bench/go
  std::string directory;  ///< created if missing; must be empty
  std::size_t message_bytes = 0;
  std::uint64_t messages = 0;
  std::uint64_t segment_bytes = 0;
  std::uint64_t segment_messages = 0;  ///< for queues that measure segments in messages; 0: their default
  std::uint64_t mapped_segments = 0;
};

/// Nanoseconds per message.
struct QueueTimes {
  double append_ns = 0;
  double read_ns = 0;
};

/// Returns the names of the driver's queues: those for which it could get the Go modules when it was built.
/// Uses `directory` for files.
Result<std::vector<std::string>> go_queues(const std::string& driver, const std::string& directory);

/// Runs the program `driver`. Errors: the output of a driver that failed; the driver took more than two
/// minutes.
Result<QueueTimes> run_go_queue(const std::string& driver, const GoQueueRun& run);

}  // namespace lightq::bench
