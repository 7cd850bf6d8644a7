/// `lightq stats`: prints the statistics of a topic, of all topics or of the broker, once or repeatedly.
/// Layer: cli.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <lightq/base/shown_text.hpp>
#include <lightq/discovery.hpp>
#include <lightq/protocol/json.hpp>

#include "client/invocation.hpp"
#include "client/json_text.hpp"
#include "client/logs/topic_directory.hpp"
#include "client/message_template.hpp"
#include "client/session.hpp"
#include "client/terminal.hpp"
#include "client/text/text_table.hpp"
#include "client/units.hpp"

namespace lightq::cli {
namespace {

/// Returns one line of a two-column table. Escapes control characters, so that a text of a broker cannot look
/// like another line.
std::string row(const std::string& name, const std::string& value) {
  constexpr std::size_t width = 22;
  std::string line;
  append_escaping_controls(line, name);
  line += std::string(width - std::min(width - 1, line.size()), ' ');
  append_escaping_controls(line, value);
  return line + "\n";
}

std::string row(const std::string& name, std::uint64_t count) {
  return row(name, format_count(count));
}

/// Returns a row, or nothing for a count of 0.
std::string row_if(const std::string& name, std::uint64_t count) {
  return count == 0 ? "" : row(name, count);
}

/// Returns the numbers of a topic's schedule in one line.
std::string delayed_values(const DelayedStats& stats) {
  std::string values = "waiting " + format_count(stats.messages) + ", " + format_size(stats.bytes) +
                       ", moved " + format_count(stats.moved);
  if (stats.next_due_us > 0)
    values += ", next due " + format_time({static_cast<std::int64_t>(stats.next_due_us)});
  if (stats.cancelled > 0) values += ", cancelled " + format_count(stats.cancelled);
  if (stats.late_us_max > 0)
    values += ", at most " + format_seconds(static_cast<double>(stats.late_us_max) / 1e6) + " late";
  if (stats.corrupt > 0) values += ", corrupt " + format_count(stats.corrupt);
  if (!stats.waiting_by.empty()) values += ", waiting by: " + stats.waiting_by;
  return values;
}

std::string table(const TopicStats& stats) {
  std::string text =
      row("topic", stats.topic) + row("topic_type", std::string(to_word(stats.topic_type))) +
      row("messages_received", stats.messages_received) + row("messages_sent", stats.messages_sent) +
      row("queue_size", stats.queue_size) + row("publishers_count", stats.publishers_count) +
      row("subscribers_count", stats.subscribers_count) +
      row("total_bytes_written", format_size(stats.total_bytes_written)) +
      row("total_bytes_read", format_size(stats.total_bytes_read)) + row("deliveries", stats.deliveries) +
      row("first_offset", stats.first_offset) + row("next_offset", stats.next_offset) +
      row("durable_offset", stats.durable_offset) + row("log_bytes", format_size(stats.log_bytes));
  if (stats.carried_messages > 0)
    text += row("carried_messages", stats.carried_messages) +
            row("carried_bytes", format_size(stats.carried_bytes));
  text += row_if("dropped", stats.dropped) + row_if("rejected", stats.rejected) +
          row_if("refused", stats.refused) + row_if("unclaimed_dropped", stats.unclaimed_dropped) +
          row_if("corrupt", stats.corrupt) + row_if("refused_connections", stats.refused_connections);
  if (!stats.blocked_by.empty()) text += row("blocked_by", stats.blocked_by);
  if (stats.paused) text += row("paused", std::string("yes"));
  for (const GroupStats& group : stats.groups) {
    std::string values = "pending " + format_count(group.pending) + ", ready " + format_count(group.ready) +
                         ", lost " + format_count(group.lost) + ", consumers " +
                         format_count(group.consumers) + ", next_offset " + format_count(group.next_offset) +
                         ", committed_offset " + format_count(group.committed_offset);
    if (group.in_flight > 0) values += ", in_flight " + format_count(group.in_flight);
    if (group.unacknowledged > 0) values += ", unacknowledged " + format_count(group.unacknowledged);
    if (group.retrying > 0) values += ", retrying " + format_count(group.retrying);
    if (group.parked > 0) values += ", parked " + format_count(group.parked);
    if (group.dead_waiting > 0) values += ", dead_waiting " + format_count(group.dead_waiting);
    if (group.dead > 0) values += ", dead " + format_count(group.dead);
    if (group.expired > 0) values += ", expired " + format_count(group.expired);
    if (group.redelivered > 0) values += ", redelivered " + format_count(group.redelivered);
    if (group.oldest_ms > 0)
      values += ", oldest " + format_seconds(static_cast<double>(group.oldest_ms) / 1e3);
    if (group.paused) values += ", paused";
    if (!group.paused_by.empty() && group.paused_by != "command") values += ", paused_by " + group.paused_by;
    if (!group.blocked_by.empty()) values += ", blocked by " + group.blocked_by;
    if (!group.dead_waiting_by.empty()) values += ", dead_waiting by " + group.dead_waiting_by;
    text += row((group.mode == "own" ? "cursor " : "group ") + group.group, values);
  }
  if (stats.delayed) text += row("delayed", delayed_values(*stats.delayed));
  for (const SubscriberStats& subscriber : stats.subscribers) {
    text += row("subscriber",
                subscriber.bind_uri + ", lag " + format_count(subscriber.lag) + ", lost " +
                    format_count(subscriber.lost) + ", delivered " + format_count(subscriber.delivered) +
                    (subscriber.expired > 0 ? ", expired " + format_count(subscriber.expired) : "") +
                    (subscriber.connected ? "" : ", not connected") +
                    (subscriber.blocked_by.empty() ? "" : ", blocked by ") + subscriber.blocked_by);
  }
  return text;
}

/// Returns a row for each limit that has refused something.
std::string limit_rows(const BrokerStats& stats) {
  std::string text;
  for (const auto& [name, refused] : stats.limits_reached) text += row_if("reached " + name, refused);
  return text;
}

std::string table(const BrokerStats& stats) {
  return row("version", stats.version) + row("pid", std::to_string(stats.pid)) +
         row("uptime", format_seconds(static_cast<double>(stats.uptime_ms) / 1e3)) +
         row("data_dir", stats.data_dir) + row("topics", stats.topics) +
         row("connections", stats.connections) + row("messages_received", stats.messages_received) +
         row("messages_sent", stats.messages_sent) + row("deliveries", stats.deliveries) +
         row("total_bytes_written", format_size(stats.total_bytes_written)) +
         row("total_bytes_read", format_size(stats.total_bytes_read)) +
         row("log_bytes", format_size(stats.log_bytes)) + row_if("auth_failures", stats.auth_failures) +
         row_if("throttled_requests", stats.throttled_requests) +
         row_if("refused_connections", stats.refused_connections) +
         row_if("evicted_connections", stats.evicted_connections) + limit_rows(stats) +
         row("encrypted", stats.encrypted  ? "yes"
                          : stats.insecure ? "no, and other machines can reach it"
                                           : "no");
}

/// Returns a line for each topic in columns, and a line with their names.
std::string table(const std::vector<TopicStats>& topics) {
  TextTable text({{"topic"},
                  {"type"},
                  {"received", true},
                  {"sent", true},
                  {"queue", true},
                  {"publishers", true},
                  {"subscribers", true},
                  {"log", true}});
  for (const TopicStats& stats : topics) {
    text.add({stats.topic, std::string(to_word(stats.topic_type)), format_count(stats.messages_received),
              format_count(stats.messages_sent), format_count(stats.queue_size),
              format_count(stats.publishers_count), format_count(stats.subscribers_count),
              format_size(stats.log_bytes)});
  }
  return text.text();
}

/// Received and sent messages, for the rates between two outputs.
struct Counts {
  std::uint64_t received = 0;
  std::uint64_t sent = 0;
};

struct Look {
  std::string text;
  Counts counts;
};

template <typename Stats>
Look look_at(const Stats& stats, bool json) {
  return {json ? protocol::to_json(protocol::Reply(stats)) + "\n" : table(stats),
          {stats.messages_received, stats.messages_sent}};
}

Result<Look> look_at_all(Client& client, bool json) {
  Result<std::vector<TopicStats>> stats = client.stats_of_all();
  if (!stats) return stats.error();
  Look look;
  for (const TopicStats& topic : *stats) {
    look.counts.received += topic.messages_received;
    look.counts.sent += topic.messages_sent;
  }
  look.text = json ? protocol::to_json(protocol::Reply(protocol::StatsAllReply{std::move(*stats), {}})) + "\n"
                   : table(*stats);
  return look;
}

/// Returns the directory of a topic's log, if the broker's data directory is readable here.
std::string directory_of_topic(Client& client, const TopicStats& topic) {
  const bool has_files = topic.topic_type == BrokerType::file || topic.topic_type == BrokerType::queue_file;
  const auto broker = has_files ? client.stats() : Result<BrokerStats>(BrokerStats{});
  if (!broker || broker->data_dir.empty()) return "";
  // Another machine's broker may have a directory of this name.
  const auto here = lightq::detail::read_running_broker(broker->data_dir);
  if (!here || !*here || (*here)->pid != broker->pid) return "";
  const auto found = find_topic_directory(broker->data_dir, topic.topic);
  return found ? *found : "";
}

/// Adds the directory of the topic's log to its statistics.
void add_directory(std::string& text, const std::string& directory, bool json) {
  if (directory.empty()) return;
  if (!json) {
    text += row("directory", directory);
    return;
  }
  text.resize(text.rfind('}'));
  text += JsonObject().add_bytes("directory", directory).text().replace(0, 1, ",") + "\n";
}

Result<Look> look(Client& client, const Common& common, const StatsRequest& request) {
  const std::string& topic = request.topic;
  if (request.all) return look_at_all(client, common.json);
  if (topic.empty()) {
    const Result<BrokerStats> stats = client.stats();
    if (!stats) return stats.error();
    return look_at(*stats, common.json);
  }
  const Result<TopicStats> stats = client.stats(topic);
  if (!stats) return stats.error();
  Look look = look_at(*stats, common.json);
  if (request.with_directory) add_directory(look.text, directory_of_topic(client, *stats), common.json);
  return look;
}

/// Prints statistics repeatedly until a signal arrives or standard output closes.
int watch(Client& client, const Common& common, const StatsRequest& request) {
  const Timeout interval = std::max(request.interval, Timeout(10));  // limits the load on the broker
  const double seconds = std::chrono::duration<double>(interval).count();
  Output out;
  std::optional<Counts> before;
  while (true) {
    Result<Look> now = look(client, common, request);
    if (!now && now.error().code != ErrorCode::timeout) return fail(now.error(), request.topic);
    if (!now) {
      say("the broker does not answer; trying again");
    } else {
      const auto rate = [&](std::uint64_t last, std::uint64_t present) {
        return format_rate(present < last ? 0 : static_cast<double>(present - last) / seconds);
      };
      std::string text = now->text;
      if (!common.json) out.clear_screen();
      if (before && !common.json) {
        text += row("in", rate(before->received, now->counts.received)) +
                row("out", rate(before->sent, now->counts.sent));
      }
      before = now->counts;
      if (!out.write(text) || !out.flush()) return out.failed() ? exit_failure : exit_ok;
    }
    if (!pause_for(interval)) return exit_ok;
  }
}

}  // namespace

int run_stats(const Common& common, const StatsRequest& request) {
  Result<Client> client = open_client(common);
  if (!client) return fail(client.error());
  if (request.watch) return watch(*client, common, request);
  const Result<Look> now = look(*client, common, request);
  if (!now) return fail(now.error(), request.topic);
  Output out;
  out.write(now->text);
  return out.flush() || !out.failed() ? exit_ok : exit_failure;
}

}  // namespace lightq::cli
