/// Prints the broker's configuration. Layer: cli.
#pragma once

#include "base/config_report.hpp"

namespace lightq::cli {

/// The output of `lightq broker --check-config` (verdict) and `--print-config` (values).
enum class ConfigOutput { verdict, values };

/// Prints the configuration as TOML or as JSON, or the faults that keep the broker from starting with it.
/// Returns the exit code of a start: 0, or 2 for a wrong setting, or 1 for a file that cannot be read.
int run_broker_config(const broker::ConfigReport& report, ConfigOutput output, bool json);

}  // namespace lightq::cli
