/// A server that is killed while it confirms messages. Layer: bench peers.
#pragma once

#include <cstdint>

#include "peers/peer.hpp"

namespace lightq::bench {

struct KillCount {
  std::uint64_t confirmed = 0;  ///< messages that the producer had a confirm of when the server ended
  std::uint64_t lost = 0;       ///< of these: not delivered unaltered after the restart
  std::uint64_t altered = 0;    ///< deliveries after the restart whose content is that of no message
};

/// Sends until `confirmed_min` messages are confirmed, kills the server with SIGKILL while the producer sends
/// on, starts it again, and counts the confirmed messages that it delivers until none has come for 5 s.
/// Throws std::runtime_error if a step takes longer than two minutes.
KillCount run_kill_work(PeerServer& server, const QueueTerms& queue, std::uint64_t confirmed_min);

}  // namespace lightq::bench
