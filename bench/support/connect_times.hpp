/// How long it takes to get in: from a socket's connect to the end of its handshake. Layer: bench support.
#pragma once

#include <string>
#include <vector>

#include "support/stream_run.hpp"

namespace lightq::bench {

/// Connects `count` PUSH sockets one after the other, each with the same ticket or keys, in a process of its
/// own. In µs. Error: one was not let in within ten seconds.
Result<std::vector<double>> measure_connects(const std::string& uri, const StreamTicket& ticket,
                                             const StreamKeys& keys, int count);

}  // namespace lightq::bench
