/// The flags of `lightq log`. Included only by command_line.cpp. Layer: cli.
#pragma once

#include <array>
#include <charconv>
#include <memory>
#include <optional>
#include <system_error>

#include "client/message_template.hpp"
#include "client/parser/command_options.hpp"
#include "client/units.hpp"

namespace lightq::cli {

inline constexpr std::array<std::string_view, 4> log_verbs = {"dump", "verify", "repair", "snapshot"};

inline std::optional<std::uint64_t> parse_offset(const std::string& text) {
  std::uint64_t offset = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, offset);
  return !text.empty() && parsed.ec == std::errc() && parsed.ptr == end ? std::optional(offset)
                                                                        : std::nullopt;
}

inline CLI::App* add_log_verb(CLI::App* log, Parsed& parsed, const std::string& name, const std::string& help,
                              std::string& directory, const std::string& footer) {
  CLI::App* verb = log->add_subcommand(name, help);
  verb->set_help_flag("-h,--help", "show this text");
  verb->footer(footer);
  verb->add_option(
          "directory", directory,
          "directory of a log: DATA_DIR/topics/ID of a topic, or the directory of a queue; or the name "
          "of a topic of this machine's broker")
      ->required()
      ->type_name("DIR|TOPIC");
  text_option(verb, "--data-dir", parsed.common.data_dir,
              "data directory of the broker, to find a topic by its name", "DIR");
  add_output_flags(verb, parsed.common);
  return verb;
}

inline void add_key_file(CLI::App* verb, std::string& key_file) {
  text_option(verb, "--key-file", key_file, "the broker's storage keys, to decrypt encrypted batches",
              "FILE");
}

inline void add_log_dump(CLI::App* log, Parsed& parsed) {
  auto dump = std::make_shared<LogDump>();
  CLI::App* verb = add_log_verb(
      log, parsed, "dump",
      "print the sound messages of a log, or its batches, files or cursors; damaged parts are skipped",
      dump->directory,
      "PATTERN: %o offset, %t time, %T time in µs since 1970, %s size, %p payload, %e payload "
      "with\nbackslashes, %x payload in hexadecimal, %% a percent sign; \\n \\t \\0 \\\\.\n\nExamples:\n  "
      "lightq log dump data/topics/1\n  lightq log dump data/topics/1 --from 1000 -n 10 --json\n  lightq log "
      "dump data/topics/1 --format '%o %t %p\\n'\n  lightq log dump data/topics/1 --batches\n  lightq log "
      "dump data/jobs --cursors\n  lightq log dump data/topics/2 --key-file storage.keys\n\nOnly reads, and "
      "may run beside a running broker. Without the key it prints the positions and offsets of\nencrypted "
      "batches, not their messages.\nExit codes: 0 ok, 1 something is damaged, or is encrypted and FORMAT "
      "needs its content, 2 wrong usage or\nnothing could be read.");
  unit_option(verb, "--from", dump->from, parse_offset, "begin at this offset", "OFFSET");
  unit_option(verb, "--to", dump->to, parse_offset, "end before this offset", "OFFSET");
  unit_option(verb, "-n,--count", dump->count, parse_count, "end after this many messages", "COUNT");
  verb->add_option_function<std::string>(
          "--format",
          [dump](const std::string& text) {
            if (!MessageTemplate::parse(text))
              throw CLI::ValidationError("--format",
                                         "'" + text + "' is not one of text|raw|json|hex, and not a PATTERN");
            dump->format = text;
          },
          "text: offset, time, size and payload (default); raw: the payload and a line end; json; hex; or a "
          "PATTERN")
      ->envname(variable_of("--format"))
      ->type_name("FORMAT");
  add_raw_force(verb, dump->force);
  auto* batches = verb->add_flag_callback(
      "--batches", [dump] { dump->what = LogDump::What::batches; }, "print a line for each batch instead");
  batches->envname(variable_of("--batches"));
  auto* files = verb->add_flag_callback(
      "--segments", [dump] { dump->what = LogDump::What::segments; }, "print a line for each file instead");
  files->envname(variable_of("--segments"))->excludes(batches);
  verb->add_flag_callback(
          "--cursors", [dump] { dump->what = LogDump::What::cursors; },
          "print a line for each cursor instead: its name and committed offset")
      ->envname(variable_of("--cursors"))
      ->excludes(batches)
      ->excludes(files);
  add_key_file(verb, dump->key_file);
  verb->callback([&parsed, dump, verb] {
    const bool none = dump->count == 0 && verb->count("--count") > 0;
    parsed.command = [&parsed, dump, none] { return none ? exit_ok : run_log_dump(parsed.common, *dump); };
  });
}

