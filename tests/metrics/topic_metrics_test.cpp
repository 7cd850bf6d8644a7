/// Tests of the metrics of topics and groups.
#include "metrics/topic_metrics.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lightq::broker {

namespace {

using protocol::GroupStats;
using protocol::TopicStats;
using ::testing::HasSubstr;
using ::testing::Not;

GroupStats group_named(const std::string& name, const std::string& mode = "group") {
  GroupStats group;
  group.group = name;
  group.mode = mode;
  group.ready = 3;
  group.acknowledged = 5;
  group.consumers = 1;
  return group;
}

TopicStats topic_named(const std::string& name) {
  TopicStats topic;
  topic.topic = name;
  topic.messages_received = 10;
  topic.first_offset = 2;
  topic.next_offset = 10;
  topic.groups = {group_named("g")};
  return topic;
}

std::string written(const std::vector<TopicStats>& topics, const TopicDetail& detail = {}) {
  TopicMetrics metrics(detail);
  for (const TopicStats& topic : topics) metrics.add(topic);
  MetricText text(MetricFormat::prometheus);
  metrics.write(text);
  return text.finish();
}

TEST(TopicMetrics, HaveASeriesForEachTopicAndGroup) {
  const std::string text = written({topic_named("a"), topic_named("b")});
  EXPECT_THAT(text, HasSubstr("lightq_topics{kind=\"shown\"} 2\nlightq_topics{kind=\"summed\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("lightq_topic_messages_in_total{topic=\"a\"} 10\n"
                              "lightq_topic_messages_in_total{topic=\"b\"} 10\n"));
  EXPECT_THAT(text, HasSubstr("lightq_topic_messages{topic=\"a\",state=\"stored\"} 8\n"));
  EXPECT_THAT(text, HasSubstr("lightq_group_messages{topic=\"a\",group=\"g\",state=\"ready\"} 3\n"));
  EXPECT_THAT(text,
              HasSubstr("lightq_group_outcomes_total{topic=\"b\",group=\"g\",outcome=\"acknowledged\"} 5\n"));
}

TEST(TopicMetrics, SumTheTopicsThatAreTooMany) {
  const std::string text = written({topic_named("a"), topic_named("b"), topic_named("c")}, {.topics_max = 1});
  EXPECT_THAT(text, HasSubstr("lightq_topics{kind=\"shown\"} 1\nlightq_topics{kind=\"summed\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("lightq_topic_messages_in_total{topic=\"a\"} 10\n"
                              "lightq_topic_messages_in_total{topic=\"_other\"} 20\n"));
  EXPECT_THAT(text,
              HasSubstr("lightq_group_messages{topic=\"_other\",group=\"_other\",state=\"ready\"} 6\n"));
  EXPECT_THAT(text, Not(HasSubstr("lightq_topic_next_offset{topic=\"_other\"}")))
      << "a sum of offsets means nothing";
}

TEST(TopicMetrics, ATopicCalledOtherIsSummedWithTheOthers) {
  const std::string text = written({topic_named("_other"), topic_named("b")}, {.topics_max = 1});
  EXPECT_THAT(text, HasSubstr("lightq_topic_messages_in_total{topic=\"b\"} 10\n"
                              "lightq_topic_messages_in_total{topic=\"_other\"} 10\n"));
}

TEST(TopicMetrics, CursorsOfSingleConsumersAreOneSeries) {
  TopicStats topic = topic_named("a");
  topic.groups = {group_named("reader-1", "own"), group_named("reader-2", "own"), group_named("_own")};
  const std::string text = written({topic});
  EXPECT_THAT(text, HasSubstr("lightq_group_members{topic=\"a\",group=\"_own\"} 3\n"));
  EXPECT_THAT(text, Not(HasSubstr("reader-")));
}

TEST(TopicMetrics, RareCountersAppearWhenTheyCount) {
  TopicStats topic = topic_named("a");
  EXPECT_THAT(written({topic}), Not(HasSubstr("dropped")));
  EXPECT_THAT(written({topic}, {.zeros = true}),
              HasSubstr("lightq_topic_dropped_messages_total{topic=\"a\"} 0\n"));
  topic.dropped = 4;
  EXPECT_THAT(written({topic}), HasSubstr("lightq_topic_dropped_messages_total{topic=\"a\"} 4\n"));
}

TEST(TopicMetrics, OnlyTopicsInFilesHaveDiskBytesAndADurableOffset) {
  TopicStats memory = topic_named("memory");
  memory.log_bytes = 100;
  TopicStats file = topic_named("file");
  file.topic_type = protocol::BrokerType::file;
  file.log_bytes = 100;
  file.carried_bytes = 30;
  const std::string text = written({memory, file});
  EXPECT_THAT(text, HasSubstr("lightq_topic_disk_bytes{topic=\"file\",kind=\"live\"} 70\n"
                              "lightq_topic_disk_bytes{topic=\"file\",kind=\"carried\"} 30\n"));
  EXPECT_THAT(text, HasSubstr("lightq_topic_durable_offset{topic=\"file\"} 0\n"));
  EXPECT_THAT(text, Not(HasSubstr("disk_bytes{topic=\"memory\"")));
}

TEST(TopicMetrics, TimesAreInSeconds) {
  TopicStats topic = topic_named("a");
  topic.oldest_ms = 1500;
  topic.blocked_ms = 250;
  topic.groups.front().oldest_ms = 2000;
  topic.groups.front().next_due_ms = 1'700'000'000'500;
  const std::string text = written({topic});
  EXPECT_THAT(text, HasSubstr("lightq_topic_oldest_message_age_seconds{topic=\"a\"} 1.5\n"));
  EXPECT_THAT(text, HasSubstr("lightq_topic_producers_blocked_seconds_total{topic=\"a\"} 0.25\n"));
  EXPECT_THAT(text, HasSubstr("lightq_group_lag_seconds{topic=\"a\",group=\"g\"} 2\n"));
  EXPECT_THAT(text,
              HasSubstr("lightq_group_next_due_timestamp_seconds{topic=\"a\",group=\"g\"} 1700000000.5\n"));
}

}  // namespace

}  // namespace lightq::broker
