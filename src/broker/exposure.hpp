/// Who can reach the broker: this machine alone, or others too. Layer: broker.
#pragma once

#include <optional>
#include <string>

#include <lightq/base/result.hpp>

#include "broker/config.hpp"

namespace lightq::broker {

/// Whether a numeric address is one of loopback.
bool is_on_loopback(const std::string& address);

/// The first of control, bind and advertise that is no loopback address, as a sentence's beginning; nothing:
/// all are. A host name is looked up; one that is not found is somebody else's. `bind_address`: the bind
/// host's, numeric.
std::optional<std::string> exposure_of(const Config& config, const std::string& bind_address);

/// What other machines can reach has to be encrypted, or be said to be `insecure`, and has no `open_topics`
/// in either case; what goes with encryption alone is refused without it; and where Unix sockets lie nobody
/// else may write. Error: invalid_argument.
Result<void> check_exposure(const Config& config, const std::string& bind_address);

}  // namespace lightq::broker
