/// Turns the command line into one of the commands. Layer: cli.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace lightq::cli {

/// A setting of the broker that its command line offers as `--name`.
struct BrokerFlag {
  std::string name;         ///< as in the configuration file; dashes on the command line
  std::string environment;  ///< the variable that sets it too; shown, and read by the broker itself
  std::string value;        ///< what help calls its value; empty: it has none, and says true
  std::string help;
};

/// How this program can become a broker; the cli knows nothing of brokers but this.
struct BrokerCommand {
  std::vector<BrokerFlag> flags;
  /// Runs one until it is told to stop; answers the exit code.
  std::function<int(const std::map<std::string, std::string>& overrides,
                    const std::optional<std::string>& config_file)>
      run;
  /// Prints its public key, with the same settings.
  std::function<int(const std::map<std::string, std::string>& overrides,
                    const std::optional<std::string>& config_file)>
      print_key;
};

/// A flag of a command, as the parser knows it.
struct FlagListing {
  std::string command;             ///< as `topic create`
  std::vector<std::string> names;  ///< the long ones, without dashes
  std::string value;               ///< what help calls its value; empty for a flag that takes none
  std::string help;                ///< what help says of it, its variable included
};

/// Every flag of every command except --help.
std::vector<FlagListing> list_flags(const BrokerCommand& broker);

/// Runs the command that the arguments ask for; answers the exit code: 0 ok, 1 it failed, 2 wrong usage.
int run_command_line(int argc, char** argv, const BrokerCommand& broker);

}  // namespace lightq::cli
