/// `lightq delayed list|show|cancel|hurry|reschedule`: messages that wait until they are due. Layer: cli.
#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include <lightq/base/shown_text.hpp>
#include <lightq/delayed_control.hpp>
#include <lightq/protocol/json.hpp>

#include "client/invocation.hpp"
#include "client/json_text.hpp"
#include "client/message_template.hpp"
#include "client/session.hpp"
#include "client/terminal.hpp"
#include "client/units.hpp"

namespace lightq::cli {
namespace {

/// Returns the record of a delayed message in one line: number, due time, state and size; the id and the
/// key, or `-`. Separated by tabs.
std::string line_of(const DelayedMessage& message) {
  const auto shown = [](const std::string& text) { return text.empty() ? "-" : without_controls(text); };
  return std::to_string(message.number) + "\t" + format_time(message.due) + "\t" +
         std::string(protocol::to_word(message.state)) + "\t" + std::to_string(message.bytes) + "\t" +
         shown(message.id) + "\t" + shown(message.key) + "\n";
}

/// Connects, and runs `go(schedule)` with the topic's schedule. Returns the exit code.
template <typename Go>
int with_schedule(const Common& common, const DelayedCommand& delayed, Go&& go) {
  Result<Client> client = open_client(common);
  if (!client) return fail(client.error());
  Result<DelayedControl> schedule = client->delayed(delayed.topic);
  if (!schedule) return fail(schedule.error(), delayed.topic);
  return go(*schedule);
}

/// Returns the delayed messages that the command means, over several pages.
Result<DelayedPage> pages_of(DelayedControl& schedule, const DelayedCommand& delayed) {
  DelayedPage all;
  std::optional<DelayedPlace> after;
  while (all.messages.size() < delayed.count) {
    const std::uint64_t left = delayed.count - all.messages.size();
    auto page = schedule.list(delayed.filter, after, std::min(left, DelayedPage::messages_max));
    if (!page) return page;
    all.messages.insert(all.messages.end(), std::make_move_iterator(page->messages.begin()),
                        std::make_move_iterator(page->messages.end()));
    all.continue_after = page->continue_after;
    if (!page->continue_after || (after && *page->continue_after <= *after)) break;
    after = page->continue_after;
  }
  return all;
}

/// Prints the effect of a command. Returns the exit code: exit_failure if it did nothing to a message that
/// was named by its number.
int done(const Common& common, const DelayedCommand& delayed, const Result<DelayedCount>& count,
         const std::string& cmd, const std::string& what) {
  if (!count) return fail(count.error(), delayed.topic);
  const bool all_done = count->too_late + count->unknown == 0;
  if (common.json) {
    Output out;
    protocol::OkReply reply{cmd, {}, {}, count->messages};
    reply.delayed = *count;
    out.write(protocol::to_json(protocol::Reply(std::move(reply))) + "\n");
    if (!out.end()) return exit_failure;
    return all_done ? exit_ok : exit_failure;
  }
  if (!common.quiet)
    say(format_messages(count->messages) + " " + (delayed.preview ? "would be " : "") + what);
  if (count->too_late > 0)
    say(format_messages(count->too_late) + " not changed: too late, already delivered");
  if (count->unknown > 0)
    say(format_messages(count->unknown) + " not changed: the schedule does not have them");
  return all_done ? exit_ok : exit_failure;
}

/// Executes a command, or counts the messages that it means.
template <typename Act>
int run_change(const Common& common, const DelayedCommand& delayed, const std::string& cmd,
               const std::string& what, Act&& act) {
  return with_schedule(common, delayed, [&](DelayedControl& schedule) {
    return done(common, delayed, delayed.preview ? schedule.count(delayed.filter) : act(schedule), cmd, what);
  });
}

/// Asks for one message, and for its payload if the user may see that.
Result<DelayedPage> shown_page(DelayedControl& schedule, const DelayedCommand& delayed) {
  const protocol::DelayedFilter wanted{.numbers = {{{delayed.number}, {delayed.number + 1}}}};
  auto page = schedule.list(wanted, {}, 1, DelayedPage::payload_bytes_max);
  if (page || page.error().code != ErrorCode::unauthorized_access) return page;
  auto without_payload = schedule.list(wanted, {}, 1);
  if (!without_payload) return page;
  say("the payload is not shown: that needs the right to consume from the topic");
  return without_payload;
}

/// Writes the payload with backslashes, as the word `text` of other commands does.
void write_payload(const Common& common, const DelayedMessage& message, Output& out) {
  if (!message.payload) return;
  std::string line;
  MessageTemplate::parse("%e\\n")->append(line, {{}, {}, *message.payload});
  out.write(line);
  if (message.payload->size() < message.payload_bytes && !common.quiet)
    say("these are the first " + std::to_string(message.payload->size()) + " of " +
        std::to_string(message.payload_bytes) + " bytes");
}

}  // namespace

int run_delayed_list(const Common& common, const DelayedCommand& delayed) {
  return with_schedule(common, delayed, [&](DelayedControl& schedule) -> int {
    Result<DelayedPage> page = pages_of(schedule, delayed);
    if (!page) return fail(page.error(), delayed.topic);
    Output out;
    if (common.json) {
      out.write(protocol::to_json(protocol::Reply(std::move(*page))) + "\n");
      return out.end() ? exit_ok : exit_failure;
    }
    if (page->messages.empty() && !common.quiet) say("no such delayed messages");
    for (const DelayedMessage& message : page->messages) out.write(line_of(message));
    if (page->continue_after && !common.quiet) say("there may be more; see --count");
    return out.end() ? exit_ok : exit_failure;
  });
}

int run_delayed_show(const Common& common, const DelayedCommand& delayed) {
  return with_schedule(common, delayed, [&](DelayedControl& schedule) -> int {
    const Result<DelayedPage> page = shown_page(schedule, delayed);
    if (!page) return fail(page.error(), delayed.topic);
    if (page->messages.empty()) {
      say_error("invalid_argument", "message " + std::to_string(delayed.number) + " does not wait");
      return exit_failure;
    }
    Output out;
    if (common.json) {
      out.write(protocol::to_json(protocol::Reply(*page)) + "\n");
    } else {
      out.write(line_of(page->messages[0]));
      write_payload(common, page->messages[0], out);
    }
    return out.end() ? exit_ok : exit_failure;
  });
}

int run_delayed_cancel(const Common& common, const DelayedCommand& delayed) {
  return run_change(common, delayed, "cancel_delayed", "cancelled",
                    [&](DelayedControl& schedule) { return schedule.cancel(delayed.filter); });
}

int run_delayed_hurry(const Common& common, const DelayedCommand& delayed) {
  return run_change(common, delayed, "hurry_delayed", "delivered now",
                    [&](DelayedControl& schedule) { return schedule.hurry(delayed.filter); });
}

int run_delayed_reschedule(const Common& common, const DelayedCommand& delayed) {
  return run_change(common, delayed, "reschedule_delayed", "rescheduled", [&](DelayedControl& schedule) {
    if (delayed.due < 0) return schedule.reschedule(delayed.filter, std::chrono::microseconds(-delayed.due));
    return schedule.reschedule(delayed.filter, Timestamp{delayed.due});
  });
}

}  // namespace lightq::cli
