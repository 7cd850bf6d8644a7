/// The commands that look at a broker: `stats`, `top`, `doctor`, `ping` and `version`; and `reload`.
/// Included only by command_line.cpp, like command_options.hpp. Layer: cli.
#pragma once

#include <memory>

#include "client/parser/bench_options.hpp"
#include "client/parser/command_options.hpp"
#include "client/parser/verb.hpp"
#include "client/units.hpp"

namespace lightq::cli {

inline void add_broker_verbs(CLI::App* app, Parsed& parsed) {
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
  CLI::App* reload =
      add_verb(app, parsed, "reload", "make a broker read its settings, certificate and keys again",
               "  lightq reload");
  reload->callback([&parsed] { parsed.command = [&parsed] { return run_reload(parsed.common); }; });
  CLI::App* version = add_verb(app, parsed, "version", "show the versions of this program and of the broker",
                               "  lightq version");
  version->callback([&parsed] { parsed.command = [&parsed] { return run_version(parsed.common); }; });

  add_bench(app, parsed);
}

}  // namespace lightq::cli
