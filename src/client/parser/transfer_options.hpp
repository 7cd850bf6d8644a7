/// The commands `export`, `import` and `definitions`. Included only by command_line.cpp, like
/// command_options.hpp. Layer: cli.
#pragma once

#include <array>
#include <memory>
#include <string_view>

#include "client/parser/command_options.hpp"
#include "client/parser/log_options.hpp"
#include "client/parser/verb.hpp"
#include "client/units.hpp"

namespace lightq::cli {

inline constexpr std::array<std::string_view, 2> definitions_verbs = {"export", "import"};

inline void add_export(CLI::App* app, Parsed& parsed) {
  auto asked = std::make_shared<Export>();
  CLI::App* const verb = add_verb(
      app, parsed, "export", "write a topic's messages as JSON, one a line, without consuming them",
      "  lightq export orders > orders.ndjson\n  lightq export orders --from 1000 -n 100\n\n"
      "Each line has offset, time, payload (or payload_base64, if it is not UTF-8), key and headers.\n"
      "It ends with the last message that is stored when it begins, and says how to continue.");
  topic_argument(verb, asked->topic);
  unit_option(verb, "--from", asked->from, parse_offset, "begin with this message (the oldest)", "OFFSET");
  unit_option(verb, "--until", asked->until, parse_offset, "end before this message", "OFFSET");
  unit_option(verb, "-n,--count", asked->count, parse_count, "at most this many messages", "COUNT");
  verb->callback(
      [&parsed, asked] { parsed.command = [&parsed, asked] { return run_export(parsed.common, *asked); }; });
}

inline void add_import(CLI::App* app, Parsed& parsed) {
  auto import = std::make_shared<Import>();
  CLI::App* const verb = add_verb(
      app, parsed, "import", "publish messages that export has written",
      "  lightq import orders orders.ndjson\n  zcat orders.ndjson.gz | lightq import orders\n"
      "  lightq import orders orders.ndjson --dry-run\n\n"
      "Messages keep their order, key, headers and payload; they get new offsets and times. A line that is\n"
      "not a message ends the import with its number; all lines before it are stored then. After a failure\n"
      "the command says which --skip-lines continues without storing messages twice.");
  topic_argument(verb, import->topic);
  verb->add_option("files", import->files, "files with a message a line; - is standard input (default)")
      ->type_name("FILE");
  unit_option(verb, "--skip-lines", import->skip_lines, parse_count, "pass over the first lines", "COUNT");
  flag(verb, "--dry-run", import->preview, "only check all lines; needs no broker");
  unit_option(verb, "--timeout", import->timeout, parse_wait,
              "give up after this time without progress; 0: never (30s)", "TIME");
  word_option<session::ConfirmLevel>(
      verb, "--confirm", import->confirm,
      {{"received", session::ConfirmLevel::received}, {"flushed", session::ConfirmLevel::flushed}},
      "confirm a message when it is in the log (received) or on disk (flushed, default of durable topics)");
  verb->callback([&parsed, import] {
    parsed.command = [&parsed, import] { return run_import(parsed.common, *import); };
  });
}

/// Adds the verbs of `definitions`. `add`: as for add_group_verbs.
template <typename Add>
void add_definitions_verbs(Parsed& parsed, Add&& add) {
  CLI::App* const to = add("export", "print topics, groups and users as one JSON document, without secrets",
                           "  lightq definitions export > definitions.json");
  to->callback([&parsed] { parsed.command = [&parsed] { return run_definitions_export(parsed.common); }; });
  auto asked = std::make_shared<DefinitionsImport>();
  CLI::App* const from =
      add("import", "create the topics, groups and users of a document, and change their settings",
          "  lightq definitions import definitions.json --dry-run\n"
          "  lightq definitions import definitions.json\n\n"
          "Nothing is deleted: other topics, groups, users and rights stay. A setting that cannot change is "
          "named,\n"
          "and the exit code is 1. Users get no password by this: the command names those to add.");
  from->add_option("file", asked->file, "the document; - is standard input")->required()->type_name("FILE");
  flag(from, "--dry-run", asked->preview, "only print the changes");
  from->callback([&parsed, asked] {
    parsed.command = [&parsed, asked] { return run_definitions_import(parsed.common, *asked); };
  });
}

}  // namespace lightq::cli
