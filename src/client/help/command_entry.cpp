/// Describes the commands and their flags as data. Layer: cli.
#include "client/help/command_entry.hpp"

#include <algorithm>

namespace lightq::cli {
namespace {

void add_once(std::vector<std::string>& to, const std::string& word) {
  if (std::ranges::find(to, word) == to.end()) to.push_back(word);
}

}  // namespace

std::string usual_variable(const FlagEntry& flag) {
  std::string variable = "LIGHTQ_";
  if (flag.names.empty()) return variable;
  const std::string& name = flag.names.back();
  for (const char c : name.substr(std::min(name.find_first_not_of('-'), name.size())))
    variable += c == '-' ? '_' : static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return variable;
}

std::string usage_of(const CommandEntry& command) {
  std::string usage = "lightq" + (command.words.empty() ? "" : " " + command.words);
  if (!command.flags.empty()) usage += " [FLAGS]";
  for (const ArgumentEntry& argument : command.arguments) {
    const std::string shape = argument.value + (argument.repeats ? "..." : "");
    usage += argument.required ? " " + shape : " [" + shape + "]";
  }
  if (!command.commands.empty()) usage += command.needs_command ? " COMMAND" : " [COMMAND]";
  return usage;
}

std::string shape_of(const FlagEntry& flag) {
  std::string shape;
  for (const std::string& name : flag.names) shape += (shape.empty() ? "" : ", ") + name;
  return flag.value.empty() ? shape : shape + " " + flag.value;
}

std::vector<std::string> flag_groups(const CommandEntry& command) {
  std::vector<std::string> groups;
  const auto add = [&](auto&& is_wanted) {
    for (const FlagEntry& flag : command.flags)
      if (flag.group != connection_group && is_wanted(flag.group)) add_once(groups, flag.group);
  };
  add([](const std::string& group) { return group.empty(); });
  add([](const std::string& group) { return !group.empty() && group != output_group; });
  add([](const std::string& group) { return group == output_group; });
  return groups;
}

std::vector<std::string> command_groups(const CommandEntry& command) {
  std::vector<std::string> groups;
  for (const CommandEntry& each : command.commands) add_once(groups, each.group);
  return groups;
}

}  // namespace lightq::cli
