/// The flags of `lightq group` and `lightq dlq`. Included only by command_line.cpp, like command_options.hpp.
/// Layer: cli.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/parser/command_options.hpp"
#include "client/parser/log_options.hpp"
#include "client/place.hpp"
#include "client/units.hpp"

namespace lightq::cli {

inline constexpr std::array<std::string_view, 4> group_verbs = {"list", "info", "set", "reset"};
inline constexpr std::array<std::string_view, 4> dead_verbs = {"list", "show", "retry", "purge"};

/// Returns the milliseconds of a time span that the broker stores; nothing if it is too long.
inline std::optional<std::uint32_t> stored_ms(const std::string& text) {
  const auto span = parse_duration(text);
  if (!span || span->count() > std::int64_t{UINT32_MAX}) return std::nullopt;
  return static_cast<std::uint32_t>(span->count());
}

/// Parses a count as parse_count does; returns nothing above 2^32 - 1.
inline std::optional<std::uint32_t> parse_small_count(const std::string& text) {
  const auto count = parse_count(text);
  if (!count || *count > UINT32_MAX) return std::nullopt;
  return static_cast<std::uint32_t>(*count);
}

/// Parses `1s,10s,1m`, or `none`.
inline std::optional<std::vector<std::uint32_t>> parse_backoff(const std::string& text) {
  std::vector<std::uint32_t> steps;
  if (text == "none") return steps;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const auto step = stored_ms(text.substr(at, end - at));
    if (!step) return std::nullopt;
    steps.push_back(*step);
    at = end + 1;
  }
  return steps.size() <= GroupSettings::backoff_steps_max ? std::optional(steps) : std::nullopt;
}

/// Parses `5,7,10-20`, where the last offset is included.
inline std::optional<std::vector<OffsetRange>> parse_offsets(const std::string& text) {
  std::vector<OffsetRange> ranges;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string part = text.substr(at, end - at);
    const std::size_t dash = part.find('-');
    const auto first = parse_offset(part.substr(0, dash));
    const auto last = dash == std::string::npos ? first : parse_offset(part.substr(dash + 1));
    if (!first || !last || *last < *first || *last == UINT64_MAX) return std::nullopt;
    ranges.push_back({{*first}, {*last + 1}});
    at = end + 1;
  }
  return ranges;
}

/// Parses a time in UTC, or a time span before now, as parse_place does. Returns milliseconds since 1970.
inline std::optional<std::uint64_t> parse_death_time(const std::string& text) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const Timestamp us{std::chrono::duration_cast<std::chrono::microseconds>(now).count()};
  const auto place = parse_place(text, us);
  if (!place || place->from != session::From::time) return std::nullopt;
  return place->value / 1000;
}

/// Adds the verbs `list` and `info` of `group`.
template <typename Add>
void add_group_views(Parsed& parsed, Add&& add) {
  auto view = std::make_shared<GroupView>();
  CLI::App* const list = add("list", "list the groups and cursors of a topic, and how far each is",
                             "  lightq group list orders\n  lightq group list orders --json");
  list->add_option("topic", view->topic, "the topic's name")->required()->type_name("TOPIC");
  list->callback(
      [&parsed, view] { parsed.command = [&parsed, view] { return run_group_list(parsed.common, *view); }; });
  CLI::App* const info = add("info", "show the position, the counters and the settings of a group",
                             "  lightq group info orders billing");
  info->add_option("topic", view->topic, "the topic's name")->required()->type_name("TOPIC");
  info->add_option("group", view->group, "the group's name")->required()->type_name("GROUP");
  info->callback(
      [&parsed, view] { parsed.command = [&parsed, view] { return run_group_info(parsed.common, *view); }; });
}

/// Parses `earliest`, `latest`, or a place that parse_place reads, but not the last message.
inline std::optional<GroupPlace> parse_group_place(const std::string& text) {
  using From = GroupPlace::From;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const Timestamp us{std::chrono::duration_cast<std::chrono::microseconds>(now).count()};
  const std::string word = text == "earliest" ? "first" : text == "latest" ? "next" : text;
  const auto place = parse_place(word, us);
  if (!place) return std::nullopt;
  switch (place->from) {
    case session::From::first: return GroupPlace{From::first};
    case session::From::next: return GroupPlace{From::next};
    case session::From::last: return std::nullopt;
    case session::From::offset: return GroupPlace{From::offset, place->value};
    case session::From::time: return GroupPlace{From::time, place->value / 1000};
  }
  return std::nullopt;
}

