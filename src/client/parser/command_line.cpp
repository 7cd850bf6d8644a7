/// Parses the command line and runs the command that it names. Layer: cli.
#include "client/parser/command_line.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <sstream>

#include "client/parser/backup_options.hpp"
#include "client/parser/broker_options.hpp"
#include "client/parser/broker_verbs.hpp"
#include "client/parser/command_options.hpp"
#include "client/parser/context_options.hpp"
#include "client/parser/delayed_options.hpp"
#include "client/parser/flag_listing.hpp"
#include "client/parser/group_options.hpp"
#include "client/parser/help_options.hpp"
#include "client/parser/key_options.hpp"
#include "client/parser/log_options.hpp"
#include "client/parser/message_verbs.hpp"
#include "client/parser/mirror_options.hpp"
#include "client/parser/schedule_options.hpp"
#include "client/parser/topic_options.hpp"
#include "client/parser/transfer_options.hpp"
#include "client/parser/usage_error.hpp"
#include "client/parser/user_options.hpp"
#include "client/parser/verb.hpp"
#include "client/terminal.hpp"
#include "client/text/suggestion.hpp"
#include "client/text/variables.hpp"

namespace lightq::cli {
namespace {

constexpr std::array<std::string_view, 31> verbs = {
    "broker",  "topic",  "group",       "dlq",        "delayed", "schedule", "user",   "produce",
    "consume", "peek",   "trace",       "stats",      "ping",    "bench",    "log",    "key",
    "version", "pub",    "sub",         "completion", "man",     "context",  "doctor", "top",
    "export",  "import", "definitions", "reload",     "backup",  "restore",  "mirror"};
constexpr std::array<CommandFamily, 11> families = {{{"topic", topic_verbs},
                                                     {"group", group_verbs},
                                                     {"dlq", dead_verbs},
                                                     {"delayed", delayed_verbs},
                                                     {"schedule", schedule_verbs},
                                                     {"user", user_verbs},
                                                     {"log", log_verbs},
                                                     {"key", key_verbs},
                                                     {"completion", completion_verbs},
                                                     {"context", context_verbs},
                                                     {"definitions", definitions_verbs}}};

/// Adds the families whose verbs have headers of their own.
void add_families(CLI::App* app, Parsed& parsed) {
  add_family(app, parsed, "group", "list, inspect, change and move consumer groups",
             "  lightq group list orders\n"
             "  lightq group set orders billing --max-attempts 5 --backoff 1s,10s,1m\n"
             "  lightq group reset orders billing --to earliest --dry-run",
             [](Parsed& to, auto&& add) { add_group_verbs(to, add); });
  add_family(app, parsed, "dlq", "list, show, retry and purge messages that no consumer could process",
             "  lightq dlq list orders --group billing\n  lightq dlq retry orders --group billing",
             [](Parsed& to, auto&& add) { add_dead_verbs(to, add); });
  add_family(app, parsed, "delayed", "list, cancel and reschedule messages that wait until they are due",
             "  lightq delayed list reminders\n  lightq delayed cancel reminders --id 'order 7'",
             [](Parsed& to, auto&& add) { add_delayed_verbs(to, add); });
  add_family(app, parsed, "schedule", "publish messages again and again, at the times of cron rules",
             "  lightq schedule set morning reports --cron '0 9 * * MON-FRI' --zone Europe/Berlin go\n"
             "  lightq schedule list",
             [](Parsed& to, auto&& add) { add_schedule_verbs(to, add); });
  add_family(app, parsed, "context", "name brokers, with user and key file, and choose one",
             "  lightq context add prod --broker tcp://HOST:5000 --user ann --password-file ann.txt\n"
             "  lightq context use prod",
             [](Parsed& to, auto&& add) { add_context_verbs(to, add); });
  add_family(app, parsed, "definitions",
             "copy the settings of topics, groups and users to another broker, as one JSON document",
             "  lightq definitions export > definitions.json\n"
             "  lightq definitions import definitions.json --dry-run",
             [](Parsed& to, auto&& add) { add_definitions_verbs(to, add); });
  add_family(app, parsed, "user", "add, remove and list users, their passwords and rights",
             "  lightq user add ann --produce 'orders.*'\n  lightq user list",
             [](Parsed& to, auto&& add) { add_user_verbs(to, add); });
}

/// Describes all commands to the parser, which writes to `parsed`. Lifetime: all three arguments must live
/// until the parse is done.
void describe(CLI::App& app, Parsed& parsed, const BrokerCommand& broker) {
  app.name("lightq");
  app.description("LightQ: a small, fast, durable message broker and its tools.");
  app.formatter(std::make_shared<HelpPrinter>());
  app.set_help_flag("-h,--help", "show this text");
  app.footer(
      "Start here:\n  lightq broker &\n  lightq topic create hello\n  echo world | lightq produce hello\n"
      "  lightq consume hello -n 1\n\nEach command has its own --help;  lightq help connection  explains how "
      "a "
      "command finds its broker. Exit codes: 0 ok, 1 failed, 2 wrong usage, 3 a log was repaired with "
      "losses.");
  app.require_subcommand(0, 1);  // after the first verb, verbs are ordinary words: topic names, file names
  app.add_flag("--version", parsed.version, "show the versions of this program and of the broker");
  if (broker.run) add_broker(&app, parsed, broker);
  add_topic(&app, parsed);
  add_families(&app, parsed);
  add_produce(&app, parsed);
  add_consume(&app, parsed, "consume", Mode::pull);
  add_consume(&app, parsed, "sub", Mode::sub);
  add_peek(&app, parsed);
  add_trace(&app, parsed);
  add_export(&app, parsed);
  add_import(&app, parsed);
  add_mirror(&app, parsed);
  add_broker_verbs(&app, parsed);
  add_log(&app, parsed);
  add_backup(&app, parsed);
  add_key(&app, parsed);
  add_help_files(&app, parsed, [&parsed](CLI::App* verb) { add_common(verb, parsed.common); });
  for (CLI::App* const verb : app.get_subcommands([](CLI::App*) { return true; }))
    verb->group(heading_of_command(verb->get_name()));
}

}  // namespace

std::vector<FlagListing> list_flags(const BrokerCommand& broker) {
  CLI::App app;
  Parsed parsed;
  describe(app, parsed, broker);
  std::vector<FlagListing> flags;
  list_flags_under(app, "", flags);
  return flags;
}

CommandEntry list_commands(const BrokerCommand& broker) {
  CLI::App app;
  Parsed parsed;
  describe(app, parsed, broker);
  return program_entry(app);
}

int run_command_line(int argc, char** argv, const BrokerCommand& broker) {
  std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  if (!arguments.empty() && arguments[0] == "help") {  // `help consume` is `consume --help`
    arguments.erase(arguments.begin());
    arguments.emplace_back("--help");
  }
  const bool wants_json = std::ranges::find(arguments, "--json") != arguments.end();
  speak_json(wants_json ? std::optional(command_words(arguments, families)) : std::nullopt);
  const bool on_connection = arguments == std::vector<std::string>{"connection", "--help"};
  if (const auto fault = on_connection ? std::nullopt : misspelling(arguments, verbs, families)) {
    say_error(to_word(ErrorCode::invalid_argument), *fault);
    return exit_usage;
  }
  CLI::App app;
  Parsed parsed;
  take_typed_words(arguments, parsed);
  parsed.common.secrets->collect(!arguments.empty() && arguments[0] == "broker");
  describe(app, parsed, broker);
  if (on_connection) {
    const CommandEntry root = program_entry(app);
    return print(connection_help(*find_command(root, "ping"), output_columns()));
  }
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));  // CLI11 takes them reversed
  } catch (const CLI::ParseError& error) {
    std::ostringstream text;  // receives the help text, if requested
    if (error.get_exit_code() == 0 && app.exit(error, text, text) == 0) return print(text.str());
    const std::string words = command_words(arguments, families);
    const std::string fault = without_values(error, known_flags(app, words));
    say_error(to_word(ErrorCode::invalid_argument), fault + "\n  see  lightq " + words + "--help");
    return exit_usage;
  }
  // Without the broker this program does not know its settings. They may be set all the same, so none is
  // refused.
  const auto unknown = broker.run ? unknown_variable(known_variables(app, broker), environ) : std::nullopt;
  if (unknown) {
    say_error(to_word(ErrorCode::invalid_argument), *unknown);
    return exit_usage;
  }
  if (parsed.version) parsed.command = [&parsed] { return run_version(parsed.common); };
  if (!parsed.command) {
    tell(app.help());
    return exit_usage;
  }
  if (parsed.common.json) speak_json(command_words(arguments, families));
  if (!parsed.is_broker) catch_signals();
  return parsed.command();
}

}  // namespace lightq::cli
