/// Parses the command line and runs the command that it names. Layer: cli.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/config_report.hpp"
#include "client/help/command_entry.hpp"

namespace lightq::cli {

/// A setting of the broker that the command line offers as `--name`.
struct BrokerFlag {
  std::string name;         ///< as in the configuration file; with dashes on the command line
  std::string environment;  ///< the variable that also sets it; shown in help, and read by the broker itself
  std::string value;        ///< the name of the value in help; empty: no value, the flag means true
  std::string help;
};

/// The functions that run a broker in this program. The cli has no other connection to the broker's code.
struct BrokerCommand {
  std::vector<BrokerFlag> flags;
  /// Runs a broker until it receives a signal to stop; returns the exit code.
  std::function<int(const std::map<std::string, std::string>& overrides,
                    const std::optional<std::string>& config_file)>
      run;
  /// Prints the broker's public key, with the same settings, as a line or as JSON, and makes a new one first
  /// if `renews`; returns the exit code.
  std::function<int(const std::map<std::string, std::string>& overrides,
                    const std::optional<std::string>& config_file, bool json, bool renews)>
      print_key;
  /// Reads the configuration as `run` does, without starting a broker.
  std::function<broker::ConfigReport(const std::map<std::string, std::string>& overrides,
                                     const std::optional<std::string>& config_file)>
      read_config;
};

/// A flag of a command, as the parser knows it.
struct FlagListing {
  std::string command;             ///< for example `topic create`
  std::vector<std::string> names;  ///< the long names, without dashes
  std::string value;               ///< the name of the value in help; empty for a flag without a value
  std::string help;                ///< the help text, with its variable
};

/// Returns every flag of every command except --help.
std::vector<FlagListing> list_flags(const BrokerCommand& broker);

/// Returns all commands. `words` of the root is empty.
CommandEntry list_commands(const BrokerCommand& broker);

/// Runs the command in the arguments. Returns the exit code: 0 ok, 1 failed, 2 wrong usage,
/// 3 a log was repaired with losses.
int run_command_line(int argc, char** argv, const BrokerCommand& broker);

}  // namespace lightq::cli
