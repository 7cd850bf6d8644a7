/// The commands `produce`, `consume`, `sub`, `peek` and `trace`. Included only by command_line.cpp, like
/// command_options.hpp. Layer: cli.
#pragma once

#include <algorithm>
#include <memory>
#include <string>

#include "client/parser/command_options.hpp"
#include "client/parser/delayed_options.hpp"
#include "client/parser/message_options.hpp"
#include "client/parser/verb.hpp"
#include "client/units.hpp"

namespace lightq::cli {

/// Returns true if the flag was typed, and was not set by its variable.
inline bool is_typed(const CLI::App& verb, const std::string& name) {
  const CLI::Option* const option = verb.get_option_no_throw(name);
  return option != nullptr && std::ranges::find(verb.parse_order(), option) != verb.parse_order().end();
}

/// Resolves `--zmq` together with a flag that works without a session. `sessionless` is that flag, empty if
/// it was not given; `without` is its value. A typed flag wins over a variable.
inline void check_connection_flags(const CLI::App& verb, std::string& sessionless, bool& without,
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

inline void add_produce(CLI::App* app, Parsed& parsed) {
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
inline void add_consume(CLI::App* app, Parsed& parsed, const std::string& name, Mode mode) {
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

inline void add_peek(CLI::App* app, Parsed& parsed) {
  auto peek = std::make_shared<Peek>();
  CLI::App* verb = add_verb(app, parsed, "peek", "print stored messages without consuming them",
                            "  lightq peek orders\n  lightq peek orders --from last -n 3\n"
                            "  lightq peek orders --from 1000 --format '%o %k %p\\n'");
  topic_argument(verb, peek->topic);
  add_peek_options(verb, *peek);
  verb->callback(
      [&parsed, peek] { parsed.command = [&parsed, peek] { return run_peek(parsed.common, *peek); }; });
}

inline void add_trace(CLI::App* app, Parsed& parsed) {
  auto asked = std::make_shared<TraceRequest>();
  CLI::App* verb = add_verb(
      app, parsed, "trace", "show the states of one message",
      "  lightq trace orders 1042\n  lightq trace orders 1042 --json | jq .groups\n\n"
      "States in a group: ready, in_flight, retrying, parked, dead_waiting, dead_letter, done, expired,\n"
      "skipped (by a seek or purge), before_group, lost. It changes nothing.");
  topic_argument(verb, asked->topic);
  verb->add_option_function<std::string>(
          "offset",
          [asked](const std::string& text) {
            const auto offset = parse_offset(text);
            if (!offset) throw CLI::ValidationError("offset", "'" + text + "' is not an OFFSET");
            asked->offset = *offset;
          },
          "the message's offset")
      ->type_name("OFFSET")
      ->required();
  verb->callback(
      [&parsed, asked] { parsed.command = [&parsed, asked] { return run_trace(parsed.common, *asked); }; });
}

}  // namespace lightq::cli
