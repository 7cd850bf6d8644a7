/// The flags of `lightq delayed`, and those of `lightq produce` for delayed messages. Included only by
/// command_line.cpp, like command_options.hpp. Layer: cli.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <lightq/base/due.hpp>

#include "client/due_time.hpp"
#include "client/parser/command_options.hpp"
#include "client/parser/group_options.hpp"
#include "client/parser/log_options.hpp"
#include "client/units.hpp"

namespace lightq::cli {

inline constexpr std::array<std::string_view, 5> delayed_verbs = {"list", "show", "cancel", "hurry",
                                                                  "reschedule"};

/// Times as the user wrote them. They are parsed when all flags are known, because `--zone` may come last.
struct DueTexts {
  std::string deliver_at;
  std::string delay;
  std::string due_from;
  std::string due_until;
  std::string zone;
};

inline Timestamp time_now() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return {std::chrono::floor<std::chrono::microseconds>(now).count()};
}

/// Returns the time that the flag `name` states. Requires: is_time_zone(zone). Throws CLI::ValidationError.
inline Timestamp due_time_of(const char* name, const std::string& text, const std::string& zone) {
  const auto time = parse_due_time(text, zone, time_now());
  if (!time)
    throw CLI::ValidationError(name, "'" + text +
                                         "' is not a time, such as 2026-12-01T09:00, 2026-12-01T09:00:00Z "
                                         "or +10m");
  return *time;
}

/// Returns the due time that the texts state, as a record has it. Throws CLI::ValidationError.
inline std::int64_t due_of(const DueTexts& texts) {
  if (texts.delay.empty()) {
    const Timestamp time = due_time_of("--deliver-at", texts.deliver_at, texts.zone);
    if (is_due_too_far(time.us, time_now()))
      throw CLI::ValidationError("--deliver-at", "a message is due at most ten years (3,653 days) ahead");
    return time.us;
  }
  const auto span = parse_duration(texts.delay);
  if (!span) throw CLI::ValidationError("--delay", "'" + texts.delay + "' is not a TIME");
  if (span->count() > limits::delay_us_max / 1000)
    throw CLI::ValidationError("--delay", "a delay is at most ten years (3,653 days)");
  return -span->count() * 1000;
}

inline void add_zone(CLI::App* verb, DueTexts& texts) {
  const auto known_zone = [](const std::string& text) {
    return is_time_zone(text) ? std::optional(text) : std::nullopt;
  };
  unit_option(verb, "--zone", texts.zone, known_zone,
              "the time zone of times without a Z, such as Europe/Berlin (that of this machine)",
              "time zone that this machine knows");
  verb->get_option("--zone")->type_name("ZONE");
}

/// Adds the flags that state a due time.
inline void add_due(CLI::App* verb, DueTexts& texts) {
  CLI::Option* const at = text_option(
      verb, "--deliver-at", texts.deliver_at,
      "when it is due: 2026-12-01T09:00, with a Z in UTC; or +10m, which means in 10 minutes", "TIME");
  text_option(verb, "--delay", texts.delay, "time until it is due, counted by the broker", "TIME")
      ->excludes(at);
  add_zone(verb, texts);
}

/// Adds the flags of `produce` for delayed messages. Call check_delay_options in the verb's callback.
inline void add_delay_options(CLI::App* verb, Produce& produce, const std::shared_ptr<DueTexts>& texts) {
  const char* const group = "Later delivery";
  add_due(verb, *texts);
  for (const char* const name : {"--deliver-at", "--delay", "--zone"}) verb->get_option(name)->group(group);
  text_option(verb, "--id", produce.id, "the id of every message, by which it can be cancelled", "TEXT")
      ->group(group);
}

/// Sets the due time of the messages. `sessionless`: as for check_attribute_options.
inline void check_delay_options(Produce& produce, const DueTexts& texts, const std::string& sessionless) {
  const bool is_delayed = !texts.deliver_at.empty() || !texts.delay.empty();
  if (produce.id.size() > limits::message_id_bytes_max)
    throw CLI::ValidationError(
        "--id", "an id has at most " + std::to_string(limits::message_id_bytes_max) + " bytes");
  if (is_delayed) produce.due = due_of(texts);
  if (!sessionless.empty() && (is_delayed || !produce.id.empty()))
    throw CLI::ValidationError(sessionless,
                               "does not work with --delay, --deliver-at and --id, which need a session");
}

/// Adds the flags that select delayed messages.
inline void add_delayed_filter(CLI::App* verb, DelayedCommand& delayed, DueTexts& texts) {
  verb->add_option_function<std::string>(
          "--id",
          [&delayed](const std::string& text) {
            if (text.empty() || text.size() > limits::message_id_bytes_max)
              throw CLI::ValidationError(
                  "--id", "an id has 1 to " + std::to_string(limits::message_id_bytes_max) + " bytes");
            delayed.filter.id = text;
          },
          "only messages with exactly this id")
      ->envname(variable_of("--id"))
      ->type_name("TEXT");
  unit_option(verb, "--numbers", delayed.filter.numbers, parse_offsets,
              "only these messages, such as 5,7,10-20", "NUMBERS");
  text_option(verb, "--due-from", texts.due_from,
              "only messages that are due then or later: a time as for produce --deliver-at", "TIME");
  text_option(verb, "--due-until", texts.due_until, "only messages that are due before then", "TIME");
}

