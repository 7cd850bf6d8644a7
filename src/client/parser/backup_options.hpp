/// The commands `backup` and `restore`. Included only by command_line.cpp, like command_options.hpp.
/// Layer: cli.
#pragma once

#include <memory>
#include <string>

#include "client/parser/command_options.hpp"

namespace lightq::cli {

/// Adds a command on the files of a data directory, with one argument.
inline CLI::App* add_backup_verb(CLI::App* app, Parsed& parsed, const char* name, const char* help,
                                 const char* data_dir_help, const char* footer) {
  CLI::App* const verb = app->add_subcommand(name, help);
  verb->set_help_flag("-h,--help", "show this text");
  verb->footer(footer);
  text_option(verb, "--data-dir", parsed.common.data_dir, data_dir_help, "DIR");
  add_output_flags(verb, parsed.common);
  return verb;
}

inline void add_backup(CLI::App* app, Parsed& parsed) {
  auto output = std::make_shared<std::string>();
  CLI::App* const backup = add_backup_verb(
      app, parsed, "backup", "copy all data of a broker, while it runs",
      "data directory of the broker (the usual one)",
      "Examples:\n  lightq backup /backup/monday\n  lightq backup /backup/monday.tar\n"
      "  lightq backup /backup/monday --data-dir ./data --json\n\n"
      "Run it on the broker's machine, as the broker's user or as root. It has all messages that were\n"
      "confirmed before it began, but not those of topics in memory. In a directory, full files are\n"
      "hard-linked if the file system permits it: copy the backup to another disk. A name that ends\n"
      "with .tar becomes one file, without links.\n\nExit codes: 0 ok, 1 failed, or the copy is as "
      "damaged as the broker's data, 2 wrong usage.");
  backup->add_option("output", *output, "directory or tar file of the backup; it must not exist yet")
      ->required()
      ->type_name("DIR|FILE.tar");
  backup->callback([&parsed, output] {
    parsed.command = [&parsed, output] { return run_backup(parsed.common, *output); };
  });
  auto from = std::make_shared<std::string>();
  auto only_check = std::make_shared<bool>(false);
  CLI::App* const restore = add_backup_verb(
      app, parsed, "restore", "make a broker's data directory from a backup",
      "the new data directory (the usual one); it must not exist yet, or be empty",
      "Examples:\n  lightq restore /backup/monday --data-dir ./data\n"
      "  lightq restore /backup/monday.tar --dry-run\n\nEvery file is checked. If one is damaged or missing, "
      "nothing is restored. Start the "
      "broker "
      "afterwards:\nit begins new incarnations of all topics, and all tickets end.\n\nExit codes: 0 ok, 1 "
      "failed, 2 wrong usage.");
  restore->add_option("backup", *from, "directory or tar file of the backup")
      ->required()
      ->type_name("DIR|FILE.tar");
  flag(restore, "--dry-run", *only_check, "only check the backup");
  restore->callback([&parsed, from, only_check] {
    parsed.command = [&parsed, from, only_check] { return run_restore(parsed.common, *from, *only_check); };
  });
}

}  // namespace lightq::cli
