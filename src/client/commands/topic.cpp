/// `lightq topic create|set|list|info|delete|delete-group|pause|resume|purge`. Layer: cli.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <lightq/base/shown_uri.hpp>
#include <lightq/broker_control.hpp>
#include <lightq/protocol/json.hpp>

#include "client/confirmation.hpp"
#include "client/invocation.hpp"
#include "client/session.hpp"
#include "client/terminal.hpp"
#include "client/text/text_table.hpp"
#include "client/units.hpp"

namespace lightq::cli {
namespace {

/// Ends a command that changes a topic: prints the result and returns the exit code. Without `--json`, prints
/// a sentence with `what`. With `--json`, prints an object like the broker's reply to `cmd`, and adds the
/// fields `more`.
int done(const Common& common, const Result<void>& result, const std::string& cmd, const std::string& topic,
         const std::string& what, const std::string& more = "") {
  if (!result) return fail(result.error(), topic);
  if (!common.json) {
    if (!common.quiet) say("topic '" + topic + "' " + what);
    return exit_ok;
  }
  Output out;  // a topic's name has no character that JSON escapes
  out.write("{\"cmd\":\"" + cmd + "\",\"status\":\"ok\",\"topic\":\"" + topic + "\"" + more + "}\n");
  return out.end() ? exit_ok : exit_failure;
}

/// Returns the members of a reply about the new topic, each with a comma before it.
std::string settings_json(const CreatedTopic& created) {
  protocol::OkReply reply{"create_topic", "", {}};
  reply.created = created;
  const std::string text = protocol::to_json(protocol::Reply(std::move(reply)));
  const std::size_t begin = text.find(",\"settings\"");
  return text.substr(begin, text.size() - begin - 1);
}

/// Returns the most messages of the topic that a group or a subscriber has not done yet.
std::uint64_t furthest_behind(const TopicStats& stats) {
  std::uint64_t most = 0;
  for (const GroupStats& group : stats.groups) most = std::max(most, group.pending);
  for (const SubscriberStats& subscriber : stats.subscribers) most = std::max(most, subscriber.lag);
  return most;
}

/// Returns a line for each topic. A topic without statistics, which was just made, has dashes.
std::string table_of(const std::vector<TopicListing>& topics, const Result<std::vector<TopicStats>>& known) {
  TextTable table({{"topic"},
                   {"type"},
                   {"messages", true},
                   {"lag", true},
                   {"bytes", true},
                   {"consumers", true},
                   {"state"}});
  for (const TopicListing& topic : topics) {
    std::vector<std::string> cells = {
        topic.topic, std::string(to_word(topic.settings.broker_type)), "-", "-", "-", "-"};
    std::string state = topic.open ? "open" : "";
    const auto has_name = [&](const TopicStats& stats) { return stats.topic == topic.topic; };
    const auto found =
        known ? std::ranges::find_if(*known, has_name) : std::vector<TopicStats>::const_iterator();
    if (known && found != known->end()) {
      cells[2] = format_count(found->next_offset - found->first_offset);
      cells[3] = format_count(furthest_behind(*found));
      cells[4] = format_size(found->log_bytes);
      cells[5] = format_count(found->subscribers_count);
      const auto add = [&](const std::string& word) { state += (state.empty() ? "" : ", ") + word; };
      if (found->paused) add("paused");
      if (!found->blocked_by.empty()) add("blocked by " + found->blocked_by);
    }
    cells.push_back(state);
    table.add(std::move(cells));
  }
  return table.text();
}

}  // namespace

int run_topic_create(const Common& common, const TopicCreate& create) {
  Result<Client> client = open_client(common);
  if (!client) return fail(client.error());
  const ClientOptions& options = client->options();
  const Result<CreatedTopic> created =
      BrokerControl::of(*client).create_topic(create.topic, create.settings, create.given);
  if (!created) return fail(created.error(), create.topic);
  const bool by_user = options.admin.user_id.empty();
  const std::string whose = created->settings.open ? "open to all"
                            : by_user              ? "for users with a right on it"
                            : options.user.user_id.empty()
                                ? "for the administrator and users with a right on it"
                                : "for user '" + shown_user(options.user.user_id) + "'";
  const std::string by =
      created->topic_template.empty() ? "" : ", by the template " + created->topic_template;
  return done(common, Result<void>(), "create_topic", create.topic,
              "created (" + std::string(to_word(created->settings.broker_type)) + ", " + whose + by + ")",
              settings_json(*created));
}

int run_topic_set(const Common& common, const TopicSet& set) {
  Result<Client> client = open_client(common);
  if (!client) return fail(client.error());
  return done(common, client->set_topic(set.topic, set.change), "set_topic", set.topic, "has new settings");
}

int run_topic_list(const Common& common) {
  Result<Client> client = open_client(common);
  if (!client) return fail(client.error());
  Result<std::vector<TopicListing>> topics = client->list_topics();
  if (!topics) return fail(topics.error());
  Output out;
  if (common.json) {
    out.write(protocol::to_json(protocol::Reply(protocol::ListReply{std::move(*topics)})) + "\n");
    return out.end() ? exit_ok : exit_failure;
  }
  if (topics->empty() && !common.quiet) say("no topics yet; create one:  lightq topic create NAME");
  if (out.is_terminal() && !topics->empty()) {
    out.write(table_of(*topics, client->stats_of_all()));
    return out.end() ? exit_ok : exit_failure;
  }
  for (const TopicListing& topic : *topics) {
    out.write(topic.topic + "\t" + std::string(to_word(topic.settings.broker_type)) +
              (topic.open ? "\topen" : "") + "\n");
  }
  return out.end() ? exit_ok : exit_failure;
}

int run_topic_info(const Common& common, const std::string& topic) {
  return run_stats(common, {.topic = topic, .with_directory = true});
}

int run_topic_delete(const Common& common, const std::string& topic, bool yes) {
  if (!is_confirmed(common, yes, "delete topic '" + topic + "' with its messages")) return exit_failure;
  Result<Client> client = open_client(common);
  if (!client) return fail(client.error());
  const Result<void> deleted = client->delete_topic(topic);
  if (!deleted && deleted.error().code == ErrorCode::topic_not_found) {
    return fail({ErrorCode::topic_not_found, "there is no topic '" + topic + "'"});
  }
  return done(common, deleted, "delete_topic", topic, "deleted");
}

int run_topic_delete_group(const Common& common, const std::string& topic, const std::string& group) {
  Result<Client> client = open_client(common);
  if (!client) return fail(client.error());
  return done(common, client->delete_group(topic, group), "delete_group", topic,
              "no longer has group '" + group + "'");
}

int run_topic_control(const Common& common, const TopicControl& control) {
  using What = TopicControl::What;
  const auto& [what, topic, group, yes, delayed] = control;
  // A group's name has no character that JSON escapes.
  const std::string more = group.empty() ? "" : ",\"group\":\"" + group + "\"";
  const std::string of_group = group.empty() ? "" : "group '" + group + "' ";
  const std::string all =
      group.empty() ? "drop all messages of " : "skip all messages of " + of_group + "of ";
  if (what == What::purge && !is_confirmed(common, yes, all + "topic '" + topic + "'")) return exit_failure;
  Result<Client> client = open_client(common);
  if (!client) return fail(client.error());
  if (what == What::pause)
    return done(common, client->pause(topic, group), "pause", topic, of_group + "is paused", more);
  if (what == What::resume)
    return done(common, client->resume(topic, group), "resume", topic, of_group + "is resumed", more);
  const Result<std::uint64_t> purged = client->purge(topic, group, delayed);
  if (!purged) return fail(purged.error(), topic);
  return done(common, {}, "purge", topic, of_group + "is purged: " + format_count(*purged) + " messages",
              more + ",\"messages\":" + std::to_string(*purged));
}

}  // namespace lightq::cli
