/// Completes a command line, for the shells. Layer: cli.
#include "client/help/completer.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

namespace lightq::cli {
namespace {

/// A command line as far as it is typed.
struct Position {
  const CommandEntry* command = nullptr;
  std::vector<std::string> arguments;                       ///< words that are no flags
  std::vector<std::pair<std::string, std::string>> values;  ///< of flags
  const FlagEntry* open_flag = nullptr;                     ///< its value comes next
  bool only_arguments = false;                              ///< after `--`
};

const FlagEntry* find_flag(const CommandEntry& command, std::string_view name) {
  for (const FlagEntry& flag : command.flags)
    if (std::ranges::find(flag.names, name) != flag.names.end()) return &flag;
  return nullptr;
}

const CommandEntry* find_under(const CommandEntry& command, const std::string& word) {
  for (const CommandEntry& each : command.commands) {
    const bool is_alias = std::ranges::find(each.aliases, word) != each.aliases.end();
    if (each.name() == word || is_alias) return &each;
  }
  return nullptr;
}

/// Bash splits `--type=file` into three words. Joins them again.
std::vector<std::string> joined(std::vector<std::string> typed) {
  std::vector<std::string> words;
  for (std::string& word : typed) {
    const bool continues =
        !words.empty() && words.back().starts_with("--") && (word == "=" || words.back().ends_with('='));
    if (continues)
      words.back() += word;
    else
      words.push_back(std::move(word));
  }
  return words;
}

void take_flag(Position& at, const std::string& word) {
  const std::size_t equals = word.find('=');
  const FlagEntry* const flag = find_flag(*at.command, word.substr(0, equals));
  if (flag == nullptr || flag->value.empty()) return;
  if (equals == std::string::npos)
    at.open_flag = flag;
  else
    at.values.emplace_back(flag->names.back(), word.substr(equals + 1));
}

/// Reads all words but the last.
Position position_of(const CommandEntry& program, const std::vector<std::string>& words) {
  Position at;
  at.command = &program;
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    const std::string& word = words[i];
    if (at.open_flag != nullptr) {
      at.values.emplace_back(at.open_flag->names.back(), word);
      at.open_flag = nullptr;
    } else if (at.only_arguments) {
      at.arguments.push_back(word);
    } else if (word == "--") {
      at.only_arguments = true;
    } else if (word.starts_with('-') && word.size() > 1) {
      take_flag(at, word);
    } else if (const CommandEntry* const next =
                   at.arguments.empty() ? find_under(*at.command, word) : nullptr) {
      at.command = next;
    } else {
      at.arguments.push_back(word);
    }
  }
  return at;
}

/// Returns true if the name is one word for every shell, and no flag.
bool is_plain_word(const std::string& name) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+@%,/-";
  return !name.empty() && name.front() != '-' && name.find_first_not_of(plain) == std::string::npos;
}

/// Returns the parts of a value such as `queue|file`.
std::vector<std::string> parts_of_value(const std::string& value) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= value.size();) {
    const std::size_t end = std::min(value.find('|', at), value.size());
    parts.push_back(value.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

/// Returns true if the part of a value is a word to type. Words in capitals stand for others.
bool is_typed_word(const std::string& part) {
  return !part.empty() && std::ranges::none_of(part, [](char c) { return c >= 'A' && c <= 'Z'; });
}

/// Collects the words that begin as the last one.
class Collector {
 public:
  explicit Collector(std::string begun) : begun_(std::move(begun)) {}
  /// Sets a text that stands before each added word, such as `--type=`.
  void put_before(std::string before) { before_ = std::move(before); }
  void add(const std::string& word, const std::string& help) {
    if ((before_ + word).starts_with(begun_)) found_.words.push_back({before_ + word, help});
  }
  void add_files() { found_.files = true; }
  [[nodiscard]] Completions found() && { return std::move(found_); }

 private:
  std::string begun_;
  std::string before_;
  Completions found_;
};

void add_names(Collector& to, NameKind kind, const Position& at, const NameSource& names) {
  const std::string topic = kind == NameKind::groups && !at.arguments.empty() ? at.arguments[0] : "";
  if (kind == NameKind::groups && topic.empty()) return;
  for (const std::string& name : names(kind, topic))
    if (is_plain_word(name)) to.add(name, "");
}

/// Adds the names of what an argument NAME of the command stands for.
void add_named(Collector& to, const Position& at, const NameSource& names) {
  const std::string& words = at.command->words;
  if (words.starts_with("user ") && words != "user add") add_names(to, NameKind::users, at, names);
  if (words.starts_with("schedule ")) add_names(to, NameKind::schedules, at, names);
}

/// Adds values with this name in the help. `flag`: empty for an argument. `program`: for names of commands.
void add_values(Collector& to, const std::string& value, const std::string& flag, const Position& at,
                const NameSource& names, const CommandEntry& program) {
  const std::vector<std::string> parts = parts_of_value(value);
  const bool is_choice = parts.size() > 1;
  for (const std::string& part : parts) {
    if (part == "FILE" || part == "DIR") to.add_files();
    if (part == "TOPIC") add_names(to, NameKind::topics, at, names);
    if (part == "CONTEXT") add_names(to, NameKind::contexts, at, names);
    if (is_choice && is_typed_word(part)) to.add(part, "");
  }
  if (value == "GROUP" || flag == "--group") add_names(to, NameKind::groups, at, names);
  if (value == "NAME" && flag.empty()) add_named(to, at, names);
  if (value == "COMMAND")
    for (const CommandEntry& each : program.commands) to.add(each.name(), each.help);
}

void add_flags(Collector& to, const CommandEntry& command) {
  for (const FlagEntry& flag : command.flags)
    for (const std::string& name : flag.names)
      if (name.starts_with("--")) to.add(name, flag.help);
  to.add("--help", "show the help");
}

}  // namespace

Completions complete(const CommandEntry& program, std::vector<std::string> typed, const NameSource& names) {
  const std::vector<std::string> words = joined(std::move(typed));
  const std::string begun = words.empty() ? "" : words.back();
  const Position at = position_of(program, words);
  Collector to(begun);
  const std::size_t equals = begun.find('=');
  if (at.open_flag != nullptr) {
    add_values(to, at.open_flag->value, at.open_flag->names.back(), at, names, program);
  } else if (!at.only_arguments && begun.starts_with("--") && equals != std::string::npos) {
    const FlagEntry* const flag = find_flag(*at.command, begun.substr(0, equals));
    to.put_before(begun.substr(0, equals + 1));
    if (flag != nullptr) add_values(to, flag->value, flag->names.back(), at, names, program);
  } else if (!at.only_arguments && begun.starts_with('-')) {
    add_flags(to, *at.command);
  } else {
    if (at.arguments.empty())
      for (const CommandEntry& each : at.command->commands) to.add(each.name(), each.help);
    const std::vector<ArgumentEntry>& arguments = at.command->arguments;
    const bool repeats = !arguments.empty() && arguments.back().repeats;
    const std::size_t place =
        repeats ? std::min(at.arguments.size(), arguments.size() - 1) : at.arguments.size();
    if (place < arguments.size()) add_values(to, arguments[place].value, "", at, names, program);
  }
  return std::move(to).found();
}

std::vector<std::pair<std::string, std::string>> typed_values(const CommandEntry& program,
                                                              std::vector<std::string> typed) {
  return position_of(program, joined(std::move(typed))).values;
}

}  // namespace lightq::cli
