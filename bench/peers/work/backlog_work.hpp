/// A backlog that unequal workers of one group work off. Layer: bench peers.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "peers/peer.hpp"

namespace lightq::bench {

struct BacklogWork {
  QueueTerms queue;  ///< its consumers are the workers
  std::uint64_t messages = 0;
  /// How long each worker takes for a message.
  std::vector<std::chrono::microseconds> handlers;
};

/// Sends the backlog, then starts the workers. Returns the seconds from the moment at which all were
/// connected until the last message was done. Throws std::runtime_error if a message was lost, altered, done
/// twice, or left unacknowledged, or if the work took longer than two minutes.
double run_backlog_work(PeerServer& server, const BacklogWork& work);

}  // namespace lightq::bench
