/// Options of `produce`, `consume` and `peek` for messages and connections. Included only by
/// command_line.cpp. Layer: cli.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <lightq/base/attributes.hpp>

#include "client/invocation.hpp"
#include "client/message_template.hpp"
#include "client/parser/command_options.hpp"
#include "client/parser/log_options.hpp"
#include "client/place.hpp"
#include "client/units.hpp"

namespace lightq::cli {

/// Adds --ttl, the time to live of every message.
inline void add_ttl_option(CLI::App* verb, Timeout& ttl) {
  unit_option(
      verb, "--ttl", ttl,
      [](const std::string& text) {
        const auto span = parse_duration(text);
        return span && span->count() > 0 && span->count() <= limits::ttl_ms_max ? span : std::nullopt;
      },
      "the time to live of every message, such as 1m: after it no consumer receives the message", "TIME");
}

/// Adds the options of `produce` for keys, headers, time to live and compression.
inline void add_attribute_options(CLI::App* verb, Produce& produce) {
  const std::string group = "Keys, headers, compression";
  text_option(verb, "--key", produce.key, "the key of every message", "KEY")->group(group);
  text_option(
      verb, "--key-separator", produce.key_separator,
      "the part of a line before the first such text is the key of its message; a line without it has no key",
      "TEXT")
      ->group(group);
  verb->add_option_function<std::vector<std::string>>(
          "--header",
          [&produce](const std::vector<std::string>& pairs) {
            for (const std::string& pair : pairs) {
              const std::size_t at = pair.find('=');
              if (at == 0 || at == std::string::npos)
                throw CLI::ValidationError("--header", "'" + pair + "' is not NAME=VALUE");
              produce.headers.emplace_back(pair.substr(0, at), pair.substr(at + 1));
            }
          },
          "a header of every message; may be given several times")
      ->allow_extra_args(false)  // each takes one value: the next word may be the topic
      ->envname("LIGHTQ_HEADER")
      ->type_name("NAME=VALUE")
      ->group(group);
  add_ttl_option(verb, produce.ttl);
  unit_option(verb, "--compression", produce.compression, codec_of,
              "compress batches if that makes them shorter (none)", "none|lz4|zstd");
}

/// Returns the byte that `--delimiter` names: a character, or \\n, \\t, \\r or \\0.
inline std::optional<char> parse_delimiter(const std::string& text) {
  if (text.size() == 1) return text[0];
  const std::map<std::string, char> escapes = {{"\\n", '\n'}, {"\\t", '\t'}, {"\\r", '\r'}, {"\\0", '\0'}};
  const auto found = escapes.find(text);
  return found == escapes.end() ? std::nullopt : std::optional(found->second);
}

/// Adds the options of `produce` that divide files into messages.
inline void add_division_options(CLI::App* verb, Produce& produce) {
  CLI::Option* const whole =
      flag(verb, "--file-per-message", produce.whole_files, "each file is a message, with its line ends");
  CLI::Option* const null = verb->add_flag_callback(
      "-0,--null", [&produce] { produce.line_end = '\0'; }, "a zero byte ends a message, not a line end");
  null->envname("LIGHTQ_NULL");
  CLI::Option* const delimiter =
      unit_option(verb, "--delimiter", produce.line_end, parse_delimiter,
                  "this character ends a message, not a line end; also \\t, \\r, \\0", "CHARACTER");
  whole->excludes(null)->excludes(delimiter);
  null->excludes(delimiter);
}

/// Checks the limits of keys and headers, and that there is a session for them. `sessionless`: the given
/// option that excludes sessions, such as `--plain`; empty if there is none.
inline void check_attribute_options(const Produce& produce, const std::string& sessionless) {
  if (!sessionless.empty() && produce.has_attributes())
    throw CLI::ValidationError(
        sessionless, "does not work with keys, headers, --ttl or compression, which need a session");
  std::vector<Header> headers;
  for (const auto& [name, value] : produce.headers) headers.push_back({name, value});
  const Result<void> valid =
      Attributes{.key = produce.key, .headers = headers, .ttl = produce.ttl}.check_for_producer();
  if (!valid)
    throw CLI::ValidationError(produce.headers.empty() ? "--key" : "--header", valid.error().message);
}

/// Adds --plain and --zmq, which exclude each other.
inline void add_connection_flags(CLI::App* verb, bool& plain, ConnectionType& connection,
                                 const std::string& plain_help, const std::string& zmq_help) {
  flag(verb, "--plain", plain, plain_help);
  verb->add_flag_callback(
          "--zmq", [&connection] { connection = ConnectionType::zmq; }, zmq_help)
      ->envname("LIGHTQ_ZMQ");
}

/// Adds an option that names a message.
inline void place_option(CLI::App* verb, const char* name, std::optional<session::Place>& place,
                         const char* help) {
  unit_option(
      verb, name, place,
      [](const std::string& text) {
        const auto now = std::chrono::system_clock::now().time_since_epoch();
        return parse_place(text, Timestamp{std::chrono::floor<std::chrono::microseconds>(now).count()});
      },
      help, "first|next|last|OFFSET|TIME");
}

/// Adds the options that select the messages for `consume`.
inline void add_consume_source(CLI::App* verb, Consume& consume, bool pull) {
  word_option<Mode>(verb, "--mode", consume.mode, {{"pull", Mode::pull}, {"sub", Mode::sub}},
                    std::string("pull: the consumers of a group share its messages; sub: each consumer gets "
                                "every message from now on (") +
                        (pull ? "pull" : "sub") + ")");
  text_option(verb, "--group", consume.group,
              "pull: the group (default); sub: keep the cursor under this name, and continue there", "NAME");
  place_option(
      verb, "--from", consume.from,
      "where a new group or cursor begins (pull: first, the oldest message; sub: next, new messages only); "
      "TIME: 2026-11-22, 2026-11-22T04:00Z, or 15m, which means 15 minutes ago");
  add_connection_flags(verb, consume.plain, consume.connection,
                       "receive over a plain ZeroMQ socket: messages sent to a consumer are lost if it dies",
                       "receive and acknowledge over a ZeroMQ socket");
}

/// Adds the options of `consume` for printing messages.
inline void add_consume_format(CLI::App* verb, Consume& consume) {
  verb->add_option_function<std::string>(
          "--format",
          [&consume](const std::string& text) {
            const std::map<std::string, Format> words = {
                {"raw", Format::raw}, {"json", Format::json}, {"hex", Format::hex}};
            const auto found = words.find(text);
            if (found != words.end()) {
              consume.format = found->second;
            } else if (text.find('%') != std::string::npos && MessageTemplate::parse(text)) {
              consume.pattern = text;
            } else {
              throw CLI::ValidationError("--format",
                                         "'" + text + "' is not one of raw|json|hex, and not a PATTERN");
            }
          },
          "raw: the payload and a line end (default); json: an object on each line; hex; or a PATTERN with "
          "%o offset, %t time, %s size, %k key, %h headers, %p payload (%e: on one line), \\n, \\t, such as "
          "'%o %k %p\\n'")
      ->envname("LIGHTQ_FORMAT")
      ->type_name("raw|json|hex|PATTERN");
  add_raw_force(verb, consume.force);
}

/// Adds the options of `peek`.
inline void add_peek_options(CLI::App* verb, Peek& peek) {
  verb->add_option_function<std::string>(
          "--from",
          [&peek](const std::string& text) {
            peek.newest = text == "last";
            peek.from.reset();
            if (peek.newest || text == "first") return;
            peek.from = parse_offset(text);
            if (!peek.from)
              throw CLI::ValidationError("--from", "'" + text + "' is not first, last or an OFFSET");
          },
          "where to begin: first, the oldest message (default); last, the newest --count messages")
      ->envname("LIGHTQ_FROM")
      ->type_name("first|last|OFFSET");
  unit_option(verb, "-n,--count", peek.count, parse_count, "how many messages (10)", "COUNT");
  verb->add_option_function<std::string>(
          "--format",
          [&peek](const std::string& text) {
            if (!MessageTemplate::parse(text))
              throw CLI::ValidationError("--format",
                                         "'" + text + "' is not one of text|raw|json|hex, and not a PATTERN");
            peek.format = text;
          },
          "text: offset, time, size and payload (default); raw, json, hex; or a PATTERN as for consume")
      ->envname("LIGHTQ_FORMAT")
      ->type_name("text|raw|json|hex|PATTERN");
  add_raw_force(verb, peek.force);
}

}  // namespace lightq::cli
