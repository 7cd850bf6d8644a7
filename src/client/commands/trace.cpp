/// `lightq trace`: shows the states of one message. Layer: cli.
#include <cstdint>
#include <string>
#include <utility>

#include <lightq/base/shown_text.hpp>
#include <lightq/protocol/json.hpp>

#include "client/invocation.hpp"
#include "client/message_template.hpp"
#include "client/session.hpp"
#include "client/terminal.hpp"
#include "client/text/text_table.hpp"
#include "client/units.hpp"

namespace lightq::cli {
namespace {

using protocol::GroupTrace;
using protocol::MessageState;
using protocol::StoredState;

std::string time_of_us(std::uint64_t us) {
  return format_time(Timestamp{static_cast<std::int64_t>(us)});
}

std::string time_of_ms(std::uint64_t ms) {
  return time_of_us(ms * 1000);
}

/// Returns where the message itself is, for people.
std::string place_of(const MessageTrace& trace) {
  switch (trace.state) {
    case StoredState::carried: return "dropped from the log, and kept for a group that is not done with it";
    case StoredState::dropped: return "not stored any more";
    case StoredState::damaged: return "damaged: it cannot be read";
    case StoredState::stored: break;
  }
  return trace.durable ? "stored, and on disk" : "stored, and not on disk";
}

/// Returns the facts about the message, a line each.
TextTable message_table(const MessageTrace& trace) {
  TextTable table({{"message"}, {std::to_string(trace.offset) + " of " + trace.topic}});
  table.add({"place", place_of(trace)});
  if (trace.stored_us == 0) return table;
  table.add({"stored at", time_of_us(trace.stored_us)});
  if (trace.time_us != 0) table.add({"producer's time", time_of_us(trace.time_us)});
  table.add({"size", format_size(trace.size)});
  if (!trace.key.empty()) table.add({"key", trace.key});
  for (const protocol::TracedHeader& header : trace.headers)
    table.add({"header", header.name + ": " + header.value});
  if (trace.expired) table.add({"time to live", "over"});
  return table;
}

/// Returns the facts about a death, for people.
std::string text_of(const DeadMessage& death) {
  std::string text =
      std::string(protocol::to_word(death.cause)) + ", " + std::to_string(death.attempts) + " attempts";
  if (death.first_failure_ms != 0) text += ", first failure " + time_of_ms(death.first_failure_ms);
  if (death.last_failure_ms != 0) text += ", died " + time_of_ms(death.last_failure_ms);
  return death.reason.empty() ? text : text + ": " + death.reason;
}

/// Returns in which way a group was moved that has the message in this state now. The group keeps a dead
/// message whichever way it is moved.
std::string way_of_move(MessageState state) {
  switch (state) {
    case MessageState::skipped: return "past";
    case MessageState::parked:
    case MessageState::dead_waiting: return "past or back to";
    default: return "back to";
  }
}

/// Returns the further facts.
std::string details_of(const GroupTrace& group) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : "; ") + part; };
  if (group.consumer) add("consumer " + std::to_string(*group.consumer));
  if (!group.user_id.empty()) add("user " + group.user_id);
  if (group.state == MessageState::in_flight && group.consumer && !group.started) add("not begun");
  if (group.due_ms != 0)
    add((group.state == MessageState::retrying ? "due " : "until ") + time_of_ms(group.due_ms));
  if (group.death) add(text_of(*group.death));
  if (group.letter_offset)
    add("letter " + std::to_string(*group.letter_offset) + " of " + group.letter_topic);
  else if (group.state == MessageState::dead_waiting && !group.letter_topic.empty())
    add("goes to " + group.letter_topic);
  else if (!group.letter_topic.empty())
    add("perhaps a letter in " + group.letter_topic + ", which was not searched completely");
  if (group.moved_by != protocol::MovedBy::none)
    add("the group was moved " + way_of_move(group.state) + " it by a " +
        std::string(protocol::to_word(group.moved_by)));
  return text;
}

TextTable group_table(const MessageTrace& trace) {
  TextTable table({{"group"}, {"state"}, {"deliveries", true}, {"details"}});
  for (const GroupTrace& group : trace.groups) {
    const bool counts = group.state == MessageState::ready || group.state == MessageState::in_flight ||
                        group.state == MessageState::retrying;
    table.add({group.group.empty() ? "-" : group.group, std::string(protocol::to_word(group.state)),
               counts ? std::to_string(group.deliveries) : "-", details_of(group)});
  }
  return table;
}

}  // namespace

int run_trace(const Common& common, const TraceRequest& asked) {
  Result<Client> client = open_client(common);
  if (!client) return fail(client.error());
  Result<MessageTrace> trace = BrokerControl::of(*client).trace(asked.topic, asked.offset);
  if (!trace) return fail(trace.error(), asked.topic);
  Output out;
  if (common.json) {
    out.write(protocol::to_json(protocol::Reply(std::move(*trace))) + "\n");
    return out.end() ? exit_ok : exit_failure;
  }
  const TextTable groups = group_table(*trace);
  const bool aligned = out.is_terminal();
  out.write(aligned ? message_table(*trace).text() : message_table(*trace).tab_separated());
  if (!groups.is_empty()) out.write(aligned ? "\n" + groups.text() : groups.tab_separated());
  if (groups.is_empty() && !common.quiet) say("the topic has no groups");
  if (trace->groups_left_out != 0) say(std::to_string(trace->groups_left_out) + " more groups are not shown");
  return out.end() ? exit_ok : exit_failure;
}

}  // namespace lightq::cli
