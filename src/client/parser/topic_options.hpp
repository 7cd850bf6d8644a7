/// The commands of `lightq topic`, with their flags. Included only by command_line.cpp, like
/// command_options.hpp. Layer: cli.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <lightq/base/limits.hpp>
#include <lightq/broker_control.hpp>

#include "client/invocation.hpp"
#include "client/parser/command_options.hpp"
#include "client/parser/verb.hpp"
#include "client/units.hpp"

namespace lightq::cli {

inline constexpr std::array<std::string_view, 9> topic_verbs = {
    "create", "set", "list", "info", "delete", "delete-group", "pause", "resume", "purge"};

/// Parses the time to live of a topic's messages, up to ten years. 0: none.
inline std::optional<std::uint64_t> parse_topic_ttl(const std::string& text) {
  const auto span = parse_duration(text);
  if (!span || span->count() > limits::ttl_ms_max) return std::nullopt;
  return static_cast<std::uint64_t>(span->count());
}

/// Parses a time for which messages are kept. A bare number is milliseconds.
inline std::optional<std::uint64_t> parse_retention(const std::string& text) {
  const bool bare = text.find_first_not_of("0123456789.") == std::string::npos;
  const auto span = parse_duration(bare ? text + "ms" : text);
  return span ? std::optional(static_cast<std::uint64_t>(span->count())) : std::nullopt;
}

/// Adds the options of `topic create` for the topic's settings.
inline void add_topic_settings(CLI::App* verb, TopicSettings& settings) {
  word_option<BrokerType>(verb, "--type", settings.broker_type,
                          {{"queue", BrokerType::queue},
                           {"file", BrokerType::file},
                           {"direct", BrokerType::direct},
                           {"queue_file", BrokerType::queue_file}},
                          "queue: in memory (default, unless the broker has a template); file: on disk; "
                          "direct: only to connected consumers; "
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
      verb, "--retention,--retention-ms", settings.retention_ms, parse_retention,
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

/// Returns the settings that the command line or the environment gives.
inline GivenSettings given_settings(const CLI::App& verb) {
  GivenSettings given;
  protocol::visit_topic_settings([&](std::string_view name, auto) {
    std::string option = name == "broker_type"      ? "type"
                         : name == "message_ttl_ms" ? "message-ttl"
                                                    : std::string(name);
    std::ranges::replace(option, '_', '-');
    if (verb.get_option("--" + option)->count() != 0) given.add(name);
  });
  return given;
}

/// Adds the options of `topic set`.
inline void add_topic_change(CLI::App* verb, Parsed& parsed) {
  auto set = std::make_shared<TopicSet>();
  verb->add_option("topic", set->topic, "the topic's name")->required()->type_name("TOPIC");
  unit_option(verb, "--message-ttl", set->change.message_ttl_ms, parse_topic_ttl,
              "deliver no message that is older, stored ones included, such as 1m; 0: no limit", "TIME");
  protocol::TopicChange& change = set->change;
  unit_option(verb, "--overflow", change.overflow, protocol::from_word<Overflow>,
              "how a full log treats a new message (block: producers wait)", "block|drop_oldest|reject");
  unit_option(verb, "--capacity-bytes", change.capacity_bytes, parse_size,
              "file, queue_file: size at which --overflow applies; 0: no limit", "SIZE");
  unit_option(verb, "--retention-bytes", change.retention_bytes, parse_size,
              "file, queue_file: keep at least this many of the newest bytes; 0: all", "SIZE");
  unit_option(verb, "--retention,--retention-ms", change.retention_ms, parse_retention,
              "file, queue_file: keep messages at least this long, such as 1h or 7d (a bare number is "
              "milliseconds); 0: for ever",
              "TIME");
  unit_option(verb, "--retention-messages", change.retention_messages, parse_count,
              "file, queue_file: keep at least this many of the newest messages; 0: all", "COUNT");
  const CLI::Option* const over_pending =
      verb->add_flag("--retention-over-pending,!--no-retention-over-pending", set->over_pending,
                     "file, queue_file: also remove messages that wait for a retry or are dead")
          ->envname(variable_of("--retention-over-pending"));
  verb->callback([&parsed, set, over_pending] {
    if (over_pending->count() > 0) set->change.retention_over_pending = set->over_pending;
    if (set->change.empty()) throw CLI::ValidationError("topic set", "give at least one setting to change");
    parsed.command = [&parsed, set] { return run_topic_set(parsed.common, *set); };
  });
}

inline void add_topic_create(CLI::App* topic, Parsed& parsed) {
  auto create = std::make_shared<TopicCreate>();
  CLI::App* verb = add_verb(
      topic, parsed, "create", "create a topic",
      "  lightq topic create orders --type file --retention 7d\n"
      "  lightq topic create ticks --ring-bytes 256MiB --overflow drop_oldest\n"
      "  lightq topic create jobs --admin-user lightq_admin --user alice --password-file secret.txt");
  topic_argument(verb, create->topic);
  add_topic_settings(verb, create->settings);
  verb->callback([&parsed, create, verb] {
    create->given = given_settings(*verb);
    parsed.command = [&parsed, create] { return run_topic_create(parsed.common, *create); };
  });
}

/// Adds `pause`, `resume` or `purge`, for a topic or one of its groups.
inline void add_topic_control(CLI::App* topic, Parsed& parsed, TopicControl::What what,
                              const std::string& name, const std::string& help) {
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

inline void add_topic(CLI::App* app, Parsed& parsed) {
  CLI::App* topic = app->add_subcommand("topic", "create, list, inspect and delete topics");
  topic->set_help_flag("-h,--help", "show this text");
  topic->require_subcommand(1);
  topic->footer("Examples:\n  lightq topic create orders --type file\n  lightq topic list");
  add_topic_create(topic, parsed);
  add_topic_change(
      add_verb(topic, parsed, "set", "change a topic's settings",
               "  lightq topic set orders --message-ttl 1m\n"
               "  lightq topic set orders --retention 7d --capacity-bytes 10GiB\n"
               "  lightq topic set orders --overflow reject\n\n"
               "The changes apply at once, also to stored messages, and survive restarts. The type "
               "of a topic, its ring, segment size,\nencryption and --open cannot change: create another "
               "topic for them."),
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

}  // namespace lightq::cli
