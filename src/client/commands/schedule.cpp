/// `lightq schedule set|list|show|pause|resume|remove`: messages that are published again and again.
/// Layer: cli.
#include <algorithm>
#include <array>
#include <fstream>
#include <iostream>
#include <string>
#include <utility>

#include <lightq/base/shown_text.hpp>
#include <lightq/base/ttl.hpp>
#include <lightq/protocol/json.hpp>

#include "client/invocation.hpp"
#include "client/json_text.hpp"
#include "client/message_template.hpp"
#include "client/session.hpp"
#include "client/terminal.hpp"
#include "client/text/text_table.hpp"

namespace lightq::cli {
namespace {

std::string shown_ms(std::uint64_t ms) {
  return format_time(Timestamp{static_cast<std::int64_t>(ms) * 1000});
}

/// Connects, and runs `go(schedules)` with the schedules of the command's topic. Returns the exit code.
template <typename Go>
int with_schedules(const Common& common, const ScheduleCommand& command, Go&& go) {
  Result<Client> client = open_client(common);
  if (!client) return fail(client.error());
  Result<ScheduleControl> schedules = ScheduleControl::of(*client, command.topic);
  if (!schedules) return fail(schedules.error(), command.topic);
  return go(*schedules);
}

/// Ends a command that changes a schedule.
int changed(const Common& common, const ScheduleCommand& command, const Result<void>& result,
            const std::string& cmd, const std::string& what) {
  if (!result) return fail(result.error(), command.topic);
  if (!common.json) {
    if (!common.quiet) say("schedule '" + command.name + "' of topic '" + command.topic + "' " + what);
    return exit_ok;
  }
  Output out;
  out.write(JsonObject()
                .add("cmd", cmd)
                .add("status", "ok")
                .add("topic", command.topic)
                .add("name", command.name)
                .text() +
            "\n");
  return out.end() ? exit_ok : exit_failure;
}

/// Reads the payload's file. Errors: io_error; too_large if it is longer than a payload may be.
Result<std::string> read_payload_file(const std::string& path) {
  std::ifstream file;
  if (path != "-") file.open(path, std::ios::binary);
  std::istream& in = path == "-" ? std::cin : file;
  std::string payload;
  std::array<char, 4096> piece{};
  while (in.good() && payload.size() <= limits::schedule_payload_bytes_max) {
    in.read(piece.data(), piece.size());
    payload.append(piece.data(), static_cast<std::size_t>(in.gcount()));
  }
  if (!in.eof() && !in.good()) return Error{ErrorCode::io_error, "cannot read '" + path + "'"};
  if (payload.size() > limits::schedule_payload_bytes_max)
    return Error{ErrorCode::too_large, "'" + path + "' is longer than " +
                                           std::to_string(limits::schedule_payload_bytes_max) +
                                           " bytes, the longest payload of a schedule"};
  return payload;
}

/// Returns the state of a schedule in one word.
std::string state_of(const ScheduleListing& schedule) {
  if (schedule.paused) return "paused";
  return schedule.waiting_by.empty() ? "active" : "waiting";
}

/// Returns a schedule's topic, name, state, next time, zone and rule.
std::vector<std::string> cells_of(const ScheduleListing& schedule) {
  return {without_controls(schedule.topic),
          without_controls(schedule.name),
          std::string(state_of(schedule)),
          schedule.next_ms.empty() ? "-" : shown_ms(schedule.next_ms.front()),
          without_controls(schedule.settings.zone),
          without_controls(schedule.settings.cron)};
}

/// Returns schedules as a table, or as lines with tabs between the same cells.
std::string text_of_schedules(const std::vector<ScheduleListing>& schedules, bool as_table) {
  TextTable table({{"topic"}, {"name"}, {"state"}, {"next"}, {"zone"}, {"rule"}});
  for (const ScheduleListing& schedule : schedules) table.add(cells_of(schedule));
  return as_table ? table.text() : table.tab_separated();
}

/// Returns a schedule with a property in each line.
std::string text_of_schedule(const ScheduleListing& schedule) {
  std::string text;
  const auto add = [&](std::string name, const std::string& value) {
    constexpr std::size_t width = 10;
    name.resize(std::max(width, name.size() + 1), ' ');
    text += name + without_controls(value) + "\n";
  };
  add("cron", schedule.settings.cron);
  add("zone", schedule.settings.zone);
  add("missed", std::string(protocol::to_word(schedule.settings.missed)));
  add("state", state_of(schedule));
  if (!schedule.waiting_by.empty()) add("waits", schedule.waiting_by);
  add("fired", std::to_string(schedule.fired));
  if (schedule.last_ms != 0) add("last", shown_ms(schedule.last_ms));
  for (const std::uint64_t next : schedule.next_ms) add("next", shown_ms(next));
  if (!schedule.settings.key.empty()) add("key", schedule.settings.key);
  for (const auto& [name, value] : schedule.settings.headers) add("header", name + "=" + value);
  add("payload", schedule.settings.payload);
  return text;
}

int print_page(SchedulePage page) {
  Output out;
  out.write(protocol::to_json(protocol::Reply(std::move(page))) + "\n");
  return out.end() ? exit_ok : exit_failure;
}

}  // namespace

int run_schedule_set(const Common& common, const ScheduleCommand& command) {
  ScheduleSettings settings = command.settings;
  if (command.payload) settings.payload = *command.payload;
  if (command.ttl.count() != 0)
    settings.headers.push_back({std::string(ttl_header_name), std::string(TtlText(command.ttl).text())});
  if (!command.file.empty()) {
    auto payload = read_payload_file(command.file);
    if (!payload) return fail(payload.error());
    settings.payload = *std::move(payload);
  }
  return with_schedules(common, command, [&](ScheduleControl& schedules) {
    return changed(common, command, schedules.set(command.name, settings), "set_schedule", "is set");
  });
}

int run_schedule_list(const Common& common, const ScheduleCommand& command) {
  return with_schedules(common, command, [&](ScheduleControl& schedules) {
    SchedulePage all;
    for (bool is_last = false; !is_last;) {
      auto page = schedules.list(all.continue_after, SchedulePage::schedules_max);
      if (!page) return fail(page.error(), command.topic);
      is_last = page->continue_after.empty() || page->continue_after <= all.continue_after;
      all.schedules.insert(all.schedules.end(), page->schedules.begin(), page->schedules.end());
      all.continue_after = page->continue_after;
    }
    if (common.json) return print_page(std::move(all));
    if (all.schedules.empty() && !common.quiet) say("there are no schedules");
    Output out;
    if (!all.schedules.empty()) out.write(text_of_schedules(all.schedules, out.is_terminal()));
    return int{out.end() ? exit_ok : exit_failure};
  });
}

int run_schedule_show(const Common& common, const ScheduleCommand& command) {
  return with_schedules(common, command, [&](ScheduleControl& schedules) {
    auto shown = schedules.show(command.name, std::min(command.count, SchedulePage::times_max));
    if (!shown) return fail(shown.error(), command.topic);
    if (common.json) return print_page({.schedules = {*std::move(shown)}});
    return print(text_of_schedule(*shown));
  });
}

int run_schedule_pause(const Common& common, const ScheduleCommand& command) {
  return with_schedules(common, command, [&](ScheduleControl& schedules) {
    return changed(common, command, schedules.pause(command.name), "pause_schedule", "is paused");
  });
}

int run_schedule_resume(const Common& common, const ScheduleCommand& command) {
  return with_schedules(common, command, [&](ScheduleControl& schedules) {
    return changed(common, command, schedules.resume(command.name), "resume_schedule", "is active");
  });
}

int run_schedule_remove(const Common& common, const ScheduleCommand& command) {
  return with_schedules(common, command, [&](ScheduleControl& schedules) {
    return changed(common, command, schedules.remove(command.name), "remove_schedule", "is removed");
  });
}

}  // namespace lightq::cli
