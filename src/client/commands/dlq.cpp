/// `lightq dlq list|show|retry|purge`: messages that no consumer could process. Layer: cli.
#include <algorithm>
#include <chrono>
#include <string>

#include <lightq/base/shown_text.hpp>
#include <lightq/protocol/json.hpp>
#include <lightq/reader.hpp>

#include "client/invocation.hpp"
#include "client/json_text.hpp"
#include "client/message_template.hpp"
#include "client/session.hpp"
#include "client/terminal.hpp"
#include "client/units.hpp"

namespace lightq::cli {
namespace {

using namespace std::chrono_literals;

/// Returns a time in milliseconds since 1970 for people; `-` if it is not known.
std::string time_of(std::uint64_t ms) {
  return ms == 0 ? "-" : format_time(Timestamp{static_cast<std::int64_t>(ms) * 1000});
}

/// Returns where the message of a letter has died.
std::string source_of(const DeadMessage& letter) {
  return without_controls(letter.source_topic) + "\t" + without_controls(letter.source_group) + "\t" +
         std::to_string(letter.source_offset);
}

/// Returns the record of a dead message in one line: offset, state, cause, attempts, first failure and death;
/// of a letter also the topic and group in which it died, and its offset there; and the reason, if there is
/// one. Separated by tabs.
std::string line_of(const DeadMessage& message) {
  return std::to_string(message.offset) + "\t" + std::string(protocol::to_word(message.state)) + "\t" +
         std::string(protocol::to_word(message.cause)) + "\t" + std::to_string(message.attempts) + "\t" +
         time_of(message.first_failure_ms) + "\t" + time_of(message.last_failure_ms) +
         (message.source_topic.empty() ? "" : "\t" + source_of(message)) +
         (message.reason.empty() ? "" : "\t" + without_controls(message.reason)) + "\n";
}

/// Connects, and runs `go(client, group)` with the group of the command. Returns the exit code.
template <typename Go>
int with_group(const Common& common, const DeadCommand& dead, Go&& go) {
  Result<Client> client = open_client(common);
  if (!client) return fail(client.error());
  Result<GroupControl> group = client->group(dead.topic, dead.group);
  if (!group) return fail(group.error(), dead.topic);
  return go(*client, *group);
}

/// Tells the user that messages may be missing, because their key could not be read.
void tell_unreadable(const Common& common, std::uint64_t unreadable) {
  if (unreadable == 0 || common.quiet) return;
  say(format_messages(unreadable) + " could not be read, so the key is not known");
}

int ended(Output& out) {
  return out.end() ? exit_ok : exit_failure;
}

/// Returns the dead messages that the command means, over several pages.
Result<DeadPage> pages_of(GroupControl& group, const DeadCommand& dead) {
  DeadPage all;
  std::optional<std::uint64_t> after;
  while (all.messages.size() < dead.count) {
    const std::uint64_t left = dead.count - all.messages.size();
    auto page = group.list_dead(dead.filter, after, std::min(left, DeadPage::messages_max));
    if (!page) return page;
    all.messages.insert(all.messages.end(), page->messages.begin(), page->messages.end());
    all.continue_after = page->continue_after;
    all.unreadable += page->unreadable;
    if (!page->continue_after || (after && *page->continue_after <= *after)) break;
    after = page->continue_after;
  }
  return all;
}

/// Tells what became of letters that `retry` meant.
void tell_returned(const ReturnedLetters& letters) {
  say(format_messages(letters.given_back) + " given back");
  const auto tell = [](std::uint64_t messages, const std::string& what) {
    if (messages > 0) say(format_messages(messages) + " " + what);
  };
  tell(letters.published, "published anew: their topic no longer has them");
  tell(letters.group_gone, "not given back: their group does not exist");
  tell(letters.topic_gone, "not given back: their topic does not exist");
  tell(letters.not_allowed, "not given back: this needs the right to manage their topic");
  tell(letters.failed, "not given back: their topic could not take them");
}

/// Adds the fields of the reply about letters.
void add_returned(JsonObject& reply, const ReturnedLetters& letters) {
  reply.add("given_back", letters.given_back)
      .add("published", letters.published)
      .add("group_gone", letters.group_gone)
      .add("topic_gone", letters.topic_gone)
      .add("not_allowed", letters.not_allowed)
      .add("failed", letters.failed);
}

/// Ends `retry` and `purge`.
int done(const Common& common, const DeadCommand& dead, const Result<DeadCount>& count,
         const std::string& cmd, const std::string& what) {
  if (!count) return fail(count.error(), dead.topic);
  if (!common.json) {
    if (count->returned) {
      if (!common.quiet) tell_returned(*count->returned);
      return exit_ok;
    }
    if (!common.quiet) say(format_messages(count->messages) + " " + (dead.preview ? "would be " : "") + what);
    tell_unreadable(common, count->unreadable);
    return exit_ok;
  }
  Output out;
  JsonObject reply;
  reply.add("cmd", cmd).add("status", "ok").add("topic", dead.topic);
  if (!dead.group.empty()) reply.add("group", dead.group);
  if (dead.preview) reply.add("preview", true);
  reply.add("messages", count->messages);
  if (count->unreadable != 0) reply.add("unreadable", count->unreadable);
  if (count->returned) add_returned(reply, *count->returned);
  out.write(reply.text() + "\n");
  return ended(out);
}

/// Prints the message itself, if it can still be read.
int print_message(Client& client, const Common& common, const DeadCommand& dead, Output& out) {
  const auto format = MessageTemplate::parse(common.json ? "json" : dead.format);
  Result<Reader> reader = client.reader(dead.topic, {.name = "lightq dlq"});
  if (!reader) return fail(reader.error(), dead.topic);
  bool found = false;
  std::string line;
  const auto print = [&](const Delivered& message) {
    found = true;
    format->append(line, {message.offset, message.time, message.text(), message.attributes()});
  };
  const Offset at{dead.offset};
  const Result<Offset> read = reader->read({at, at + 1}, limits::MiB, print, 30s);
  if (!read) return fail(read.error(), dead.topic);
  if (!found) say("the message was dropped or cannot be read");
  out.write(line);
  return ended(out);
}

}  // namespace

int run_dead_list(const Common& common, const DeadCommand& dead) {
  return with_group(common, dead, [&](Client& /*client*/, GroupControl& group) {
    Result<DeadPage> page = pages_of(group, dead);
    if (!page) return fail(page.error(), dead.topic);
    Output out;
    if (common.json) {
      out.write(protocol::to_json(protocol::Reply(std::move(*page))) + "\n");
      return ended(out);
    }
    if (page->messages.empty() && !common.quiet) say("no such dead messages");
    for (const DeadMessage& message : page->messages) out.write(line_of(message));
    if (page->continue_after && !common.quiet) say("there may be more; see --count");
    tell_unreadable(common, page->unreadable);
    return ended(out);
  });
}

int run_dead_show(const Common& common, const DeadCommand& dead) {
  return with_group(common, dead, [&](Client& client, GroupControl& group) {
    Result<DeadPage> page = group.list_dead({.ranges = {{{dead.offset}, {dead.offset + 1}}}});
    if (!page) return fail(page.error(), dead.topic);
    if (page->messages.empty()) {
      say_error("invalid_argument", "message " + std::to_string(dead.offset) + " is not dead");
      return int{exit_failure};
    }
    Output out;
    out.write(common.json ? protocol::to_json(protocol::Reply(*page)) + "\n" : line_of(page->messages[0]));
    return print_message(client, common, dead, out);
  });
}

int run_dead_retry(const Common& common, const DeadCommand& dead) {
  return with_group(common, dead, [&](Client& /*client*/, GroupControl& group) {
    return done(common, dead,
                dead.preview ? group.count_to_retry(dead.filter) : group.retry_dead(dead.filter),
                "retry_dead", "delivered again");
  });
}

int run_dead_purge(const Common& common, const DeadCommand& dead) {
  return with_group(common, dead, [&](Client& /*client*/, GroupControl& group) {
    return done(common, dead,
                dead.preview ? group.count_to_purge(dead.filter) : group.purge_dead(dead.filter),
                "purge_dead", "given up");
  });
}

}  // namespace lightq::cli