inline void add_log_verify(CLI::App* log, Parsed& parsed) {
  auto verify = std::make_shared<LogVerify>();
  CLI::App* verb =
      add_log_verb(log, parsed, "verify", "read the whole log and report damage", verify->directory,
                   "Examples:\n  lightq log verify orders\n  lightq log verify data/topics/1 --json\n "
                   " lightq log verify data/topics/2 --key-file storage.keys\n\nOnly reads, and may run "
                   "beside a running broker. An incomplete append is not damage. Without the key it "
                   "checks\nall checksums, but cannot detect forged batches in an encrypted log.\nExit "
                   "codes: 0 clean, 1 damage found, 2 wrong usage or nothing could be read.");
  add_key_file(verb, verify->key_file);
  verb->callback([&parsed, verify] {
    parsed.command = [&parsed, verify] { return run_log_verify(parsed.common, *verify); };
  });
}

inline void add_log_repair(CLI::App* log, Parsed& parsed) {
  auto repair = std::make_shared<LogRepair>();
  CLI::App* verb =
      add_log_verb(log, parsed, "repair", "write a sound log with every undamaged message at its offset",
                   repair->directory,
                   "Lost messages leave a gap that the new log records, so that no offset is ever used "
                   "twice.\n\nExamples:\n  lightq log repair data/topics/1 --output saved\n  lightq log "
                   "repair data/topics/1 --force\n\nExit codes: 0 the log is sound and nothing was "
                   "lost, 1 failed, 2 wrong usage, 3 the\nlog is sound now, but messages or the state of "
                   "cursors or producers were lost.");
  text_option(verb, "--output", repair->output, "directory of the new log; the damaged log is only read",
              "DIR");
  flag(verb, "--force", repair->force,
       "repair in place: replace the damaged files, and keep the old ones in DIR/damaged-N; no process may "
       "have the log open");
  flag(verb, "--trust-batches", repair->trust_batches,
       "if the first page of a file is lost, accept everything in it that looks like a batch of this log, "
       "even if it may be older");
  verb->callback([&parsed, repair] {
    parsed.command = [&parsed, repair] { return run_log_repair(parsed.common, *repair); };
  });
}

inline void add_log(CLI::App* app, Parsed& parsed) {
  CLI::App* log =
      app->add_subcommand("log", "print, check, repair and back up the files of a log, without a broker");
  log->set_help_flag("-h,--help", "show this text");
  log->require_subcommand(1);
  log->footer(
      "Examples:\n  lightq log verify data/topics/1\n  lightq log dump data/topics/1 -n 10\n"
      "  lightq log repair data/topics/1 --output saved");
  add_log_dump(log, parsed);
  add_log_verify(log, parsed);
  add_log_repair(log, parsed);
  auto directory = std::make_shared<std::string>();
  auto output = std::make_shared<std::string>();
  CLI::App* snapshot = add_log_verb(
      log, parsed, "snapshot", "copy the log as it is now, even while a process writes to it", *directory,
      "Full files are hard-linked, not copied, if the file system permits it.\n\nExamples:\n  lightq log "
      "snapshot data/topics/1 backup/orders\n\nExit codes: 0 ok, 1 failed, or the copy is as damaged as the "
      "log, 2 wrong usage.");
  snapshot->add_option("output", *output, "directory of the copy; it must not exist yet")
      ->required()
      ->type_name("OUT");
  snapshot->callback([&parsed, directory, output] {
    parsed.command = [&parsed, directory, output] {
      return run_log_snapshot(parsed.common, *directory, *output);
    };
  });
}

}  // namespace lightq::cli
