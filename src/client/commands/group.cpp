/// `lightq group list|info|set|reset`. Layer: cli.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <lightq/protocol/stats_fields.hpp>

#include "client/commands/group_json.hpp"
#include "client/confirmation.hpp"
#include "client/invocation.hpp"
#include "client/json_text.hpp"
#include "client/message_template.hpp"
#include "client/session.hpp"
#include "client/terminal.hpp"
#include "client/text/text_table.hpp"
#include "client/units.hpp"

namespace lightq::cli {
namespace {

int ended(Output& out) {
  return out.end() ? exit_ok : exit_failure;
}

/// Returns the kind of a cursor, and why it delivers nothing, for people.
std::string state_of(const GroupStats& group) {
  std::string state;
  const auto add = [&](const std::string& word) { state += (state.empty() ? "" : ", ") + word; };
  if (group.mode == "own") add("own cursor");
  if (group.paused) add("paused");
  if (!group.paused_by.empty() && group.paused_by != "command") add("paused by " + group.paused_by);
  if (!group.blocked_by.empty()) add("blocked by " + group.blocked_by);
  return state;
}

TextTable table_of(const std::vector<GroupStats>& groups) {
  TextTable table({{"group"},
                   {"committed", true},
                   {"pending", true},
                   {"in flight", true},
                   {"retrying", true},
                   {"dead", true},
                   {"consumers", true},
                   {"state"}});
  for (const GroupStats& group : groups) {
    table.add({group.group.empty() ? "-" : group.group, std::to_string(group.committed_offset),
               std::to_string(group.pending), std::to_string(group.in_flight), std::to_string(group.retrying),
               std::to_string(group.parked + group.dead_waiting), std::to_string(group.consumers),
               state_of(group)});
  }
  return table;
}

/// Returns the rules of a group for messages that fail, in lines for people.
std::string rules_text(const GroupSettings& settings) {
  std::string backoff;
  for (const std::uint32_t ms : settings.backoff_ms)
    backoff += (backoff.empty() ? "" : ", ") + format_seconds(ms / 1e3);
  const std::string& target = settings.dead_letter_topic;
  TextTable table({{"setting"}, {"value"}});
  table.add({"max attempts", settings.max_attempts == 0 ? "no limit" : format_count(settings.max_attempts)});
  table.add({"backoff", backoff.empty() ? "none" : backoff});
  table.add({"dead messages", target.empty() ? "stay in the group (parked)" : "go to topic " + target});
  table.add({"dead waiting max", format_count(settings.dead_waiting_max)});
  table.add({"processing timeout", !settings.processing_timeout_ms ? "the broker's setting"
                                   : *settings.processing_timeout_ms == 0
                                       ? "none"
                                       : format_seconds(*settings.processing_timeout_ms / 1e3)});
  table.add({"pause when failing", settings.pause_when_failing ? "yes" : "no"});
  table.add({"dead-letter expired", settings.dead_letter_expired ? "yes" : "no"});
  return table.text();
}

/// Returns the counters of a group, a line each. Leaves out those that are 0.
std::string counters_text(const GroupStats& group) {
  TextTable table({{"counter"}, {"value", true}});
  protocol::visit_fields(group, [&](protocol::StatField field, const auto& value) {
    if constexpr (std::is_same_v<decltype(value), const std::uint64_t&>) {
      const std::string name = field.name;
      if (value != 0 || name == "pending" || name == "committed_offset")
        table.add({name, std::to_string(value)});
    }
  });
  return table.text();
}

/// Returns the consumers of a group, a line each.
std::string members_text(const GroupStats& group) {
  if (!group.members || group.members->empty()) return {};
  TextTable table(
      {{"consumer", true}, {"user"}, {"since"}, {"in flight", true}, {"credit", true}, {"heard", true}});
  for (const protocol::MemberStats& member : *group.members) {
    table.add({std::to_string(member.number), member.user_id.empty() ? "-" : member.user_id,
               format_time({static_cast<std::int64_t>(member.since_ms) * 1000}),
               std::to_string(member.in_flight), std::to_string(member.credit_messages),
               member.heard_ms ? format_seconds(*member.heard_ms / 1e3) + " ago" : "-"});
  }
  std::string text = table.text();
  const std::uint64_t plain =
      group.consumers - std::min<std::uint64_t>(group.consumers, group.members->size());
  if (plain > 0) text += "and " + std::to_string(plain) + " that are not listed\n";
  return text + "\n";
}

/// Asks for the groups of the topic, and prints them with `print(stats)`. Returns the exit code.
template <typename Print>
int with_groups(const Common& common, const GroupView& view, std::uint64_t members_max, Print&& print) {
  Result<Client> client = open_client(common);
  if (!client) return fail(client.error());
  const Result<TopicStats> stats = client->stats(view.topic, members_max);
  if (!stats) return fail(stats.error(), view.topic);
  return print(*stats);
}

int print_move(const Common& common, const GroupReset& reset, const GroupMove& move) {
  if (common.json) {
    Output out;
    JsonObject reply;
    reply.add("cmd", "seek_group").add("status", "ok").add("topic", reset.topic).add("group", reset.group);
    if (reset.preview) reply.add("preview", true);
    reply.add("former_offset", move.former_offset)
        .add("offset", move.offset)
        .add("former_pending", move.former_pending)
        .add("pending", move.pending);
    out.write(reply.text() + "\n");
    return ended(out);
  }
  if (common.quiet) return exit_ok;
  const bool is_back = move.offset < move.former_offset;
  const std::uint64_t messages =
      std::max(move.offset, move.former_offset) - std::min(move.offset, move.former_offset);
  const std::string effect = messages == 0 ? "the position stays"
                             : is_back     ? format_messages(messages) + " back, which are delivered again"
                                           : format_messages(messages) + " forward";
  say("topic '" + reset.topic + "' group '" + reset.group + "' " +
      (reset.preview ? "would move" : "has moved") + " from offset " + format_count(move.former_offset) +
      " to " + format_count(move.offset) + ": " + effect + "; " + format_messages(move.pending) + " " +
      (reset.preview ? "would be" : "are") + " pending then, " + format_count(move.former_pending) +
      " before");
  return exit_ok;
}

}  // namespace

int run_group_list(const Common& common, const GroupView& view) {
  return with_groups(common, view, 0, [&](const TopicStats& stats) {
    Output out;
    if (common.json) {
      JsonArray groups;
      for (const GroupStats& group : stats.groups) groups.add(group_json(group));
      out.write(JsonObject()
                    .add("cmd", "list_groups")
                    .add("status", "ok")
                    .add("topic", view.topic)
                    .add_raw("groups", groups.text())
                    .text() +
                "\n");
      return ended(out);
    }
    if (stats.groups.empty()) {
      if (!common.quiet) say("topic '" + view.topic + "' has no groups");
      return int{exit_ok};
    }
    const TextTable table = table_of(stats.groups);
    out.write(out.is_terminal() ? table.text() : table.tab_separated());
    return ended(out);
  });
}

int run_group_info(const Common& common, const GroupView& view) {
  return with_groups(common, view, limits::stats_members_max, [&](const TopicStats& stats) {
    const auto found = std::ranges::find(stats.groups, view.group, &GroupStats::group);
    if (found == stats.groups.end())
      return fail(
          {ErrorCode::group_not_found, "topic '" + view.topic + "' has no group '" + view.group + "'"});
    Output out;
    if (common.json) {
      out.write(JsonObject()
                    .add("cmd", "group_info")
                    .add("status", "ok")
                    .add("topic", view.topic)
                    .add_raw("group", group_json(*found))
                    .text() +
                "\n");
      return ended(out);
    }
    const std::string state = state_of(*found);
    out.write("group " + found->group + " of topic " + view.topic + (state.empty() ? "" : ": " + state) +
              "\n\n" + counters_text(*found) + "\n" + members_text(*found) + rules_text(found->settings));
    return ended(out);
  });
}

int run_group_reset(const Common& common, const GroupReset& reset) {
  Result<Client> client = open_client(common);
  if (!client) return fail(client.error());
  Result<GroupControl> group = client->group(reset.topic, reset.group);
  if (!group) return fail(group.error(), reset.topic);
  Result<GroupMove> move = group->preview_seek(reset.to);
  if (!move) return fail(move.error(), reset.topic);
  if (reset.preview) return print_move(common, reset, *move);
  const std::string what = "move group '" + reset.group + "' of topic '" + reset.topic + "' from offset " +
                           std::to_string(move->former_offset) + " to " + std::to_string(move->offset);
  if (move->former_offset != move->offset && !is_confirmed(common, reset.yes, what)) return exit_failure;
  move = group->seek(reset.to);
  if (!move) return fail(move.error(), reset.topic);
  return print_move(common, reset, *move);
}

int run_group_set(const Common& common, const GroupSet& set) {
  Result<Client> client = open_client(common);
  if (!client) return fail(client.error());
  Result<GroupControl> group = client->group(set.topic, set.group);
  if (!group) return fail(group.error(), set.topic);
  if (const Result<void> changed = group->set(set.change); !changed) {
    const bool about_target = changed.error().message.starts_with("dead_letter_topic:");
    return fail(changed.error(), about_target ? set.target : set.topic);
  }
  if (!common.json) {
    if (!common.quiet) say("topic '" + set.topic + "' group '" + set.group + "' has these settings now");
    return exit_ok;
  }
  Output out;
  out.write(JsonObject()
                .add("cmd", "set_group")
                .add("status", "ok")
                .add("topic", set.topic)
                .add("group", set.group)
                .text() +
            "\n");
  return ended(out);
}

}  // namespace lightq::cli
