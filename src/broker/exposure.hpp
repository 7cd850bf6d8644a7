/// Checks whether other machines can reach the broker. Layer: broker.
#pragma once

#include <optional>
#include <string>

#include <lightq/base/result.hpp>

#include "broker/config.hpp"

namespace lightq::broker {

/// Returns true if a numeric address is a loopback address.
bool is_on_loopback(const std::string& address);

/// Returns the first of control, bind and advertise that is not a loopback address, as the beginning of a
/// sentence; nothing if all are. Resolves host names; one that cannot be resolved counts as not loopback.
/// `bind_address`: the numeric address of the bind host.
std::optional<std::string> exposure_of(const Config& config, const std::string& bind_address);

/// Checks that a broker that other machines can reach encrypts, or is declared `insecure`, and in neither
/// case has `open_topics`. Also refuses, without encryption, the settings that require it, and directories of
/// Unix sockets in which other users may write. Error: invalid_argument.
Result<void> check_exposure(const Config& config, const std::string& bind_address);

/// Resolves the bind host, so that no join waits for a name server. Also listens there once, because a start
/// that fails is better than joins that fail. Errors: those of resolve_host and listen_tcp.
Result<std::string> bind_address_of(const std::string& host);

}  // namespace lightq::broker
