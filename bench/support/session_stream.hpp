/// One measurement over sessions: a producer process sends; consumer processes receive, check and
/// acknowledge. Layer: bench support.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <lightq/client.hpp>

#include "support/stream_run.hpp"

namespace lightq::bench {

/// A topic of a broker, and how to reach it.
struct SessionEnds {
  std::string control_uri = {};
  std::string server_key = {};  ///< the key of a broker that encrypts; empty: it does not
  std::string topic = {};
  std::optional<Transport> transport = {};  ///< not set: the client's default
  ConnectionType connection = ConnectionType::socket;
  ConfirmLevel level = ConfirmLevel::received;
  std::size_t window_bytes = 0;  ///< for the producer; 0: its default
  int subscribers = 0;           ///< number of subscribers; 0: one consumer in the topic's group
};

/// Connects as the topics' user. Throws Exception.
Client connect_to(const SessionEnds& ends);

struct SessionResult {
  StreamResult stream;             ///< of the consumer that received everything last
  std::vector<double> confirm_us;  ///< from send to confirm, for every 64th message; only if stamped
};

/// Runs the plan once. Every message is confirmed before the end, and acknowledged. `stamped`: measures
/// latency although the plan is not paced. Errors: as run_stream; also a message that was not confirmed.
Result<SessionResult> run_session_stream(const SessionEnds& ends, const StreamPlan& plan, bool stamped);

}  // namespace lightq::bench
