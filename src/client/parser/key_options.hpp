/// The flags of `lightq key`. Included only by command_line.cpp, like command_options.hpp. Layer: cli.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "client/parser/command_options.hpp"

namespace lightq::cli {

inline constexpr std::array<std::string_view, 2> key_verbs = {"new", "public"};

inline void add_key(CLI::App* app, Parsed& parsed) {
  using Run = int (*)(const Common&, const std::string&);
  CLI::App* const key = app->add_subcommand(
      "key", "create and show a client's own key, for a broker that accepts only listed keys");
  key->set_help_flag("-h,--help", "show this text");
  key->require_subcommand(1);
  key->footer(
      "A broker with --allowed-client-keys answers only clients with a public key on its "
      "list.\n\nExamples:\n  lightq key new client.key >> allowed.txt     # the secret key stays in "
      "client.key\n  lightq broker --encrypt --allowed-client-keys allowed.txt\n  lightq ping "
      "--client-key-file client.key");
  const auto add = [&](const char* name, Run run, const char* help, const char* footer) {
    CLI::App* const verb = key->add_subcommand(name, help);
    verb->set_help_flag("-h,--help", "show this text");
    verb->footer(std::string(footer) + "\n\nExit codes: 0 ok, 1 failed, 2 wrong usage.");
    auto file = std::make_shared<std::string>();
    verb->add_option("file", *file, "file of the secret key")->required()->type_name("FILE");
    verb->parse_complete_callback([] {});  // for the reason given in add_verb of command_line.cpp
    add_output_flags(verb, parsed.common);
    verb->callback([&parsed, file, run] {
      parsed.command = [&parsed, file, run] { return run(parsed.common, *file); };
    });
  };
  add("new", run_key_new, "create a key pair: write the secret key to a new file, and print the public key",
      "Only the owner can read the file (mode 0600). An existing file is never overwritten.\n\nExamples:\n  "
      "lightq key new client.key\n  lightq key new client.key >> allowed.txt");
  add("public", run_key_public, "print the public key of a secret key",
      "Examples:\n  lightq key public client.key");
}

}  // namespace lightq::cli
