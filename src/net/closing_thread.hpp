/// Closes sockets that may block on close, on a separate thread. Layer: net.
#pragma once

namespace lightq::broker {

/// Closes a Unix socket through which the peer may have passed descriptors that were never read. The last
/// close of such a descriptor may block, for hours if it is a TCP connection with SO_LINGER. So it must never
/// happen on a thread that serves others. Returns immediately. The caller's thread closes a connection in
/// which nothing is left to read. Thread: any.
void close_apart(int socket);

}  // namespace lightq::broker
