/// Tells whether data sent to an address leaves this machine. Layer: client.
#pragma once

#include <sys/socket.h>

#include <string>
#include <string_view>
#include <vector>

#include <lightq/base/result.hpp>
#include <lightq/base/separate.hpp>

namespace lightq::inline v1 {

namespace detail {

/// Returns every address of a host, or none if the host is not found. Looks up names, which may block.
LIGHTQ_INLINE std::vector<sockaddr_storage> addresses_of(const std::string& host);

/// Returns true if this is the address of all interfaces. A connection to it reaches this machine.
LIGHTQ_INLINE bool is_unspecified(const sockaddr_storage& address);

/// Returns true if every address of the host is a loopback address or that of all interfaces. A host that is
/// not found counts as another machine, except `localhost` (RFC 6761, section 6.3).
LIGHTQ_INLINE bool is_this_machine(std::string_view host);

}  // namespace detail

/// Returns true if data sent to `uri` stays on this machine: a Unix socket, a loopback address, or a name
/// that has loopback addresses only. Looks up names, which may block on a name server. Thread: any.
LIGHTQ_INLINE bool stays_on_machine(std::string_view uri);

/// Returns the error for a secret that would leave this machine unencrypted. The text begins with the
/// argument, which names the receiver of the secret.
LIGHTQ_INLINE Error exposed_error(const std::string& what);

}  // namespace lightq::inline v1

#if defined(LIGHTQ_WITH_DEFINITIONS)
#include <lightq/impl/exposure.hpp>  // IWYU pragma: export
#endif