/// Adds the verb `reset` of `group`.
template <typename Add>
void add_group_reset(Parsed& parsed, Add&& add) {
  auto reset = std::make_shared<GroupReset>();
  CLI::App* const verb =
      add("reset", "move a group to an offset, a time, or an end of the log",
          "  lightq group reset orders billing --to earliest --dry-run\n"
          "  lightq group reset orders billing --to 2026-11-22T04:00:00Z\n"
          "  lightq group reset orders billing --to 1h --yes\n"
          "  lightq group reset orders billing --to 1017\n\n"
          "Consumers stay connected; the messages that they have are taken back from them. "
          "Messages that wait for a\nretry or are dead are ordinary messages again, behind "
          "the new position.");
  verb->add_option("topic", reset->topic, "the topic's name")->required()->type_name("TOPIC");
  verb->add_option("group", reset->group, "the group's name")->required()->type_name("GROUP");
  unit_option(
      verb, "--to,--reset-to", reset->to, parse_group_place,
      "earliest: the oldest kept message; latest: behind the newest one; or an offset, a time in UTC, or "
      "15m for 15 minutes ago",
      "earliest|latest|OFFSET|TIME")
      ->required();
  flag(verb, "--dry-run", reset->preview, "only say how many messages this would be");
  add_yes(verb, reset->yes);
  verb->callback([&parsed, reset] {
    parsed.command = [&parsed, reset] { return run_group_reset(parsed.common, *reset); };
  });
}

/// Adds the verbs of `group`. `add(name, help, examples)` makes a verb with the flags that all verbs have.
template <typename Add>
void add_group_verbs(Parsed& parsed, Add&& add) {
  add_group_views(parsed, add);
  add_group_reset(parsed, add);
  auto set = std::make_shared<GroupSet>();
  CLI::App* const verb =
      add("set", "change the rules for messages that fail; the group need not exist yet",
          "  lightq group set orders billing --max-attempts 5 --backoff 1s,10s,1m\n"
          "  lightq group set orders billing --dead-letter-topic orders.dead --dead-letter-expired\n"
          "  lightq group set orders billing --processing-timeout 2m --pause-when-failing");
  verb->add_option("topic", set->topic, "the topic's name")->required()->type_name("TOPIC");
  verb->add_option("group", set->group, "the group's name")->required()->type_name("GROUP");
  GroupChange& change = set->change;
  unit_option(verb, "--max-attempts", change.max_attempts, parse_small_count,
              "failures after which a message is dead; 0: no limit", "COUNT");
  unit_option(verb, "--backoff", change.backoff_ms, parse_backoff,
              "time to the next delivery after the first, second, ... failure; the last one repeats; or none",
              "TIME,...");
  text_option(verb, "--dead-letter-topic", set->target, "the topic that receives dead messages", "TOPIC");
  verb->add_flag("--park", set->parks, "no dead-letter topic: dead messages stay in the group")
      ->envname(variable_of("--park"))
      ->excludes("--dead-letter-topic");
  unit_option(verb, "--dead-waiting-max", change.dead_waiting_max, parse_small_count,
              "dead messages that may wait for the dead-letter topic before the group pauses (10000)",
              "COUNT");
  verb->add_option_function<std::string>(
          "--processing-timeout",
          [set](const std::string& text) {
            set->change.default_processing_timeout = text == "default";
            if (text == "default") return;
            set->change.processing_timeout_ms = stored_ms(text);
            if (!set->change.processing_timeout_ms)
              throw CLI::ValidationError("--processing-timeout", "'" + text + "' is not a TIME");
          },
          "time for a message from its start; 0: no limit; default: the broker's setting")
      ->envname(variable_of("--processing-timeout"))
      ->type_name("TIME");
  const CLI::Option* const pauses =
      verb->add_flag("--pause-when-failing,!--no-pause-when-failing", set->pauses,
                     "pause the group when most of its deliveries end dead")
          ->envname(variable_of("--pause-when-failing"));
  const CLI::Option* const letters =
      verb->add_flag("--dead-letter-expired,!--no-dead-letter-expired", set->letters,
                     "move messages to the dead-letter topic, too, that expire before they are processed")
          ->envname(variable_of("--dead-letter-expired"));
  verb->callback([&parsed, set, pauses, letters] {
    if (letters->count() > 0) set->change.dead_letter_expired = set->letters;
    if (pauses->count() > 0) set->change.pause_when_failing = set->pauses;
    if (!set->target.empty()) set->change.dead_letter_topic = set->target;
    if (set->parks) set->change.dead_letter_topic = std::string();
    if (set->change.empty())
      throw CLI::ValidationError("group set",
                                 "give at least one setting to change; --park removes the dead-letter topic");
    parsed.command = [&parsed, set] { return run_group_set(parsed.common, *set); };
  });
}

