/// Suite `peers`: the same work by LightQ and by other brokers, in the same rounds. Layer: bench peers.
#pragma once

#include <string>
#include <vector>

#include "peers/peer.hpp"
#include "support/report.hpp"
#include "support/suite_program.hpp"

namespace lightq::bench {

struct PeersOptions {
  bool quick = false;
  PeerPrograms programs;
  std::vector<std::string> wanted;  ///< names of peers; empty: all that are installed
  std::uint64_t rounds_wanted = 0;  ///< 0: five
  SuiteParts parts{
      {"memory", "page-cache", "synced", "latency", "work-queue", "fan-out", "idle", "cpu", "kill"}};

  [[nodiscard]] int rounds() const {
    if (rounds_wanted != 0) return static_cast<int>(rounds_wanted);
    return quick ? 1 : 5;
  }
  [[nodiscard]] double throughput_seconds() const { return 1.75; }
  /// Fewer for `synced`, because one message may cost a server several fsyncs.
  [[nodiscard]] std::uint64_t messages_first(Storage storage) const {
    if (quick) return 500;
    return storage == Storage::synced ? 1'000 : 5'000;
  }
  [[nodiscard]] double paced_seconds() const { return quick ? 0.2 : 3; }
  [[nodiscard]] std::uint64_t backlog_messages() const { return quick ? 100 : 5'000; }
  [[nodiscard]] std::uint64_t confirmed_min() const { return quick ? 1'000 : 50'000; }
  [[nodiscard]] int idle_queues() const { return quick ? 20 : 1'000; }
  [[nodiscard]] double idle_seconds() const { return quick ? 0.2 : 20; }
};

/// Prints the peers with their versions, or with the packages to install.
void list_peers(const PeerPrograms& programs);

/// Returns true if there is a peer of that name.
bool is_peer(const std::string& name);

/// Runs the suite. Failures are noted in the report. Progress goes to standard error.
Report measure_peers(const PeersOptions& options);

}  // namespace lightq::bench
