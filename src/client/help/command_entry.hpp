/// Describes the commands and their flags as data: the source of the help, the manual pages and the shells'
/// completions. command_line.cpp makes it from the parser. Layer: cli.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lightq::cli {

/// The group of the flags that name the broker and the user. All commands that need a broker have them.
inline constexpr std::string_view connection_group = "Connection";
/// The group of the flags of all commands that print something.
inline constexpr std::string_view output_group = "Output";

struct FlagEntry {
  std::vector<std::string> names = {};  ///< with dashes, short ones first
  std::string value = {};               ///< the name of the value; empty for a flag without a value
  std::string help = {};
  std::string variable = {};  ///< the environment variable that also sets it; empty: none
  std::string group = {};     ///< the heading in the help; empty: the command's own flags
  bool required = false;
  bool repeats = false;  ///< may be given several times
};

/// An argument without a flag, for example a topic.
struct ArgumentEntry {
  std::string value = {};
  std::string help = {};
  bool required = false;
  bool repeats = false;
};

struct CommandEntry {
  std::string words = {};                 ///< for example `topic create`; empty for the program itself
  std::vector<std::string> aliases = {};  ///< other names of the last word
  std::string help = {};
  std::string notes = {};  ///< paragraphs behind the flags: examples, exit codes
  std::string group = {};  ///< the heading in the list of commands
  std::vector<ArgumentEntry> arguments = {};
  std::vector<FlagEntry> flags = {};
  std::vector<CommandEntry> commands = {};
  bool needs_command = false;  ///< one of `commands` must be named

  /// Returns the last word.
  [[nodiscard]] std::string name() const { return words.substr(words.rfind(' ') + 1); }
};

/// Returns a flag's variable by the rule for all flags: LIGHTQ_RING_BYTES for `--ring-bytes`.
std::string usual_variable(const FlagEntry& flag);

/// Returns for example `lightq topic create [FLAGS] TOPIC`.
std::string usage_of(const CommandEntry& command);

/// Returns for example `-n, --count COUNT`.
std::string shape_of(const FlagEntry& flag);

/// Returns the headings of the command's flags, without `connection_group`: the command's own flags first,
/// and those of the output last.
std::vector<std::string> flag_groups(const CommandEntry& command);

/// Returns the headings of the commands under `command` in their order.
std::vector<std::string> command_groups(const CommandEntry& command);

}  // namespace lightq::cli
