/// Runs one row of a benchmark: producers and consumers in threads of this process. Layer: cli.
#pragma once

#include <string>

#include <lightq/client.hpp>

#include "client/bench/bench_row.hpp"

namespace lightq::cli {

/// The messages that the consumers of a run have received.
struct BenchSeen {
  std::uint64_t received = 0;
  std::uint64_t expected = 0;
  std::uint64_t out_of_order = 0;
  double seconds = 0;  ///< from the first message to the last
  Latencies latencies;
  bool is_started = false;  ///< all producers and consumers were there
  Result<void> result;      ///< the first error of a producer or consumer

  [[nodiscard]] bool is_complete() const { return received == expected; }
  [[nodiscard]] double rate() const {
    return seconds > 0 && received > 1 ? static_cast<double>(received - 1) / seconds : 0;
  }
};

/// Sends `count` messages through a topic, and receives them. Ends when all have arrived, when none has
/// arrived for five seconds, or at a signal. Consumers of other runs may use the topic before and after.
/// Thread: the command's; it starts others, and waits for them.
BenchSeen run_bench_row(const Common& common, Client& client, const std::string& topic, Mode mode,
                        const BenchRow& row, std::uint64_t count);

}  // namespace lightq::cli
