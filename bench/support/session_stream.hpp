/// One measurement over sessions: a producer process sends, consumer processes receive, check and
/// acknowledge. Layer: bench support.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <lightq/client.hpp>

#include "support/stream_run.hpp"

namespace lightq::bench {

/// A topic of a broker, and how it is reached.
struct SessionEnds {
  std::string control_uri = {};
  std::string server_key = {};  ///< of a broker that encrypts; empty: it does not
  std::string topic = {};
  std::optional<Transport> transport = {};  ///< nothing: what the client chooses by itself
  ConnectionType connection = ConnectionType::socket;
  ConfirmLevel level = ConfirmLevel::received;
  std::size_t window_bytes = 0;  ///< of the producer; 0: its own choice
  int subscribers = 0;           ///< consumers that get every message; 0: one consumer in the topic's group
};

/// As the topics' user. Throws Exception.
Client connect_to(const SessionEnds& ends);

struct SessionResult {
  StreamResult stream;             ///< of the consumer that was the last to have everything
  std::vector<double> confirm_us;  ///< from send to confirm, of every 64th message; only if stamped
};

/// Runs the plan once; every message is confirmed at the end, and acknowledged. `stamped`: latency is kept
/// though the plan is not paced. Errors: as run_stream; also a message that was not confirmed.
Result<SessionResult> run_session_stream(const SessionEnds& ends, const StreamPlan& plan, bool stamped);

}  // namespace lightq::bench
