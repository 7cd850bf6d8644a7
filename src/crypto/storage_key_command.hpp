/// Reads storage keys from the output of a command. Layer: crypto.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "crypto/storage_keys.hpp"

namespace lightq::rest {

inline constexpr std::chrono::milliseconds storage_key_command_time{limits::storage_key_command_ms_max};

/// Runs `command` with /bin/sh -c, and parses its output as storage keys. The command gets no input and no
/// descriptors of this process. Its error output is discarded, since it may contain secrets. Waits at most
/// `time_max`, and only until `stop_descriptor` is readable (-1: none). A command that has not ended by then
/// is killed with its process group. Errors: io_error if the command cannot be run or its exit code is not 0;
/// timeout; shutting_down; invalid_argument for too much output; the errors of StorageKeys::parse. No error
/// text contains output of the command.
Result<std::unique_ptr<StorageKeys>> run_storage_key_command(
    const std::string& command, std::chrono::milliseconds time_max = storage_key_command_time,
    int stop_descriptor = -1);

}  // namespace lightq::rest
