/// The flags of `lightq completion` and `lightq man`. Included only by command_line.cpp, like
/// command_options.hpp. Layer: cli.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "client/commands/command_json.hpp"
#include "client/parser/command_options.hpp"
#include "client/parser/flag_listing.hpp"
#include "client/terminal.hpp"

namespace lightq::cli {

inline constexpr std::array<std::string_view, 4> completion_verbs = {"bash", "zsh", "fish", "words"};

/// Adds `completion` and `man`. `add_common(verb)` adds the flags of the connection. Lifetime: `app` and
/// `parsed` must live until the command has run.
template <typename AddCommon>
void add_help_files(CLI::App* app, Parsed& parsed, AddCommon&& add_common_flags) {
  CLI::App* const completion =
      app->add_subcommand("completion", "print a script that completes commands in a shell");
  completion->set_help_flag("-h,--help", "show this text");
  completion->require_subcommand(1);
  completion->footer(
      "Commands, flags and their values complete, and names of topics, groups and users, for which the "
      "script "
      "asks the broker. Packages install the scripts.\n\nExamples:\n  source <(lightq completion bash)\n  "
      "source <(lightq completion zsh)\n  lightq completion fish | source");
  for (const std::string shell : {"bash", "zsh", "fish"}) {
    CLI::App* const verb = completion->add_subcommand(shell, "print the script for " + shell);
    verb->set_help_flag("-h,--help", "show this text");
    auto json = std::make_shared<bool>(false);
    add_json_document(verb, *json);
    verb->callback([&parsed, shell, json] {
      parsed.command = [shell, json] {
        return *json ? print(script_document(shell)) : run_completion_script(shell);
      };
    });
  }
  CLI::App* const words =
      completion->add_subcommand("words", "print the words that may follow, for the scripts");
  words->group("");  // no help shows it
  words->parse_complete_callback([] {});
  add_common_flags(words);
  words->callback([&parsed, app] {
    parsed.command = [&parsed, app] {
      return run_completion_words(parsed.common, program_entry(*app), parsed.typed);
    };
  });
  auto command = std::make_shared<std::string>();
  auto output = std::make_shared<std::string>();
  CLI::App* const man = app->add_subcommand("man", "print the manual page of a command, or write all pages");
  man->set_help_flag("-h,--help", "show this text");
  man->footer(
      "Examples:\n  lightq man | man -l -\n  lightq man topic | man -l -\n  lightq man --output-dir man1");
  man->add_option("command", *command, "the first word of a command; without it: the program")
      ->type_name("COMMAND");
  text_option(man, "--output-dir", *output, "write all pages to this directory", "DIR");
  auto json = std::make_shared<bool>(false);
  add_json_document(man, *json);
  man->get_option("--json")->excludes("--output-dir");
  man->callback([&parsed, app, command, output, json] {
    parsed.command = [app, command, output, json] {
      const CommandEntry program = program_entry(*app);
      const bool is_known = command->empty() || find_command(program, *command) != nullptr;
      return *json && is_known ? print(commands_document(program, *command))
                               : run_man(program, *command, *output);
    };
  });
}

/// Takes the command line that is to be completed out of the arguments of `completion words`, so that its
/// flags are not taken for those of this command.
inline void take_typed_words(std::vector<std::string>& arguments, Parsed& parsed) {
  constexpr std::ptrdiff_t own_words = 2;
  if (arguments.size() < own_words || arguments[0] != "completion" || arguments[1] != "words") return;
  parsed.typed.assign(arguments.begin() + own_words, arguments.end());
  arguments.resize(own_words);
}

}  // namespace lightq::cli