/// Sets the parts of the filter that are times. Throws CLI::ValidationError.
inline void read_due_filter(DelayedCommand& delayed, const DueTexts& texts) {
  if (!texts.due_from.empty())
    delayed.filter.due_from = due_time_of("--due-from", texts.due_from, texts.zone);
  if (!texts.due_until.empty())
    delayed.filter.due_until = due_time_of("--due-until", texts.due_until, texts.zone);
}

/// Returns the due time that the texts give. Throws if they give none.
inline auto needed_due_of(const DueTexts& texts) {
  if (texts.deliver_at.empty() && texts.delay.empty())
    throw CLI::ValidationError("reschedule", "give --deliver-at or --delay");
  return due_of(texts);
}

/// Adds the verbs of `delayed`. `add`: as for add_group_verbs.
template <typename Add>
void add_delayed_verbs(Parsed& parsed, Add&& add) {
  using Run = int (*)(const Common&, const DelayedCommand&);
  struct Made {
    CLI::App* verb;
    std::shared_ptr<DelayedCommand> delayed = std::make_shared<DelayedCommand>();
    std::shared_ptr<DueTexts> texts = std::make_shared<DueTexts>();
  };
  // `finish(made)` checks the options and completes the command.
  const auto make = [&](const char* name, Run run, const char* help, const char* examples, auto finish) {
    Made made{add(name, help, examples)};
    made.verb->add_option("topic", made.delayed->topic, "the topic's name")->required()->type_name("TOPIC");
    made.verb->callback([&parsed, made, run, finish] {
      read_due_filter(*made.delayed, *made.texts);
      finish(made);
      parsed.command = [&parsed, delayed = made.delayed, run] { return run(parsed.common, *delayed); };
    });
    return made;
  };
  const auto filtered = [&](const char* name, Run run, const char* help, const char* examples, auto finish) {
    const Made made = make(name, run, help, examples, finish);
    add_delayed_filter(made.verb, *made.delayed, *made.texts);
    return made;
  };
  const auto nothing = [](const Made&) {};
  const Made list = filtered("list", run_delayed_list, "list delayed messages by the time when they are due",
                             "  lightq delayed list reminders\n"
                             "  lightq delayed list reminders --due-until +1h --json",
                             nothing);
  add_zone(list.verb, *list.texts);
  unit_option(list.verb, "-n,--count", list.delayed->count, parse_count, "at most this many (100)", "COUNT");
  const Made show =
      make("show", run_delayed_show, "show a delayed message: when it is due, its id, key and payload",
           "  lightq delayed show reminders 17", nothing);
  show.verb->add_option("number", show.delayed->number, "the number of the message, as list shows it")
      ->required()
      ->type_name("NUMBER");

  const auto needs_filter = [](const Made& made) {
    if (made.delayed->filter == DelayedFilter() && !made.delayed->all)
      throw CLI::ValidationError(made.verb->get_name(), "name messages, or give --all for all that wait");
  };
  const auto changing = [&](const char* name, Run run, const char* help, const char* examples, auto finish) {
    const Made made = filtered(name, run, help, examples, finish);
    // A variable that is set for `stats --all` must not cancel anything.
    made.verb->add_flag("--all,--all-delayed", made.delayed->all, "all messages that wait")
        ->envname("LIGHTQ_ALL_DELAYED");
    flag(made.verb, "--preview", made.delayed->preview, "only count the messages");
    return made;
  };
  const Made cancel = changing("cancel", run_delayed_cancel, "remove delayed messages for good",
                               "  lightq delayed cancel reminders --id 'order 7'\n"
                               "  lightq delayed cancel reminders --numbers 17,20-29 --preview",
                               needs_filter);
  add_zone(cancel.verb, *cancel.texts);
  const Made hurry = changing("hurry", run_delayed_hurry, "deliver delayed messages now",
                              "  lightq delayed hurry reminders --id 'order 7'", needs_filter);
  add_zone(hurry.verb, *hurry.texts);
  const Made move = changing("reschedule", run_delayed_reschedule, "give delayed messages another time",
                             "  lightq delayed reschedule reminders --id 'order 7' --deliver-at "
                             "2026-12-01T09:00 --zone Europe/Berlin\n"
                             "  lightq delayed reschedule reminders --numbers 17 --delay 1h",
                             [needs_filter](const Made& made) {
                               needs_filter(made);
                               made.delayed->due = needed_due_of(*made.texts);
                             });
  add_due(move.verb, *move.texts);
}

}  // namespace lightq::cli
