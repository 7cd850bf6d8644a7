/// Where a request or a connection came from, as far as strangers are told apart by it. Layer: endpoint.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace lightq::broker {

struct RequestSource {
  /// An IPv4 address, the first 64 bits of an IPv6 address (one host has the others at will), or a user of
  /// this machine. Bytes, not for people; empty: not known.
  std::string key;
  std::optional<std::uint32_t> uid;  ///< of the process at the other end of a Unix socket
};

/// Of a connected socket's peer. Asked once, when it is accepted: what it is then, it stays.
RequestSource source_of(int descriptor);

}  // namespace lightq::broker
