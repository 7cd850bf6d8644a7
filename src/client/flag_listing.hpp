/// Lists the flags of all commands and their environment variables, from the parser. Included only by
/// command_line.cpp, because CLI11 is slow to compile. Layer: cli.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "client/command_line.hpp"
#include "client/command_options.hpp"

namespace lightq::cli {

/// Appends the flags of the commands under `app`. `before`: the words of the command line before them.
inline void list_flags_under(const CLI::App& app, const std::string& before, std::vector<FlagListing>& to) {
  const Help help;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    const std::string command = before + verb->get_name();
    for (const CLI::Option* option : verb->get_options()) {
      if (option == verb->get_help_ptr() || !option->nonpositional()) continue;
      const bool is_switch = option->get_type_size() == 0;
      to.push_back({command, option->get_lnames(), is_switch ? "" : option->get_type_name(),
                    help.make_option_desc(option)});
    }
    list_flags_under(*verb, command + " ", to);
  }
}

/// Adds the variables of the flags of all commands under `app`.
inline void add_variables_under(const CLI::App& app, std::set<std::string>& to) {
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    for (const CLI::Option* option : verb->get_options())
      if (!option->get_envname().empty()) to.insert(option->get_envname());
    add_variables_under(*verb, to);
  }
}

/// Returns the environment variables that any command or the broker knows. People set variables for several
/// commands, so a command accepts those of all others.
inline std::set<std::string> known_variables(const CLI::App& app, const BrokerCommand& broker) {
  std::set<std::string> known = {"LIGHTQ_ADMIN_PASSWORD", "LIGHTQ_CONFIG", "LIGHTQ_CORE_DUMPS",
                                 "LIGHTQ_NEW_PASSWORD", "LIGHTQ_PASSWORD"};
  add_variables_under(app, known);
  for (const BrokerFlag& flag : broker.flags) known.insert(flag.environment);
  return known;
}

}  // namespace lightq::cli
