/// Parses the command line and runs the command that it names. Layer: cli.
#include "client/command_line.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <sstream>

#include "client/broker_options.hpp"
#include "client/command_options.hpp"
#include "client/context_options.hpp"
#include "client/delayed_options.hpp"
#include "client/flag_listing.hpp"
#include "client/group_options.hpp"
#include "client/help_options.hpp"
#include "client/key_options.hpp"
#include "client/log_options.hpp"
#include "client/message_options.hpp"
#include "client/schedule_options.hpp"
#include "client/terminal.hpp"
#include "client/text/suggestion.hpp"
#include "client/text/variables.hpp"
#include "client/topic_options.hpp"
#include "client/units.hpp"
#include "client/usage_error.hpp"
#include "client/user_options.hpp"

namespace lightq::cli {
namespace {

constexpr std::array<std::string_view, 23> verbs = {
    "broker",  "topic", "group",      "dlq",  "delayed", "schedule", "user", "produce",
    "consume", "peek",  "stats",      "ping", "bench",   "log",      "key",  "version",
    "pub",     "sub",   "completion", "man",  "context", "doctor",   "top"};
constexpr std::array<std::string_view, 9> topic_verbs = {"create",       "set",   "list",   "info", "delete",
                                                         "delete-group", "pause", "resume", "purge"};
constexpr std::array<CommandFamily, 10> families = {{{"topic", topic_verbs},
                                                     {"group", group_verbs},
                                                     {"dlq", dead_verbs},
                                                     {"delayed", delayed_verbs},
                                                     {"schedule", schedule_verbs},
                                                     {"user", user_verbs},
                                                     {"log", log_verbs},
                                                     {"key", key_verbs},
                                                     {"completion", completion_verbs},
                                                     {"context", context_verbs}}};

void add_common(CLI::App* app, Common& common) {
  const std::string group(connection_group);
  text_option(app, "--context", common.context,
              "broker that  lightq context add  has named; else the one in use, unless --broker or "
              "--data-dir is given",
              "CONTEXT")
      ->group(group);
  text_option(app, "--broker", common.broker,
              "control URI; else that in broker.json, else tcp://127.0.0.1:5000", "URI")
      ->group(group);
  text_option(app, "--user", common.user,
              "user that sends the request; else the administrator of this machine's broker", "NAME")
      ->group(group);
  text_option(app, "--password-file", common.password_file,
              "file with the user's password; else LIGHTQ_PASSWORD", "FILE")
      ->group(group);
  text_option(app, "--admin-user", common.admin_user,
              "administrator; else that of this machine's broker, unless --user is given", "NAME")
      ->group(group);
  text_option(app, "--admin-password-file", common.admin_password_file,
              "file with that password; else LIGHTQ_ADMIN_PASSWORD, else admin.json in the data directory",
              "FILE")
      ->group(group);
  text_option(app, "--server-key", common.server_key,
              "public key of an encrypting broker; else that in broker.json of this machine's broker", "KEY")
      ->group(group);
  text_option(app, "--client-key-file", common.client_key_file,
              "this client's key, for a broker that accepts only listed keys: see  lightq key new", "FILE")
      ->group(group);
  flag(app, "--insecure", common.insecure, "permit unencrypted passwords and tickets to other machines")
      ->group(group);
  text_option(app, "--data-dir", common.data_dir,
              "directory in which this machine's broker keeps broker.json and admin.json", "DIR")
      ->group(group);
  unit_option(app, "--request-timeout", common.request_timeout, parse_wait,
              "how long to wait for a reply; a busy broker is asked again during this time (5s)", "TIME")
      ->group(group);
  add_output_flags(app, common);
}

CLI::App* add_verb(CLI::App* app, Parsed& parsed, const std::string& name, const std::string& help,
                   const std::string& examples) {
  CLI::App* verb = app->add_subcommand(name, help);
  verb->footer("Examples:\n" + examples + "\n\nExit codes: 0 ok, 1 failed, 2 wrong usage.");
  verb->set_help_flag("-h,--help", "show this text");
  // All verbs write to the same options. With its own callback, only the verb in use reads the environment,
  // so that no other verb overwrites its flags.
  verb->parse_complete_callback([] {});
  add_common(verb, parsed.common);
  return verb;
}

void topic_argument(CLI::App* verb, std::string& topic) {
  verb->add_option("topic", topic, "the topic's name")->required()->type_name("TOPIC");
}

void add_topic_create(CLI::App* topic, Parsed& parsed) {
  auto create = std::make_shared<TopicCreate>();
  CLI::App* verb = add_verb(
      topic, parsed, "create", "create a topic",
      "  lightq topic create orders --type file --retention 7d\n"
      "  lightq topic create ticks --ring-bytes 256MiB --overflow drop_oldest\n"
      "  lightq topic create jobs --admin-user lightq_admin --user alice --password-file secret.txt");
  topic_argument(verb, create->topic);
  add_topic_settings(verb, create->settings);
  verb->callback([&parsed, create] {
    parsed.command = [&parsed, create] { return run_topic_create(parsed.common, *create); };
  });
}

/// Adds `pause`, `resume` or `purge`, for a topic or one of its groups.
void add_topic_control(CLI::App* topic, Parsed& parsed, TopicControl::What what, const std::string& name,
                       const std::string& help) {
  auto control = std::make_shared<TopicControl>();
  control->what = what;
  CLI::App* verb =
      add_verb(topic, parsed, name, help,
               "  lightq topic " + name + " orders\n  lightq topic " + name + " orders --group billing");
  topic_argument(verb, control->topic);
  text_option(verb, "--group", control->group, "only this group, or this cursor of a consumer", "NAME");
  if (what == TopicControl::What::purge) add_yes(verb, control->yes);
  if (what == TopicControl::What::purge)
    flag(verb, "--delayed", control->delayed, "also cancel the topic's delayed messages")
        ->excludes("--group");
  verb->callback([&parsed, control] {
    parsed.command = [&parsed, control] { return run_topic_control(parsed.common, *control); };
  });
}

void add_topic(CLI::App* app, Parsed& parsed) {
  CLI::App* topic = app->add_subcommand("topic", "create, list, inspect and delete topics");
  topic->set_help_flag("-h,--help", "show this text");
  topic->require_subcommand(1);
  topic->footer("Examples:\n  lightq topic create orders --type file\n  lightq topic list");
  add_topic_create(topic, parsed);
  add_topic_change(add_verb(topic, parsed, "set", "change a topic's settings",
                            "  lightq topic set orders --message-ttl 1m\n"
                            "  lightq topic set orders --message-ttl 0"),
                   parsed);
  auto name = std::make_shared<std::string>();
  auto group = std::make_shared<std::string>(protocol::default_group);
  CLI::App* list =
      add_verb(topic, parsed, "list", "list all topics", "  lightq topic list\n  lightq topic list --json");
  list->callback([&parsed] { parsed.command = [&parsed] { return run_topic_list(parsed.common); }; });
  CLI::App* info = add_verb(topic, parsed, "info", "show a topic's counters", "  lightq topic info orders");
  topic_argument(info, *name);
  info->callback(
      [&parsed, name] { parsed.command = [&parsed, name] { return run_topic_info(parsed.common, *name); }; });
  CLI::App* remove =
      add_verb(topic, parsed, "delete", "delete a topic and its messages", "  lightq topic delete orders");
  topic_argument(remove, *name);
  auto yes = std::make_shared<bool>(false);
  add_yes(remove, *yes);
  remove->callback([&parsed, name, yes] {
    parsed.command = [&parsed, name, yes] { return run_topic_delete(parsed.common, *name, *yes); };
  });
  CLI::App* ungroup = add_verb(
      topic, parsed, "delete-group",
      "delete an unused group, or an unused cursor of a consumer, so that it no longer holds the log",
      "  lightq topic delete-group orders default");
  topic_argument(ungroup, *name);
  ungroup->add_option("group", *group, "the group's name (default)")->type_name("GROUP");
  ungroup->callback([&parsed, name, group] {
    parsed.command = [&parsed, name, group] { return run_topic_delete_group(parsed.common, *name, *group); };
  });
  using What = TopicControl::What;
  add_topic_control(topic, parsed, What::pause, "pause",
                    "stop delivery until resume; producers and connections continue");
  add_topic_control(topic, parsed, What::resume, "resume", "continue delivery after a pause");
  add_topic_control(topic, parsed, What::purge, "purge",
                    "drop every stored message; with --group: move the group's cursor past the last message");
}

/// Adds a command with verbs of its own, which `add_verbs(parsed, add)` adds.
template <typename AddVerbs>
void add_family(CLI::App* app, Parsed& parsed, const char* name, const char* help, const char* examples,
                AddVerbs&& add_verbs) {
  CLI::App* const family = app->add_subcommand(name, help);
  family->set_help_flag("-h,--help", "show this text");
  family->require_subcommand(1);
  family->footer(std::string("Examples:\n") + examples);
  add_verbs(parsed, [&](const char* verb, const char* verb_help, const char* verb_examples) {
    return add_verb(family, parsed, verb, verb_help, verb_examples);
  });
}

/// Adds the families whose verbs have headers of their own.
void add_families(CLI::App* app, Parsed& parsed) {
  add_family(app, parsed, "group", "change the settings of a consumer group",
             "  lightq group set orders billing --max-attempts 5 --backoff 1s,10s,1m",
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
  add_family(app, parsed, "user", "add, remove and list users, their passwords and rights",
             "  lightq user add ann --produce 'orders.*'\n  lightq user list",
             [](Parsed& to, auto&& add) { add_user_verbs(to, add); });
}

/// Returns true if the flag was typed, and was not set by its variable.
bool is_typed(const CLI::App& verb, const std::string& name) {
  const CLI::Option* const option = verb.get_option_no_throw(name);
  return option != nullptr && std::ranges::find(verb.parse_order(), option) != verb.parse_order().end();
}
/// Resolves `--zmq` together with a flag that works without a session. `sessionless` is that flag, empty if
/// it was not given; `without` is its value. A typed flag wins over a variable.
void check_connection_flags(const CLI::App& verb, std::string& sessionless, bool& without,
                            ConnectionType& connection) {
  if (sessionless.empty() || connection != ConnectionType::zmq) return;
  const bool zmq_typed = is_typed(verb, "--zmq");
  if (zmq_typed == is_typed(verb, sessionless))
    throw CLI::ValidationError("--zmq", "applies to sessions; " + sessionless + " uses ZeroMQ anyway");
  if (!zmq_typed) {
    connection = ConnectionType::socket;
    return;
  }
  without = !without;
  sessionless.clear();
}

void add_produce(CLI::App* app, Parsed& parsed) {
  auto produce = std::make_shared<Produce>();
  CLI::App* verb =
      add_verb(app, parsed, "produce", "send lines of files or of standard input, or generated messages",
               "  lightq produce orders access.log\n  tail -F access.log | lightq produce orders\n"
               "  lightq produce orders -n 1M --size 1KiB --rate 10k");
  verb->alias("pub");
  topic_argument(verb, produce->topic);
  verb->add_option("files", produce->files, "files with a message a line; - is standard input (default)")
      ->type_name("FILE");
  auto* count = verb->add_option_function<std::string>(
      "-n,--count",
      [produce](const std::string& text) {
        const auto parsed_count = parse_count(text);
        if (!parsed_count) throw CLI::ValidationError("--count", "'" + text + "' is not a COUNT");
        produce->count = *parsed_count;
      },
      "generate this many messages; with files: send at most this many lines");
  count->envname("LIGHTQ_COUNT")->type_name("COUNT");
  unit_option(verb, "--size", produce->size_bytes, parse_size, "size of a generated message (100)", "SIZE");
  unit_option(verb, "--rate", produce->rate, parse_count, "messages a second (as fast as possible)", "RATE");
  unit_option(verb, "--timeout", produce->timeout, parse_wait,
              "give up after this time without progress; 0: never (30s)", "TIME");
  verb->add_flag_callback(
          "--no-wait", [produce] { produce->wait = false; },
          "do not wait until the broker has confirmed all messages")
      ->envname("LIGHTQ_NO_WAIT");
  add_connection_flags(
      verb, produce->plain, produce->connection,
      "send over a plain ZeroMQ socket: messages in transit are lost or sent twice if a broker dies",
      "send with confirms over a ZeroMQ socket");
  word_option<session::ConfirmLevel>(
      verb, "--confirm", produce->confirm,
      {{"received", session::ConfirmLevel::received}, {"flushed", session::ConfirmLevel::flushed}},
      "confirm a message when it is in the log (received) or on disk (flushed, default of durable topics)");
  add_division_options(verb, *produce);
  add_attribute_options(verb, *produce);
  auto texts = std::make_shared<DueTexts>();
  add_delay_options(verb, *produce, texts);
  verb->callback([&parsed, produce, texts, verb] {
    std::string sessionless = produce->plain ? "--plain" : !produce->wait ? "--no-wait" : "";
    check_connection_flags(*verb, sessionless, produce->plain ? produce->plain : produce->wait,
                           produce->connection);
    check_attribute_options(*produce, sessionless);
    check_delay_options(*produce, *texts, sessionless);
    const bool asked = verb->count("--count") + verb->count("--size") > 0;
    produce->generate = asked && produce->files.empty();
    if (produce->count == 0 && verb->count("--count") > 0)
      produce->files = {"/dev/null"}, produce->generate = false;
    parsed.command = [&parsed, produce] { return run_produce(parsed.common, *produce); };
  });
}

/// Adds `consume`, or `sub`; their default modes differ.
void add_consume(CLI::App* app, Parsed& parsed, const std::string& name, Mode mode) {
  auto consume = std::make_shared<Consume>();
  consume->mode = mode;
  const bool pull = mode == Mode::pull;
  CLI::App* verb = add_verb(
      app, parsed, name, pull ? "print a topic's messages" : "short for consume --mode sub",
      "  lightq " + name + " orders\n  lightq " + name + " orders --no-follow > orders.txt\n  lightq " +
          name + (pull ? " orders --mode sub" : " orders") + " --format json | jq .payload\n  lightq " +
          name +
          " orders --group billing --from 15m\n\nA message is acknowledged after it was printed. Messages "
          "that a stopped or killed consumer has not\nprinted go to another consumer of its group, or are "
          "delivered again later. After a broken connection\nor a restart of the broker some may be printed "
          "twice.");
  topic_argument(verb, consume->topic);
  add_consume_source(verb, *consume, pull);
  unit_option(verb, "-n,--count", consume->count, parse_count, "end after this many messages", "COUNT");
  verb->add_flag("--follow,!--no-follow", consume->follow,
                 "wait for more messages (default), or end when there are no more")
      ->envname("LIGHTQ_FOLLOW");
  add_consume_format(verb, *consume);
  unit_option(verb, "--timeout", consume->timeout, parse_wait, "end after TIME without a message", "TIME");
  verb->callback([&parsed, consume, verb] {
    std::string sessionless = consume->plain ? "--plain" : "";
    check_connection_flags(*verb, sessionless, consume->plain, consume->connection);
    for (const char* const of_session : {"--group", "--from"}) {
      if (consume->plain && verb->count(of_session) > 0)
        throw CLI::ValidationError(of_session, "not with --plain: plain sockets have no groups or cursors");
    }
    if (consume->plain && !consume->pattern.empty())
      throw CLI::ValidationError("--format",
                                 "a PATTERN does not work with --plain, which receives only payloads");
    if (parsed.common.json) {
      consume->format = Format::json;
      consume->pattern.clear();
    }
    if (consume->count == 0 && verb->count("--count") > 0) {
      parsed.command = [] { return exit_ok; };  // `--count 0`
      return;
    }
    parsed.command = [&parsed, consume] { return run_consume(parsed.common, *consume); };
  });
}

void add_peek(CLI::App* app, Parsed& parsed) {
  auto peek = std::make_shared<Peek>();
  CLI::App* verb = add_verb(app, parsed, "peek", "print stored messages without consuming them",
                            "  lightq peek orders\n  lightq peek orders --from last -n 3\n"
                            "  lightq peek orders --from 1000 --format '%o %k %p\\n'");
  topic_argument(verb, peek->topic);
  add_peek_options(verb, *peek);
  verb->callback(
      [&parsed, peek] { parsed.command = [&parsed, peek] { return run_peek(parsed.common, *peek); }; });
}

void add_others(CLI::App* app, Parsed& parsed) {
  add_peek(app, parsed);
  auto stats = std::make_shared<StatsRequest>();
  CLI::App* verb = add_verb(app, parsed, "stats", "show counters of a topic, of all topics, or of the broker",
                            "  lightq stats\n  lightq stats orders --watch\n  lightq stats --all --json");
  verb->add_option("topic", stats->topic, "the topic's name; without it: the broker")->type_name("TOPIC");
  flag(verb, "-a,--all", stats->all, "all topics on which you have a right")->excludes("topic");
  flag(verb, "-w,--watch", stats->watch, "repeat until ctrl-C");
  unit_option(verb, "--interval", stats->interval, parse_wait, "time between two updates (1s)", "TIME");
  verb->callback(
      [&parsed, stats] { parsed.command = [&parsed, stats] { return run_stats(parsed.common, *stats); }; });
  auto top = std::make_shared<TopRequest>();
  CLI::App* live =
      add_verb(app, parsed, "top", "show topics and groups, live; without a terminal: once", "  lightq top");
  unit_option(live, "--interval", top->interval, parse_wait, "time between two updates (1s)", "TIME");
  live->callback(
      [&parsed, top] { parsed.command = [&parsed, top] { return run_top(parsed.common, *top); }; });
  CLI::App* doctor =
      add_verb(app, parsed, "doctor", "look for faults of a broker and its machine, and say how to mend them",
               "  lightq doctor\n  lightq doctor --data-dir ./data --json");
  doctor->callback([&parsed] { parsed.command = [&parsed] { return run_doctor(parsed.common); }; });
  CLI::App* ping = add_verb(app, parsed, "ping", "test whether a broker answers", "  lightq ping");
  ping->callback([&parsed] { parsed.command = [&parsed] { return run_ping(parsed.common); }; });
  CLI::App* version = add_verb(app, parsed, "version", "show the versions of this program and of the broker",
                               "  lightq version");
  version->callback([&parsed] { parsed.command = [&parsed] { return run_version(parsed.common); }; });

  auto bench = std::make_shared<Bench>();
  CLI::App* measure =
      add_verb(app, parsed, "bench", "measure the rate and latency of messages through a running broker",
               "  lightq bench\n  lightq bench --type file --size 1KiB -n 500k\n"
               "  lightq bench --rate 20k -n 100k");
  text_option(measure, "--topic", bench->topic,
              "use this topic and consume its messages (default: a new topic, deleted at the end)", "TOPIC");
  word_option<BrokerType>(measure, "--type", bench->type,
                          {{"queue", BrokerType::queue},
                           {"file", BrokerType::file},
                           {"direct", BrokerType::direct},
                           {"queue_file", BrokerType::queue_file}},
                          "type of the topic (queue)");
  word_option<Mode>(measure, "--mode", bench->mode, {{"pull", Mode::pull}, {"sub", Mode::sub}},
                    "how to consume (pull)");
  unit_option(measure, "-n,--count", bench->count, parse_count, "messages (1M)", "COUNT");
  unit_option(measure, "--size", bench->size_bytes, parse_size, "size of a message, at least 16 (100)",
              "SIZE");
  unit_option(measure, "--rate", bench->rate, parse_count, "messages a second (as fast as possible)", "RATE");
  measure->callback(
      [&parsed, bench] { parsed.command = [&parsed, bench] { return run_bench(parsed.common, *bench); }; });
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
  add_others(&app, parsed);
  add_log(&app, parsed);
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
