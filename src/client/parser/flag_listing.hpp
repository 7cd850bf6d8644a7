/// Lists the commands, their flags and their environment variables, from the parser. Included only by
/// command_line.cpp, because CLI11 is slow to compile. Layer: cli.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/help/command_entry.hpp"
#include "client/help/help_text.hpp"
#include "client/parser/command_line.hpp"
#include "client/parser/command_options.hpp"
#include "client/text/wrapped_text.hpp"

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

inline bool is_repeated(const CLI::Option& option) {
  return option.get_expected_max() == CLI::detail::expected_max_vector_size;
}

inline FlagEntry flag_entry(const CLI::Option& option) {
  FlagEntry flag;
  for (const std::string& name : option.get_snames()) flag.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) flag.names.push_back("--" + name);
  if (option.get_type_size() != 0) flag.value = option.get_type_name();
  flag.help = option.get_description();
  flag.variable = option.get_envname();
  constexpr std::string_view note = " (Env:";
  const std::size_t noted = flag.help.rfind(note);  // the broker itself reads the variables of its settings
  if (noted != std::string::npos && flag.help.ends_with(')')) {
    flag.variable = flag.help.substr(noted + note.size());
    flag.variable.pop_back();
    flag.help.erase(noted);
  }
  if (option.get_group() != "Options") flag.group = option.get_group();
  flag.required = option.get_required();
  flag.repeats = is_repeated(option);
  return flag;
}

/// The headings in `lightq --help`, and their commands.
inline constexpr std::array<std::pair<std::string_view, std::string_view>, 4> command_headings = {
    {{"Messages", " produce consume sub peek trace export import mirror dlq delayed schedule "},
     {"Topics, groups, users", " topic group user key definitions "},
     {"Broker", " broker stats top ping reload bench doctor log backup restore "},
     {"This program", " context completion man version "}}};

/// Returns the heading of a command of the program.
inline std::string heading_of_command(const std::string& name) {
  for (const auto& [heading, names] : command_headings)
    if (names.find(" " + name + " ") != std::string_view::npos) return std::string(heading);
  return "Others";
}

/// Returns a command with everything under it. `words`: the command's own words, for example `topic create`.
inline CommandEntry command_entry(const CLI::App& app, const std::string& words) {
  CommandEntry command;
  command.words = words;
  command.aliases = app.get_aliases();
  command.help = app.get_description();
  command.notes = app.get_footer();
  command.needs_command = app.get_require_subcommand_min() > 0;
  if (app.get_group() != "Subcommands") command.group = app.get_group();
  for (const CLI::Option* option : app.get_options()) {
    if (option == app.get_help_ptr()) continue;
    if (option->nonpositional())
      command.flags.push_back(flag_entry(*option));
    else
      command.arguments.push_back(
          {option->get_type_name(), option->get_description(), option->get_required(), is_repeated(*option)});
  }
  for (const CLI::App* each :
       app.get_subcommands([](const CLI::App* verb) { return !verb->get_group().empty(); }))
    command.commands.push_back(
        command_entry(*each, words.empty() ? each->get_name() : words + " " + each->get_name()));
  return command;
}

/// Returns the program with all commands, in the order of their headings.
inline CommandEntry program_entry(const CLI::App& app) {
  CommandEntry program = command_entry(app, "");
  std::string all;
  for (const auto& [heading, names] : command_headings) all += names;
  std::ranges::sort(program.commands, {}, [&](const CommandEntry& command) {
    return std::pair(all.find(" " + command.words + " "), command.words);
  });
  return program;
}

/// Returns the words of a command, without the program's name.
inline std::string words_of(const CLI::App& app) {
  if (app.get_parent() == nullptr) return "";
  const std::string before = words_of(*app.get_parent());
  return before.empty() ? app.get_name() : before + " " + app.get_name();
}

/// Prints the help of the command that was named.
class HelpPrinter final : public Help {
 public:
  std::string make_help(const CLI::App* app, std::string, CLI::AppFormatMode) const override {
    const bool is_program = app->get_parent() == nullptr;
    return help_text(is_program ? program_entry(*app) : command_entry(*app, words_of(*app)),
                     output_columns());
  }
};

/// Returns a command of the tree by its words; nothing if there is none.
inline const CommandEntry* find_command(const CommandEntry& root, std::string_view words) {
  if (root.words == words) return &root;
  for (const CommandEntry& each : root.commands)
    if (const CommandEntry* found = find_command(each, words)) return found;
  return nullptr;
}

/// Returns the names of a command's flags, with dashes. `words` may end with a space.
inline std::vector<std::string> known_flags(const CLI::App& app, std::string words) {
  if (words.ends_with(' ')) words.pop_back();
  const CommandEntry program = program_entry(app);
  const CommandEntry* const command = find_command(program, words);
  std::vector<std::string> names;
  if (command != nullptr)
    for (const FlagEntry& flag : command->flags)
      names.insert(names.end(), flag.names.begin(), flag.names.end());
  return names;
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
