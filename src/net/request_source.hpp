/// The source of a request or connection, by which limits tell unauthenticated peers apart. Layer: net.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace lightq::broker {

/// The address or local user that a request or connection came from.
struct RequestSource {
  /// An IPv4 address, the first 64 bits of an IPv6 address, or a user of this machine. A host chooses the
  /// other 64 bits of its IPv6 addresses freely. In bytes, not readable; empty if unknown.
  std::string key;
  std::optional<std::uint32_t> uid;  ///< of the process at the other end of a Unix socket
};

/// Returns the source of a connected socket's peer. Called once, when the connection is accepted, because the
/// source does not change.
RequestSource source_of(int descriptor);

}  // namespace lightq::broker
