/// The metrics of topics and groups, made of their statistics. Layer: metrics.
#include "metrics/topic_metrics.hpp"

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace lightq::broker {

namespace {

using protocol::GroupStats;
using protocol::TopicStats;

constexpr std::string_view other_name = "_other";
constexpr std::string_view own_name = "_own";
/// The value of a metric that the topic or group does not have.
constexpr std::uint64_t none = std::numeric_limits<std::uint64_t>::max();

enum class Shown : std::uint8_t {
  always,
  unless_zero,  ///< also with TopicDetail::zeros
};
enum class Sum : std::uint8_t { yes, no };

/// One series of each topic or group. Entries of the same metric follow one another.
template <typename Stats>
struct Entry {
  MetricInfo info;
  std::string_view label;  ///< with a comma in front; empty: the metric has one series
  std::uint64_t (*read)(const Stats& stats);
  Shown shown = Shown::always;
  Sum sum = Sum::yes;
  std::uint64_t per_unit = 1;  ///< of the result of `read`, in one unit of the metric
};

constexpr auto counter = MetricType::counter;
constexpr auto gauge = MetricType::gauge;
constexpr std::uint64_t ms_per_second = 1000;

bool is_durable(const TopicStats& topic) {
  return topic.topic_type == protocol::BrokerType::file ||
         topic.topic_type == protocol::BrokerType::queue_file;
}

constexpr MetricInfo topic_messages = {"lightq_topic_messages", gauge,
                                       "Messages that the topic has now, by state."};
constexpr MetricInfo topic_disk = {"lightq_topic_disk_bytes", gauge,
                                   "Bytes of the topic's files, by their purpose."};

const Entry<TopicStats> topic_table[] = {
    {{"lightq_topic_messages_in_total", counter, "Messages appended to the topic's log."},
     "",
     [](const TopicStats& of) { return of.messages_received; }},
    {{"lightq_topic_bytes_in_total", counter, "Bytes of messages appended to the topic's log."},
     "",
     [](const TopicStats& of) { return of.total_bytes_written; }},
    {{"lightq_topic_messages_out_total", counter,
      "Copies of messages given to consumers, redeliveries included."},
     "",
     [](const TopicStats& of) { return of.messages_out; }},
    {{"lightq_topic_bytes_out_total", counter, "Bytes of messages given to consumers."},
     "",
     [](const TopicStats& of) { return of.total_bytes_read; }},
    {topic_messages, ",state=\"stored\"",
     [](const TopicStats& of) { return of.next_offset - of.first_offset; }},
    {topic_messages, ",state=\"delayed\"",
     [](const TopicStats& of) { return of.delayed ? of.delayed->messages : 0; }, Shown::unless_zero},
    {topic_disk, ",kind=\"live\"",
     [](const TopicStats& of) {
       return is_durable(of) ? of.log_bytes - std::min(of.log_bytes, of.carried_bytes) : none;
     }},
    {topic_disk, ",kind=\"carried\"",
     [](const TopicStats& of) { return is_durable(of) ? of.carried_bytes : none; }, Shown::unless_zero},
    {topic_disk, ",kind=\"delayed\"",
     [](const TopicStats& of) { return is_durable(of) && of.delayed ? of.delayed->bytes : none; },
     Shown::unless_zero},
    {{"lightq_topic_first_offset", gauge, "Offset of the oldest stored message."},
     "",
     [](const TopicStats& of) { return of.first_offset; },
     Shown::always,
     Sum::no},
    {{"lightq_topic_next_offset", gauge, "Offset that the next message gets."},
     "",
     [](const TopicStats& of) { return of.next_offset; },
     Shown::always,
     Sum::no},
    {{"lightq_topic_durable_offset", gauge,
      "End of the messages that survive a power cut; topics in files only."},
     "",
     [](const TopicStats& of) { return is_durable(of) ? of.durable_offset : none; },
     Shown::always,
     Sum::no},
    {{"lightq_topic_oldest_message_age_seconds", gauge, "Time since the oldest stored message was appended."},
     "",
     [](const TopicStats& of) { return of.oldest_ms; },
     Shown::unless_zero,
     Sum::no,
     ms_per_second},
    {{"lightq_topic_dropped_messages_total", counter,
      "Messages dropped for newer ones, or because no consumer was there."},
     "",
     [](const TopicStats& of) { return of.dropped; },
     Shown::unless_zero},
    {{"lightq_topic_rejected_messages_total", counter, "Messages rejected because the topic was full."},
     "",
     [](const TopicStats& of) { return of.rejected; },
     Shown::unless_zero},
    {{"lightq_topic_refused_messages_total", counter, "Messages refused because they were too large."},
     "",
     [](const TopicStats& of) { return of.refused; },
     Shown::unless_zero},
    {{"lightq_topic_corrupt_messages_total", counter, "Messages lost to damage on the disk."},
     "",
     [](const TopicStats& of) { return of.corrupt; },
     Shown::unless_zero},
    {{"lightq_topic_duplicate_messages_total", counter,
      "Messages that a producer sent again, and that were stored already."},
     "",
     [](const TopicStats& of) { return of.duplicates; },
     Shown::unless_zero},
    {{"lightq_topic_producers_blocked_seconds_total", counter, "Time in which producers waited for space."},
     "",
     [](const TopicStats& of) { return of.blocked_ms; },
     Shown::unless_zero,
     Sum::yes,
     ms_per_second},
};

constexpr MetricInfo group_messages = {"lightq_group_messages", gauge,
                                       "Messages that the group is not done with, by state."};
constexpr MetricInfo group_outcomes = {"lightq_group_outcomes_total", counter,
                                       "Ends of deliveries, by outcome."};

const Entry<GroupStats> group_table[] = {
    {group_messages, ",state=\"ready\"", [](const GroupStats& of) { return of.ready; }},
    {group_messages, ",state=\"in_flight\"", [](const GroupStats& of) { return of.in_flight; },
     Shown::unless_zero},
    {group_messages, ",state=\"retrying\"", [](const GroupStats& of) { return of.retrying; },
     Shown::unless_zero},
    {group_messages, ",state=\"parked\"", [](const GroupStats& of) { return of.parked; }, Shown::unless_zero},
    {group_messages, ",state=\"dead_waiting\"", [](const GroupStats& of) { return of.dead_waiting; },
     Shown::unless_zero},
    {group_outcomes, ",outcome=\"acknowledged\"", [](const GroupStats& of) { return of.acknowledged; }},
    {group_outcomes, ",outcome=\"released\"", [](const GroupStats& of) { return of.released; },
     Shown::unless_zero},
    {group_outcomes, ",outcome=\"failed\"", [](const GroupStats& of) { return of.failed; },
     Shown::unless_zero},
    {group_outcomes, ",outcome=\"timed_out\"", [](const GroupStats& of) { return of.timed_out; },
     Shown::unless_zero},
    {group_outcomes, ",outcome=\"lost_with_session\"",
     [](const GroupStats& of) { return of.lost_with_session; }, Shown::unless_zero},
    {group_outcomes, ",outcome=\"revoked\"", [](const GroupStats& of) { return of.revoked; },
     Shown::unless_zero},
    {{"lightq_group_dead_messages_total", counter,
      "Messages that died: parked, or for the dead-letter topic."},
     "",
     [](const GroupStats& of) { return of.dead; },
     Shown::unless_zero},
    {{"lightq_group_expired_messages_total", counter,
      "Messages that were not done when their time to live was over."},
     "",
     [](const GroupStats& of) { return of.expired; },
     Shown::unless_zero},
    {{"lightq_group_lag_seconds", gauge,
      "Time since the oldest message was appended that the group is not done with."},
     "",
     [](const GroupStats& of) { return of.oldest_ms; },
     Shown::unless_zero,
     Sum::no,
     ms_per_second},
    {{"lightq_group_members", gauge, "Consumers of the group that are connected."},
     "",
     [](const GroupStats& of) { return of.consumers; }},
    {{"lightq_group_lost_messages", gauge, "Messages that were dropped before the group was done with them."},
     "",
     [](const GroupStats& of) { return of.lost; },
     Shown::unless_zero},
    {{"lightq_group_ack_holes", gauge,
      "Messages that are done behind one that is not: holes in the work that is left."},
     "",
     [](const GroupStats& of) { return of.ack_holes; },
     Shown::unless_zero},
    {{"lightq_group_next_due_timestamp_seconds", gauge,
      "When the next message of the group is due for another attempt."},
     "",
     [](const GroupStats& of) { return of.next_due_ms == 0 ? none : of.next_due_ms; },
     Shown::always,
     Sum::no,
     ms_per_second},
    {{"lightq_group_paused", gauge, "1 while the group itself is paused."},
     "",
     [](const GroupStats& of) { return std::uint64_t{of.paused_by.empty() ? 0U : 1U}; },
     Shown::unless_zero},
};

template <typename Stats, std::size_t size>
std::vector<std::uint64_t> values_of(const Entry<Stats> (&table)[size], const Stats& stats) {
  std::vector<std::uint64_t> values(size);
  for (std::size_t i = 0; i < size; ++i) values[i] = table[i].read(stats);
  return values;
}

/// Adds a topic or group to a sum. A value that is no sum stays none.
template <typename Stats, std::size_t size>
void add_values(const Entry<Stats> (&table)[size], const Stats& stats, std::vector<std::uint64_t>& sums) {
  if (sums.empty()) sums.assign(size, none);
  for (std::size_t i = 0; i < size; ++i) {
    const std::uint64_t value = table[i].sum == Sum::yes ? table[i].read(stats) : none;
    if (value != none) sums[i] = (sums[i] == none ? 0 : sums[i]) + value;
  }
}

template <typename Stats, std::size_t size, typename Rows>
void write_table(const Entry<Stats> (&table)[size], const Rows& rows, bool zeros, MetricText& text) {
  std::string labels;
  for (std::size_t i = 0; i < size; ++i) {
    const Entry<Stats>& entry = table[i];
    if (i == 0 || table[i - 1].info.name != entry.info.name) text.begin(entry.info);
    for (const auto& row : rows) {
      const std::uint64_t value = row.values[i];
      if (value == none || (value == 0 && entry.shown == Shown::unless_zero && !zeros)) continue;
      labels.assign(row.labels).append(entry.label);
      if (entry.per_unit == 1) {
        text.sample(labels, value);
      } else {
        text.sample(labels, static_cast<double>(value) / static_cast<double>(entry.per_unit));
      }
    }
  }
}

std::string label(std::string_view name, std::string_view value) {
  return std::string(name).append("=\"").append(escaped_label(value)).append("\"");
}

}  // namespace

/// The topics without series of their own, and their groups.
struct TopicMetrics::Sums {
  std::uint64_t topics = 0;
  Row of_topics;
  Row of_groups;
};

TopicMetrics::TopicMetrics(const TopicDetail& detail) : detail_(detail), other_(std::make_unique<Sums>()) {}

TopicMetrics::~TopicMetrics() = default;

void TopicMetrics::add(const TopicStats& topic) {
  if (topics_.size() < detail_.topics_max && topic.topic != other_name) {
    const std::string labels = label("topic", topic.topic);
    topics_.push_back({labels, values_of(topic_table, topic)});
    return add_groups(topic, labels);
  }
  ++other_->topics;
  add_values(topic_table, topic, other_->of_topics.values);
  for (const GroupStats& group : topic.groups) add_values(group_table, group, other_->of_groups.values);
}

void TopicMetrics::add_groups(const TopicStats& topic, const std::string& topic_label) {
  Row own{topic_label + "," + label("group", own_name), {}};
  for (const GroupStats& group : topic.groups) {
    if (group.mode == "own" || group.group == own_name) {
      add_values(group_table, group, own.values);
    } else {
      groups_.push_back({topic_label + "," + label("group", group.group), values_of(group_table, group)});
    }
  }
  if (!own.values.empty()) groups_.push_back(std::move(own));
}

void TopicMetrics::write(MetricText& text) const {
  std::vector<Row> topics = topics_;
  std::vector<Row> groups = groups_;
  if (other_->topics > 0) topics.push_back({label("topic", other_name), other_->of_topics.values});
  if (!other_->of_groups.values.empty())
    groups.push_back(
        {label("topic", other_name) + "," + label("group", other_name), other_->of_groups.values});
  text.begin({"lightq_topics", gauge, "Topics, by whether they have series of their own or are summed."});
  text.sample("kind=\"shown\"", std::uint64_t{topics_.size()});
  text.sample("kind=\"summed\"", other_->topics);
  write_table(topic_table, topics, detail_.zeros, text);
  write_table(group_table, groups, detail_.zeros, text);
}

}  // namespace lightq::broker
