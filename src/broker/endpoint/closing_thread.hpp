/// Closes what may wait when it is closed, on a thread of its own. Layer: endpoint.
#pragma once

namespace lightq::broker {

/// Closes a Unix socket whose peer may have passed descriptors that nobody has read. The last close of such a
/// descriptor may wait, for hours if it is a TCP connection with SO_LINGER: never on a thread that others
/// need. Returns at once. Where nothing is left to read in a connection it is closed by the caller.
/// Any thread.
void close_apart(int socket);

}  // namespace lightq::broker
