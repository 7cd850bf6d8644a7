/// Measures how long connecting takes, from a socket's connect to the end of its handshake. Layer: bench
/// support.
#pragma once

#include <string>
#include <vector>

#include "support/stream_run.hpp"

namespace lightq::bench {

/// Connects `count` PUSH sockets one after the other in a separate process, each with the same ticket or
/// keys. Returns the times in µs. Error: a socket was not admitted within ten seconds.
Result<std::vector<double>> measure_connects(const std::string& uri, const StreamTicket& ticket,
                                             const StreamKeys& keys, int count);

}  // namespace lightq::bench
