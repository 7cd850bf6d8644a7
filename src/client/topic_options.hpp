/// The settings of topics among the flags of `lightq topic`. Included only by command_line.cpp, like
/// command_options.hpp. Layer: cli.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <lightq/base/limits.hpp>

#include "client/command_options.hpp"
#include "client/invocation.hpp"
#include "client/units.hpp"

namespace lightq::cli {

/// Parses the time to live of a topic's messages, up to ten years. 0: none.
inline std::optional<std::uint64_t> parse_topic_ttl(const std::string& text) {
  const auto span = parse_duration(text);
  if (!span || span->count() > limits::ttl_ms_max) return std::nullopt;
  return static_cast<std::uint64_t>(span->count());
}

/// Adds the options of `topic create` for the topic's settings.
inline void add_topic_settings(CLI::App* verb, TopicSettings& settings) {
  word_option<BrokerType>(verb, "--type", settings.broker_type,
                          {{"queue", BrokerType::queue},
                           {"file", BrokerType::file},
                           {"direct", BrokerType::direct},
                           {"queue_file", BrokerType::queue_file}},
                          "queue: in memory (default); file: on disk; direct: only to connected consumers; "
                          "queue_file: in memory, written to disk a little later");
  word_option<Overflow>(
      verb, "--overflow", settings.overflow,
      {{"block", Overflow::block}, {"reject", Overflow::reject}, {"drop_oldest", Overflow::drop_oldest}},
      "how a full log treats a new message (block: producers wait)");
  unit_option(verb, "--ring-bytes", settings.ring_bytes, parse_size,
              "queue, queue_file: memory of the messages (64MiB)", "SIZE");
  unit_option(verb, "--capacity-bytes", settings.capacity_bytes, parse_size,
              "file, queue_file: size at which --overflow applies", "SIZE");
  unit_option(verb, "--retention-bytes", settings.retention_bytes, parse_size,
              "file, queue_file: keep at least this many of the newest bytes", "SIZE");
  unit_option(
      verb, "--retention,--retention-ms", settings.retention_ms,
      [](const std::string& text) -> std::optional<std::int64_t> {
        const bool bare = text.find_first_not_of("0123456789.") == std::string::npos;
        const auto span = parse_duration(bare ? text + "ms" : text);
        return span ? std::optional(span->count()) : std::nullopt;
      },
      "file, queue_file: keep messages at least this long, such as 1h or 7d (a bare number is milliseconds)",
      "TIME");
  unit_option(verb, "--retention-messages", settings.retention_messages, parse_count,
              "file, queue_file: keep at least this many of the newest messages", "COUNT");
  flag(verb, "--retention-over-pending", settings.retention_over_pending,
       "file, queue_file: also remove messages that wait for a retry or are dead");
  unit_option(verb, "--segment-bytes", settings.segment_bytes, parse_size,
              "file, queue_file: size of one segment file (128MiB)", "SIZE");
  unit_option(verb, "--message-ttl", settings.message_ttl_ms, parse_topic_ttl,
              "all but direct: deliver no message that is older, such as 1m; 0: no limit (default)", "TIME");
  flag(verb, "--open", settings.open, "permit clients to join without credentials");
  flag(verb, "--encrypt-at-rest", settings.encrypt_at_rest,
       "file, queue_file: encrypt the files with the broker's storage key");
}

/// Adds the options of `topic set`.
inline void add_topic_change(CLI::App* verb, Parsed& parsed) {
  auto set = std::make_shared<TopicSet>();
  verb->add_option("topic", set->topic, "the topic's name")->required()->type_name("TOPIC");
  unit_option(verb, "--message-ttl", set->change.message_ttl_ms, parse_topic_ttl,
              "deliver no message that is older, stored ones included, such as 1m; 0: no limit", "TIME");
  verb->callback([&parsed, set] {
    if (set->change.empty()) throw CLI::ValidationError("topic set", "give at least one setting to change");
    parsed.command = [&parsed, set] { return run_topic_set(parsed.common, *set); };
  });
}

}  // namespace lightq::cli
