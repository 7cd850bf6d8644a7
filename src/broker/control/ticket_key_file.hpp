/// Where the broker's ticket key lies between two starts. Layer: control.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>

#include <lightq/base/result.hpp>

#include "broker/endpoint/ticket_key.hpp"

namespace lightq::broker {

/// The key in `file` (DATA_DIR/ticket.key: 32 bytes, mode 0600), made at random where there is no file.
/// Errors: io_error, no_space; invalid_argument if others than its owner may read or write the file; corrupt
/// if it does not hold 32 bytes. `lifetime_max`: as TicketKey takes it.
Result<std::unique_ptr<TicketKey>> open_ticket_key(
    const std::filesystem::path& file,
    std::chrono::milliseconds lifetime_max = std::chrono::milliseconds(limits::ticket_ms_max));

}  // namespace lightq::broker
