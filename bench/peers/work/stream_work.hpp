/// A producer and one or more consumers of a peer's queue, with every message checked. Layer: bench peers.
#pragma once

#include <cstdint>
#include <vector>

#include "peers/peer.hpp"

namespace lightq::bench {

struct StreamWork {
  QueueTerms queue;
  std::size_t message_bytes = 100;
  std::uint64_t messages = 0;
  double messages_per_second = 0;  ///< 0: as fast as possible; otherwise latency is measured
  bool ordered = true;             ///< the consumers must receive the messages in the order of sending
  bool confirmed = true;           ///< the producer must have a confirm of each
  bool keeps_pace = true;          ///< a producer that falls behind its rate fails the run
};

struct StreamTimes {
  /// From the first send until the producer had all confirms, and the server all acknowledgements.
  double seconds = 0;
  double server_cpu_seconds = 0;   ///< user and system, in steps of 10 ms
  std::vector<double> latency_us;  ///< one way, to the first consumer, without the first tenth; if paced
};

/// Makes the queue, runs the work, and drops the queue. Throws std::runtime_error if a message was lost,
/// repeated, reordered, altered, or left unacknowledged, or if the work took longer than two minutes.
StreamTimes run_stream_work(PeerServer& server, const StreamWork& work);

/// Throws unless the queue has no message left. Looks again for some seconds: acknowledgements may take
/// effect later.
void check_nothing_left(PeerServer& server, const QueueTerms& queue);

}  // namespace lightq::bench
