/// Storage keys that a command prints. Layer: rest.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "rest/storage_keys.hpp"

namespace lightq::rest {

inline constexpr std::chrono::milliseconds storage_key_command_time{limits::storage_key_command_ms_max};

/// Runs `command` with /bin/sh -c, and takes what it prints for the keys. It gets no input and no descriptor
/// of this process; what it says of errors goes nowhere, since it may be about secrets. Waits at most
/// `time_max`, and not once there is something to read in `stop_descriptor` (-1: there is none); ends the
/// command and what it has started then. Errors: io_error where it cannot be run, or ends with another exit
/// code than 0; timeout; shutting_down; invalid_argument where it prints too much, or as StorageKeys::parse;
/// limit_reached. None tells what was printed.
Result<std::unique_ptr<StorageKeys>> run_storage_key_command(
    const std::string& command, std::chrono::milliseconds time_max = storage_key_command_time,
    int stop_descriptor = -1);

}  // namespace lightq::rest
