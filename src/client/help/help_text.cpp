/// Prints the help of the commands. Layer: cli.
#include "client/help/help_text.hpp"

#include <algorithm>

#include "client/text/wrapped_text.hpp"

namespace lightq::cli {
namespace {

constexpr std::size_t margin = 2;
constexpr std::size_t names_columns_max = 26;

/// Returns a name and its description in two columns.
std::string item(const std::string& name, const std::string& help, std::size_t columns,
                 std::size_t names_columns) {
  const std::size_t begin = margin + names_columns + 2;
  std::string text = std::string(margin, ' ') + name;
  const std::size_t used = columns_of(text);
  text += used + 2 > begin ? "\n" + std::string(begin, ' ') : std::string(begin - used, ' ');
  return text + wrapped(help, columns, begin, begin) + "\n";
}

/// Returns the width of the column of names.
std::size_t names_columns(std::size_t columns) {
  return std::min(names_columns_max, columns / 3);
}

std::string described(const FlagEntry& flag) {
  std::string help = flag.help;
  if (flag.required) help += " (required)";
  if (!flag.variable.empty() && flag.variable != usual_variable(flag)) help += " [" + flag.variable + "]";
  return help;
}

std::string flags_of_group(const CommandEntry& command, std::string_view group, std::size_t columns) {
  std::string text;
  for (const FlagEntry& flag : command.flags)
    if (flag.group == group) text += item(shape_of(flag), described(flag), columns, names_columns(columns));
  return text;
}

std::string arguments_text(const CommandEntry& command, std::size_t columns) {
  std::string text;
  for (const ArgumentEntry& argument : command.arguments)
    text += item(argument.value, argument.help, columns, names_columns(columns));
  return text.empty() ? "" : "\nArguments:\n" + text;
}

std::string commands_text(const CommandEntry& command, std::size_t columns) {
  std::string text;
  for (const std::string& group : command_groups(command)) {
    text += "\n" + (group.empty() ? std::string("Commands") : group) + ":\n";
    for (const CommandEntry& each : command.commands) {
      if (each.group != group) continue;
      std::string names = each.name();
      for (const std::string& alias : each.aliases) names += ", " + alias;
      text += item(names, each.help, columns, std::min<std::size_t>(names_columns(columns), 14));
    }
  }
  return text;
}

bool has_connection_flags(const CommandEntry& command) {
  return std::ranges::find(command.flags, connection_group, &FlagEntry::group) != command.flags.end();
}

constexpr std::string_view variables_rule =
    "Each flag has an environment variable, such as LIGHTQ_DATA_DIR for --data-dir. A flag overrides its "
    "variable.";

}  // namespace

std::string help_text(const CommandEntry& command, std::size_t columns) {
  std::string text = wrapped(command.help, columns) + "\n\n";
  text += "Usage: " + wrapped(usage_of(command), columns, 9, 7) + "\n";
  text += arguments_text(command, columns);
  text += commands_text(command, columns);
  for (const std::string& group : flag_groups(command))
    text += "\n" + (group.empty() ? std::string("Flags") : group) + ":\n" +
            flags_of_group(command, group, columns);
  if (has_connection_flags(command))
    text += "\nConnection:\n" + std::string(margin, ' ') +
            wrapped(
                "--broker, --user, --password-file, --data-dir and other flags name the broker and the "
                "user: see  lightq help connection",
                columns, margin, margin) +
            "\n";
  const bool has_variables = std::ranges::any_of(command.flags, [](const FlagEntry& flag) {
    return !flag.variable.empty() && flag.group != connection_group && flag.group != output_group;
  });
  if (has_variables) text += "\n" + wrapped(variables_rule, columns) + "\n";
  if (!command.notes.empty()) text += "\n" + wrapped_paragraphs(command.notes, columns);
  return text;
}

std::string connection_help(const CommandEntry& command, std::size_t columns) {
  return wrapped("These flags name the broker and the user. Every command that talks to a broker has them.",
                 columns) +
         "\n\nConnection:\n" + flags_of_group(command, connection_group, columns) + "\n" +
         wrapped_paragraphs(
             std::string(variables_rule) +
                 "\n\nWithout any of them, a command talks to this machine's broker: its broker.json has the "
                 "address, and its admin.json the administrator's password, if this user may read it.\n\n"
                 "Examples:\n  lightq stats --broker tcp://HOST:5000 --user ann --password-file ann.txt\n"
                 "  LIGHTQ_DATA_DIR=./data lightq topic list",
             columns);
}

}  // namespace lightq::cli
