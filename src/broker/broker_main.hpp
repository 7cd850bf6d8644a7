/// The commands `lightq broker`, which runs a broker until a signal ends it, and `lightq broker key`. Layer:
/// broker.
#pragma once

#include <map>
#include <optional>
#include <string>

namespace lightq::broker {

/// Runs a broker with the settings of the file, the environment and these flags, until SIGTERM, SIGINT or the
/// end of its terminal. SIGHUP from a process reloads the settings, unless the signal is ignored. SIGUSR1
/// opens the log file again. Blocks these signals in the calling thread. Returns the exit code: 0 after a
/// clean stop, 1 if the broker could not run, 2 if a setting is wrong. Requires: the process has no
/// other threads yet.
int run_broker(const std::map<std::string, std::string>& flag_overrides,
               const std::optional<std::string>& config_file);

/// Prints the public key of the broker with these settings (40 characters, or `json`: an object with the
/// member `server_key`), and creates its keys if there are none. `renews`: makes a new key first. Reads
/// nothing else from the data directory, so it does not disturb a running broker. Returns the exit code, as
/// run_broker.
int print_broker_key(const std::map<std::string, std::string>& flag_overrides,
                     const std::optional<std::string>& config_file, bool json, bool renews);

}  // namespace lightq::broker
