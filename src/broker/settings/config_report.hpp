/// Reads the configuration for `lightq broker --check-config` and `--print-config`. Layer: broker.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/config_report.hpp"

namespace lightq::broker {

/// Reads the settings and the files that they name, as a start with these flags would, and reports all faults
/// that it finds. Touches neither the data directory nor any socket, and does not run `storage_key_command`.
/// Resolves the host names. Thread: the process has no other threads.
ConfigReport report_config(const std::map<std::string, std::string>& flag_overrides,
                           const std::optional<std::string>& config_file);

}  // namespace lightq::broker
