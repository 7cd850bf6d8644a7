/// Stores the broker's ticket key between two starts. Layer: access.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>

#include <lightq/base/result.hpp>

#include "access/ticket_key.hpp"

namespace lightq::broker {

/// Returns the key in `file` (DATA_DIR/ticket.key: 32 bytes, mode 0600). Creates a random key if the file
/// does not exist. Errors: io_error, no_space; invalid_argument if users other than its owner may read or
/// write the file; corrupt if it does not contain 32 bytes. `lifetime_max`: passed to TicketKey.
Result<std::unique_ptr<TicketKey>> open_ticket_key(
    const std::filesystem::path& file,
    std::chrono::milliseconds lifetime_max = std::chrono::milliseconds(limits::ticket_ms_max));

}  // namespace lightq::broker
