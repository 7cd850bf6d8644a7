/// The flags of `lightq broker`. Included only by command_line.cpp, like command_options.hpp. Layer: cli.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "client/command_options.hpp"

namespace lightq::cli {

/// Adds the verb `broker`. Lifetime: `broker` must outlive the parse.
inline void add_broker(CLI::App* app, Parsed& parsed, const BrokerCommand& broker) {
  CLI::App* verb = app->add_subcommand("broker", "run a broker");
  verb->set_help_flag("-h,--help", "show this text");
  verb->footer(
      "Without flags the broker runs on loopback with its default data directory. Flags override the "
      "environment, and the environment overrides the file.\n\nExamples:\n  lightq broker\n  lightq broker "
      "--data-dir ./data --control tcp://127.0.0.1:5000 --log-level debug\n\nExit codes: 0 stopped by a "
      "signal, 1 failed, 2 wrong usage.");
  auto file = std::make_shared<std::string>();
  text_option(verb, "--config", *file, "configuration file (TOML)", "FILE");
  auto overrides = std::make_shared<std::map<std::string, std::string>>();
  for (const BrokerFlag& each : broker.flags) {
    std::string name = "--" + each.name;
    std::ranges::replace(name, '_', '-');
    const std::string help = each.help + " " + Help::environment_note(each.environment);
    if (each.value.empty()) {
      verb->add_flag_callback(name, [overrides, key = each.name] { (*overrides)[key] = "true"; }, help);
      continue;
    }
    verb->add_option_function<std::string>(
            name, [overrides, key = each.name](const std::string& text) { (*overrides)[key] = text; }, help)
        ->type_name(each.value);
  }
  const CLI::App* key = nullptr;
  if (broker.print_key) {
    CLI::App* print =
        verb->add_subcommand("key", "print the public key by which clients recognise an encrypting broker");
    print->set_help_flag("-h,--help", "show this text");
    print->fallthrough();  // accepts the broker's own flags after the word, too
    print->footer(
        "The key is stored in the data directory, and is created if there is none yet: give the same "
        "--data-dir as to the broker.\n\nExamples:\n  lightq broker key\n  lightq broker key --data-dir "
        "./data\n  LIGHTQ_SERVER_KEY=KEY lightq ping --broker tcp://HOST:5000\n\nExit codes: 0 ok, 1 failed, "
        "2 wrong usage.");
    key = print;
  }
  verb->callback([&parsed, &broker, overrides, file, key] {
    parsed.is_broker = true;
    const auto& command = key != nullptr && key->parsed() ? broker.print_key : broker.run;
    parsed.command = [&command, overrides, file] {
      return command(*overrides, file->empty() ? std::nullopt : std::optional(*file));
    };
  });
}

}  // namespace lightq::cli
