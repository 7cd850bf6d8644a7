/// The flags of `lightq schedule`. Included only by command_line.cpp, like command_options.hpp. Layer: cli.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "client/parser/command_options.hpp"
#include "client/parser/message_options.hpp"
#include "client/units.hpp"

namespace lightq::cli {

inline constexpr std::array<std::string_view, 6> schedule_verbs = {"set",   "list",   "show",
                                                                   "pause", "resume", "remove"};

/// Adds the options of `schedule set` for the rule and the message.
inline void add_schedule_settings(CLI::App* verb, ScheduleCommand& schedule) {
  ScheduleSettings& settings = schedule.settings;
  verb->add_option("payload", schedule.payload, "the message's payload; or --file")->type_name("PAYLOAD");
  text_option(verb, "--cron", settings.cron,
              "when: minute, hour, day of the month, month, day of the week, such as '0 9 * * MON-FRI'",
              "RULE")
      ->required();
  text_option(verb, "--zone", settings.zone, "the time zone of the rule, such as Europe/Berlin (UTC)",
              "ZONE");
  word_option<MissedFirings>(verb, "--missed", settings.missed,
                             {{"skip", MissedFirings::skip}, {"once", MissedFirings::once}},
                             "times that pass while the broker is down: leave them out (skip, default), or "
                             "publish the last one after the start (once)");
  text_option(verb, "--file", schedule.file, "the file with the payload; - is standard input", "FILE");
  text_option(verb, "--key", settings.key, "the message's key", "KEY");
  add_ttl_option(verb, schedule.ttl);
  verb->add_option_function<std::vector<std::string>>(
          "--header",
          [&settings](const std::vector<std::string>& pairs) {
            for (const std::string& pair : pairs) {
              const std::size_t at = pair.find('=');
              if (at == 0 || at == std::string::npos)
                throw CLI::ValidationError("--header", "'" + pair + "' is not NAME=VALUE");
              settings.headers.push_back({pair.substr(0, at), pair.substr(at + 1)});
            }
          },
          "a header of the message; may be given several times")
      ->allow_extra_args(false)  // each takes one value: the next word may be the topic
      ->envname("LIGHTQ_HEADER")
      ->type_name("NAME=VALUE");
}

/// Adds the verbs of `schedule`. `add(name, help, examples)` makes a verb with the flags that all verbs have.
template <typename Add>
void add_schedule_verbs(Parsed& parsed, Add&& add) {
  using Run = int (*)(const Common&, const ScheduleCommand&);
  const auto verb = [&](const char* name, Run run, const char* help, const char* examples) {
    auto schedule = std::make_shared<ScheduleCommand>();
    CLI::App* const made = add(name, help, examples);
    made->callback([&parsed, schedule, run] {
      if (run == run_schedule_set && schedule->payload.has_value() == !schedule->file.empty())
        throw CLI::ValidationError("schedule set", "give a PAYLOAD or --file, and not both");
      parsed.command = [&parsed, schedule, run] { return run(parsed.common, *schedule); };
    });
    return std::pair(made, schedule.get());
  };
  const auto named = [&](const char* name, Run run, const char* help, const char* examples) {
    const auto [made, schedule] = verb(name, run, help, examples);
    made->add_option("name", schedule->name, "the schedule's name")->required()->type_name("NAME");
    made->add_option("topic", schedule->topic, "the topic's name")->required()->type_name("TOPIC");
    return std::pair(made, schedule);
  };
  const auto [set, settings] =
      named("set", run_schedule_set, "publish a message again and again, at the times of a cron rule",
            "  lightq schedule set morning reports --cron '0 9 * * MON-FRI' --zone Europe/Berlin go\n"
            "  lightq schedule set hourly jobs --cron '0 * * * *' --file job.json --missed once");
  add_schedule_settings(set, *settings);
  const auto [list, listed] =
      verb("list", run_schedule_list, "list the schedules of a topic, or of all topics",
           "  lightq schedule list\n  lightq schedule list reports --json");
  list->add_option("topic", listed->topic, "the topic's name; without it: all topics that you may manage")
      ->type_name("TOPIC");
  const auto [show, shown] =
      named("show", run_schedule_show, "show a schedule, its next times and its message",
            "  lightq schedule show morning reports -n 10");
  unit_option(show, "-n,--count", shown->count, parse_count, "next times to show (5)", "COUNT");
  named("pause", run_schedule_pause, "stop a schedule until resume; times until then are left out",
        "  lightq schedule pause morning reports");
  named("resume", run_schedule_resume, "continue a paused schedule",
        "  lightq schedule resume morning reports");
  named("remove", run_schedule_remove, "remove a schedule; messages that it has published stay",
        "  lightq schedule remove morning reports");
}

}  // namespace lightq::cli
