/// `lightq broker`: a broker until a signal ends it; and `lightq broker key`. Layer: broker.
#pragma once

#include <map>
#include <optional>
#include <string>

namespace lightq::broker {

/// Runs a broker with the settings of the file, the environment and these flags, until SIGTERM, SIGINT or
/// SIGHUP (unless that is ignored);
/// these are blocked in the calling thread from here on. Answers the exit code: 0 after a clean stop, 1 if it
/// could not run, 2 if a setting is wrong. Call it before there are other threads.
int run_broker(const std::map<std::string, std::string>& flag_overrides,
               const std::optional<std::string>& config_file);

/// Prints the public key of the broker with these settings, 40 characters, and makes its keys if there are
/// none yet: of its data directory nothing else is read, so that a running broker is not disturbed. Answers
/// the exit code, as run_broker.
int print_broker_key(const std::map<std::string, std::string>& flag_overrides,
                     const std::optional<std::string>& config_file);

}  // namespace lightq::broker
