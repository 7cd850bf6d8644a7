/// A server with nothing to do. Layer: bench peers.
#pragma once

#include "peers/peer.hpp"

namespace lightq::bench {

struct IdleUse {
  double resident_mebibytes = 0;  ///< program and libraries included
  double cpu_percent = 0;         ///< of one core
};

/// Makes `queues` queues and keeps them, waits as long as it measures but at most two seconds, then measures
/// for `seconds`. Throws std::runtime_error if they cannot be made within a minute.
IdleUse run_idle_work(PeerServer& server, int queues, double seconds);

}  // namespace lightq::bench
