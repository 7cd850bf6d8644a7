/// Logins by HTTP Basic. Layer: http.
#pragma once

#include <optional>

#include <lightq/base/secret.hpp>
#include <lightq/protocol/credentials.hpp>

namespace lightq::broker {

/// Returns the credentials in the value of an Authorization header (RFC 7617). Nothing if it has another
/// scheme, is not base64, has no colon, or is longer than a user name and a password may be.
std::optional<protocol::Credentials> basic_credentials(const Secret& authorization);

}  // namespace lightq::broker
