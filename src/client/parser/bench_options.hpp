/// The command `bench`. Included only by command_line.cpp, like command_options.hpp. Layer: cli.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "client/parser/command_options.hpp"
#include "client/parser/verb.hpp"
#include "client/units.hpp"

namespace lightq::cli {

/// Adds an option with one value or several, with commas between them. `parse`: returns an optional value.
template <typename Value, typename Parse>
void list_option(CLI::App* verb, const std::string& name, std::vector<Value>& values, Parse parse,
                 const std::string& help, const std::string& type) {
  verb->add_option_function<std::string>(
          name,
          [&values, parse, name, type](const std::string& text) {
            std::vector<Value> found;
            for (std::size_t begin = 0; begin <= text.size();) {
              const std::size_t end = std::min(text.find(',', begin), text.size());
              const auto value = parse(text.substr(begin, end - begin));
              if (!value)
                throw CLI::ValidationError(name, "'" + text.substr(begin, end - begin) + "' is not " +
                                                     forms_of(type) + "; several have commas between them");
              found.push_back(static_cast<Value>(*value));
              begin = end + 1;
            }
            values = found;
          },
          help)
      ->envname(variable_of(long_name(name)))
      ->type_name(type);
}

/// Parses the number of producers or consumers of a benchmark.
inline std::optional<std::uint64_t> parse_clients(const std::string& text) {
  constexpr std::uint64_t clients_max = 100;  // each has a thread
  const auto count = parse_count(text);
  return count && *count >= 1 && *count <= clients_max ? count : std::nullopt;
}

inline std::optional<session::ConfirmLevel> parse_level(const std::string& text) {
  if (text == "default") return session::ConfirmLevel::topics_default;
  if (text == "received") return session::ConfirmLevel::received;
  if (text == "flushed") return session::ConfirmLevel::flushed;
  return std::nullopt;
}

inline std::optional<BenchTransport> parse_transport(const std::string& text) {
  if (text == "plain") return BenchTransport::plain;
  if (text == "session") return BenchTransport::session;
  if (text == "zmq") return BenchTransport::zmq;
  return std::nullopt;
}

inline void add_bench(CLI::App* app, Parsed& parsed) {
  auto bench = std::make_shared<Bench>();
  CLI::App* measure =
      add_verb(app, parsed, "bench", "measure the rate and latency of messages through a running broker",
               "  lightq bench\n  lightq bench --type file --size 1KiB -n 500k\n"
               "  lightq bench --rate 20k -n 100k\n"
               "  lightq bench --producers 1,4 --transport plain,session -n 10k\n\n"
               "Each combination of values, with commas between them, is measured by itself. The rate is the "
               "highest that\n"
               "arrives; latencies, from send to receive, are measured at a fifth of it, or at --rate.");
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
  unit_option(measure, "-n,--count", bench->count, parse_count, "messages of each row (1M)", "COUNT");
  list_option(measure, "--producers", bench->producers, parse_clients, "producers, 1 to 100 (1)", "COUNT");
  list_option(measure, "--consumers", bench->consumers, parse_clients, "consumers, 1 to 100 (1)", "COUNT");
  list_option(
      measure, "--size", bench->sizes, [](const std::string& text) { return parse_size(text); },
      "size of a message, at least 16 (100)", "SIZE");
  list_option(
      measure, "--rate", bench->rates, [](const std::string& text) { return parse_count(text); },
      "messages a second of all producers; 0: as fast as possible (0)", "RATE");
  list_option(measure, "--transport", bench->transports, parse_transport,
              "plain ZeroMQ sockets, sessions, or sessions over ZeroMQ (plain)", "plain|session|zmq");
  list_option(measure, "--confirm", bench->confirms, parse_level,
              "sessions: when messages are confirmed (default: as the topic's type has it)",
              "default|received|flushed");
  text_option(measure, "--compare", bench->compare_file,
              "compare with an earlier output of  lightq bench --json", "FILE");
  text_option(measure, "--plot", bench->plot_file, "draw the latencies into this SVG image", "FILE");
  measure->callback(
      [&parsed, bench] { parsed.command = [&parsed, bench] { return run_bench(parsed.common, *bench); }; });
}

}  // namespace lightq::cli
