/// Tests of live statistics: which topics an event has, and when the next one is made.
#include "http/streams/stats_stream.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "http/streams/stats_text.hpp"

namespace lightq::broker {

namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

protocol::TopicStats topic_with(const std::string& name, std::uint64_t received, std::uint64_t age_ms = 0) {
  protocol::TopicStats stats;
  stats.topic = name;
  stats.messages_received = received;
  stats.oldest_ms = age_ms;
  stats.groups.emplace_back().oldest_ms = age_ms;
  return stats;
}

TEST(StatsText, HasOnlyTopicsThatHaveChanged) {
  StatsText text(10);
  text.begin_round();
  EXPECT_TRUE(text.add(topic_with("a", 1, 10)));
  EXPECT_TRUE(text.add(topic_with("b", 1)));
  const std::string first = text.take_last({});
  EXPECT_THAT(first, StartsWith("event: stats\ndata: {\"topics\":[{\"topic\":\"a\""));
  EXPECT_THAT(first, HasSubstr("},{\"topic\":\"b\""));
  EXPECT_THAT(first, HasSubstr("],\"complete\":true,\"gone\":[],\"partial\":false}\n\n"));
  text.begin_round();
  EXPECT_TRUE(text.add(topic_with("a", 1, 1010)));  // only its age has grown
  EXPECT_TRUE(text.add(topic_with("b", 2)));
  const std::string second = text.take_last({});
  EXPECT_THAT(second, StartsWith("event: stats\ndata: {\"topics\":[{\"topic\":\"b\""));
  EXPECT_THAT(second, Not(HasSubstr("\"a\"")));
}

TEST(StatsText, NamesTopicsThatAreGoneOnce) {
  StatsText text(10);
  text.begin_round();
  EXPECT_TRUE(text.add(topic_with("a", 1)));
  EXPECT_THAT(text.take(), HasSubstr("],\"complete\":false}\n\n"));
  EXPECT_THAT(text.take_last({}), HasSubstr("\"gone\":[]"));
  text.begin_round();
  EXPECT_THAT(text.take_last({}), HasSubstr("\"gone\":[\"a\"]"));
  text.begin_round();
  EXPECT_THAT(text.take_last({}), HasSubstr("\"gone\":[]"));
}

TEST(StatsText, HasABoundOnTopicsAndSaysSo) {
  StatsText text(1);
  text.begin_round();
  EXPECT_TRUE(text.add(topic_with("a", 1)));
  EXPECT_FALSE(text.add(topic_with("b", 1)));
  const std::string event = text.take_last({});
  EXPECT_THAT(event, HasSubstr("\"partial\":true"));
  EXPECT_THAT(event, Not(HasSubstr("\"b\"")));
}

TEST(StatsText, ATopicBeforeTheOthersTakesThePlaceOfTheLastOneOnly) {
  StatsText text(2);
  text.begin_round();
  EXPECT_TRUE(text.add(topic_with("b", 1)));
  EXPECT_TRUE(text.add(topic_with("c", 1)));
  EXPECT_THAT(text.take_last({}), HasSubstr("\"partial\":false"));
  text.begin_round();
  EXPECT_TRUE(text.add(topic_with("a", 1)));
  EXPECT_TRUE(text.add(topic_with("b", 1)));
  EXPECT_FALSE(text.add(topic_with("c", 1)));
  const std::string event = text.take_last({});
  EXPECT_THAT(event, HasSubstr("\"topics\":[{\"topic\":\"a\""));
  EXPECT_THAT(event, HasSubstr("\"gone\":[\"c\"]"));
  EXPECT_THAT(event, HasSubstr("\"partial\":true"));
}

TEST(StatsText, HasTheBrokerIfAsked) {
  StatsText text(1);
  text.begin_round();
  BrokerFigures figures;
  figures.stats.version = "9.9";
  EXPECT_THAT(text.take_last(figures), Not(HasSubstr("\"process\"")));
  figures.process.emplace().descriptors_max = 77;
  figures.process->memory_max_bytes = 78;
  figures.disk = DiskUse{.size_bytes = 3, .free_bytes = 2, .free_bytes_min = 1};
  const std::string event = text.take_last(figures);
  EXPECT_THAT(event, HasSubstr("\"broker\":{\"version\":\"9.9\""));
  EXPECT_THAT(event, HasSubstr("\"descriptors_max\":77"));
  EXPECT_THAT(event, HasSubstr("\"memory_max_bytes\":78"));
  EXPECT_THAT(event, HasSubstr(R"("disk":{"size_bytes":3,"free_bytes":2,"free_bytes_min":1})"));
}

/// Keeps timers until the test runs them.
class TimerLoop final : public HttpLoop {
 public:
  void post(Task task) override { task(); }
  void after(std::chrono::milliseconds /*delay*/, Task task) override { timers_.push_back(std::move(task)); }
  std::size_t run_timers() {
    const auto due = std::exchange(timers_, {});
    for (const Task& task : due) task();
    return due.size();
  }

 private:
  std::vector<Task> timers_;
};

class StatsStreamTest : public ::testing::Test {
 protected:
  void open() {
    std::make_shared<StatsStream>(
        StatsStream::Parts{.loop = loop_,
                           .at_control =
                               [this](const std::function<void(Operations&)>& /*work*/) {
                                 ++questions_;
                                 return !is_busy_;
                               },
                           .control_connections = {},
                           .http_connections = {},
                           .disk = {},
                           .asker = {},
                           .reply = [this](HttpResponse response) { response_ = std::move(response); },
                           .send_more = {},
                           .place = place_})
        ->begin();
  }

  TimerLoop loop_;
  HttpResponse response_;
  std::shared_ptr<int> place_ = std::make_shared<int>(0);
  int questions_ = 0;
  bool is_busy_ = false;
};

TEST_F(StatsStreamTest, AsksOnlyOnceTheViewerHasTakenTheLastEvent) {
  open();
  EXPECT_TRUE(response_.is_stream);
  EXPECT_EQ(questions_, 0);
  response_.taken();
  EXPECT_EQ(questions_, 1);
  EXPECT_EQ(loop_.run_timers(), 0U) << "the answer is under way";
  EXPECT_EQ(questions_, 1);
  response_.taken();
  EXPECT_EQ(questions_, 2) << "the next page";
}

TEST_F(StatsStreamTest, TriesAgainLaterIfTheBrokerIsBusy) {
  is_busy_ = true;
  open();
  response_.taken();
  EXPECT_EQ(questions_, 1);
  EXPECT_EQ(loop_.run_timers(), 1U);
  EXPECT_EQ(questions_, 2);
}

TEST_F(StatsStreamTest, GivesItsPlaceBackWithTheConnection) {
  is_busy_ = true;
  open();
  response_.taken();
  EXPECT_EQ(place_.use_count(), 2);
  response_.not_sent();
  response_ = {};
  EXPECT_EQ(place_.use_count(), 1);
  loop_.run_timers();
  EXPECT_EQ(questions_, 1);
}

}  // namespace

}  // namespace lightq::broker
