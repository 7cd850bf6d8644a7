/// Helpers to define the commands' flags. Only this file includes CLI11, and only command_line.cpp includes
/// this file, because CLI11 is slow to compile. Layer: cli.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/help/command_entry.hpp"
#include "client/invocation.hpp"

namespace lightq::cli {

/// The result of parsing: the options, and the command to run.
struct Parsed {
  Common common;
  std::function<int()> command;
  bool is_broker = false;               ///< the broker handles signals itself
  bool version = false;                 ///< --version
  std::vector<std::string> typed = {};  ///< completion words: the command line that is to be completed
};

/// Describes a flag with the variable that also sets it.
class Help : public CLI::Formatter {
 public:
  std::string make_option_desc(const CLI::Option* option) const override {
    const std::string& variable = option->get_envname();
    return option->get_description() + (variable.empty() ? "" : " " + environment_note(variable));
  }
  static std::string environment_note(const std::string& variable) { return "(Env:" + variable + ")"; }
};

/// Returns the variable of a flag: LIGHTQ_RING_BYTES for `--ring-bytes`.
inline std::string variable_of(std::string_view flag) {
  std::string name = "LIGHTQ_";
  for (const char c : flag.substr(flag.find_first_not_of('-'))) {
    name += c == '-' ? '_' : static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  }
  return name;
}

/// Returns the last of an option's names, the long one: `--count` for `-n,--count`.
inline std::string long_name(const std::string& names) {
  return names.substr(names.rfind(',') + 1);
}

inline CLI::Option* text_option(CLI::App* app, const std::string& names, std::string& value,
                                const std::string& help, const std::string& type = "TEXT") {
  return app->add_option(names, value, help)->envname(variable_of(long_name(names)))->type_name(type);
}

inline CLI::Option* flag(CLI::App* app, const std::string& names, bool& value, const std::string& help) {
  return app->add_flag(names, value, help)->envname(variable_of(long_name(names)));
}

/// Returns the name of a value's type, with examples of its forms.
inline std::string forms_of(const std::string& type) {
  if (type == "TIME") return "a TIME, such as 500ms, 30s, 15m, 1h30m or 7d";
  if (type == "SIZE") return "a SIZE, such as 4096, 64KiB or 1MB";
  if (type == "COUNT" || type == "RATE") return "a " + type + ", such as 1000, 500k or 1M";
  if (type == "OFFSET") return "an OFFSET, such as 1017";
  const std::size_t time = type.find("|TIME");
  if (time != std::string::npos)
    return "one of " + type +
           "; a TIME is 15m, which means 15 minutes ago, 2026-11-22, 2026-11-22T04:00Z or "
           "2026-11-22T05:00+01:00";
  return (type.find('|') == std::string::npos ? "a " : "one of ") + type;
}

/// Adds an option with a text that one of the parsers of units.hpp converts.
template <typename Value, typename Parse>
CLI::Option* unit_option(CLI::App* app, const std::string& names, Value& value, Parse parse,
                         const std::string& help, const std::string& type) {
  return app
      ->add_option_function<std::string>(
          names,
          [&value, parse, names, type](const std::string& text) {
            const auto parsed = parse(text);
            if (!parsed)
              throw CLI::ValidationError(long_name(names), "'" + text + "' is not " + forms_of(type));
            value = static_cast<Value>(*parsed);
          },
          help)
      ->envname(variable_of(long_name(names)))
      ->type_name(type);
}

/// Adds an option that takes one of a few words.
template <typename Enum>
void word_option(CLI::App* app, const std::string& names, Enum& value, std::map<std::string, Enum> words,
                 const std::string& help) {
  std::string shown;
  for (const auto& [word, meaning] : words) shown += (shown.empty() ? "" : "|") + word;
  app->add_option_function<std::string>(
         names,
         [&value, words = std::move(words), names, shown](const std::string& text) {
           const auto found = words.find(text);
           if (found == words.end()) {
             throw CLI::ValidationError(long_name(names), "'" + text + "' is not one of " + shown);
           }
           value = found->second;
         },
         help)
      ->envname(variable_of(long_name(names)))
      ->type_name(shown);
}

/// Adds `--force` of the commands that print messages. Its variable has the longer name, because a variable
/// that is set for `consume` must not make `log repair` work in place.
inline void add_raw_force(CLI::App* app, bool& force) {
  app->add_flag("--force,--force-raw", force,
                "with --format raw: write control characters to a terminal unchanged, where they take "
                "effect; without it they are escaped there")
      ->envname("LIGHTQ_FORCE_RAW");
}

/// Adds `--yes` of the commands that ask before they destroy something.
inline void add_yes(CLI::App* app, bool& yes) {
  flag(app, "-y,--yes", yes,
       "do not ask; scripts should give it, because a later version will need it without "
       "a terminal");
}

/// Adds the flags of every command that prints something.
inline void add_output_flags(CLI::App* app, Common& common) {
  flag(app, "--json", common.json, "print results as JSON, for scripts")->group(std::string(output_group));
  flag(app, "-q,--quiet", common.quiet, "print only errors to standard error")
      ->group(std::string(output_group));
}

/// Adds --json for commands with output that other programs read. Its variable has the longer name, because a
/// variable that is set for `topic list` must not make a shell read JSON.
inline void add_json_document(CLI::App* verb, bool& json) {
  verb->add_flag("--json,--json-document", json, "print it as JSON, for programs")
      ->envname("LIGHTQ_JSON_DOCUMENT")
      ->group(std::string(output_group));
}

}  // namespace lightq::cli
