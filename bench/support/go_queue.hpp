/// Embedded queues written in Go, run by a driver program (bench/go) in a process of its own. Layer: bench
/// support.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <lightq/base/result.hpp>

namespace lightq::bench {

/// One round: so many messages of one size appended, then read and checked.
struct GoQueueRun {
  std::string queue;      ///< its name in bench/go
  std::string directory;  ///< made if it is not there; must be empty
  std::size_t message_bytes = 0;
  std::uint64_t messages = 0;
  std::uint64_t segment_bytes = 0;
  std::uint64_t segment_messages = 0;  ///< for queues that measure segments so; 0: their default
  std::uint64_t mapped_segments = 0;
};

/// Nanoseconds a message.
struct QueueTimes {
  double append_ns = 0;
  double read_ns = 0;
};

/// The queues that `driver` has: those whose modules could be had when it was built. Files go to `directory`.
Result<std::vector<std::string>> go_queues(const std::string& driver, const std::string& directory);

/// Runs the program `driver`. Errors: what it said when it ended badly; two minutes were not enough.
Result<QueueTimes> run_go_queue(const std::string& driver, const GoQueueRun& run);

}  // namespace lightq::bench