/// Adds the options that select dead messages. `state_help`: the help of `--state`.
inline void add_dead_filter(CLI::App* verb, DeadCommand& dead, const char* state_help) {
  verb->add_option_function<std::string>(
          "--cause",
          [&dead](const std::string& text) {
            const auto cause = protocol::from_word<DeadCause>(text);
            if (!cause)
              throw CLI::ValidationError("--cause", "'" + text + "' is not one of attempts|rejected|expired");
            dead.filter.cause = cause;
          },
          "only messages that died of this")
      ->envname(variable_of("--cause"))
      ->type_name("attempts|rejected|expired");
  const auto time_option = [&](const char* name, std::optional<std::uint64_t>& ms, const char* help) {
    verb->add_option_function<std::string>(
            name,
            [name, &ms](const std::string& text) {
              ms = parse_death_time(text);
              if (!ms) throw CLI::ValidationError(name, "'" + text + "' is neither a time in UTC nor a TIME");
            },
            help)
        ->envname(variable_of(name))
        ->type_name("TIME");
  };
  time_option("--failed-since", dead.filter.failed_since_ms,
              "only messages that died then or later: 2026-11-22T04:00:00Z, or 15m for 15 minutes ago");
  time_option("--failed-until", dead.filter.failed_until_ms, "only messages that died before then");
  verb->add_option("--key", dead.filter.key, "only messages with exactly this key; '': those without a key")
      ->envname(variable_of("--key"))
      ->type_name("TEXT");
  unit_option(verb, "--offsets", dead.filter.ranges, parse_offsets, "only these messages, such as 5,7,10-20",
              "OFFSETS");
  verb->add_option_function<std::string>(
          "--state",
          [&dead](const std::string& text) {
            const auto state = protocol::from_word<DeadState>(text);
            if (!state)
              throw CLI::ValidationError("--state", "'" + text + "' is not one of parked|dead_waiting");
            dead.filter.state = state;
          },
          state_help)
      ->envname(variable_of("--state"))
      ->type_name("parked|dead_waiting");
}

/// Adds the verbs of `dlq`. `add`: as for add_group_verbs.
template <typename Add>
void add_dead_verbs(Parsed& parsed, Add&& add) {
  using Run = int (*)(const Common&, const DeadCommand&);
  const auto verb = [&](const char* name, Run run, const char* help, const char* examples) {
    auto dead = std::make_shared<DeadCommand>();
    CLI::App* const made = add(name, help, examples);
    made->add_option("topic", dead->topic, "the topic's name")->required()->type_name("TOPIC");
    text_option(made, "--group", dead->group,
                "the group that keeps the dead messages; without it: the topic is a dead-letter topic",
                "NAME");
    made->callback([&parsed, dead, run] {
      parsed.command = [&parsed, dead, run] { return run(parsed.common, *dead); };
    });
    return std::pair(made, dead.get());
  };
  const auto [list, listed] = verb("list", run_dead_list, "list dead messages: why, how often, since when",
                                   "  lightq dlq list orders --group billing\n"
                                   "  lightq dlq list orders --group billing --cause rejected --json");
  add_dead_filter(list, *listed, "only messages in this state");
  unit_option(list, "-n,--count", listed->count, parse_count, "at most this many (100)", "COUNT");
  const auto [show, shown] = verb("show", run_dead_show, "show a dead message and why it is dead",
                                  "  lightq dlq show orders 1017 --group billing");
  show->add_option("offset", shown->offset, "the offset of the message, as list shows it")
      ->required()
      ->type_name("OFFSET");
  const auto [retry, retried] =
      verb("retry", run_dead_retry, "deliver dead messages again, as if they had never failed",
           "  lightq dlq retry orders --group billing --preview\n"
           "  lightq dlq retry orders --group billing --offsets 1017,1020-1029");
  const char* const parked_unless = "only messages in this state; without it: parked ones";
  add_dead_filter(retry, *retried, parked_unless);
  flag(retry, "--preview", retried->preview, "only count the messages");
  const auto [purge, purged] = verb("purge", run_dead_purge, "give dead messages up for good",
                                    "  lightq dlq purge orders --group billing --cause rejected --preview\n"
                                    "  lightq dlq purge orders --group billing --cause rejected");
  add_dead_filter(purge, *purged, parked_unless);
  flag(purge, "--preview", purged->preview, "only count the messages");
}

}  // namespace lightq::cli
