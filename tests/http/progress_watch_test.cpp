/// Tests of the search for topics and groups that stand still.
#include "http/progress_watch.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace lightq::broker {

namespace {

using namespace std::chrono_literals;

class ProgressWatchTest : public ::testing::Test {
 protected:
  ProgressWatchTest() {
    topic_.topic = "t";
    topic_.topic_type = protocol::BrokerType::file;
    topic_.next_offset = topic_.durable_offset = 10;
    protocol::GroupStats group;
    group.group = "g";
    group.ready = 3;
    group.free_consumers = 1;
    topic_.groups = {group};
  }
  Standstill round(std::chrono::milliseconds later) {
    now_ += later;
    watch_.begin(now_);
    watch_.see(topic_);
    return watch_.finish();
  }

  protocol::TopicStats topic_;
  ProgressWatch watch_{true};

 private:
  ProgressWatch::Time now_{};
};

TEST_F(ProgressWatchTest, AGroupThatCouldDeliverAndDoesNotStandsStill) {
  EXPECT_EQ(round(0s).groups, 0U) << "nothing to compare with";
  EXPECT_EQ(round(4999ms).groups, 0U);
  EXPECT_EQ(round(1ms).groups, 1U);
  topic_.groups.front().acknowledged = 1;
  EXPECT_EQ(round(5s).groups, 0U) << "it has moved since";
  EXPECT_EQ(round(5s).groups, 1U);
}

TEST_F(ProgressWatchTest, AGroupThatCannotDeliverDoesNotCount) {
  auto& group = topic_.groups.front();
  const auto stands = [&] {
    round(0s);
    return round(5s).groups == 1;
  };
  EXPECT_TRUE(stands());
  group.free_consumers = 0;
  EXPECT_FALSE(stands()) << "no credit";
  group.free_consumers = 1;
  group.ready = 0;
  EXPECT_FALSE(stands()) << "no message";
  group.ready = 1;
  group.paused_by = "failing";
  EXPECT_FALSE(stands());
  group.paused_by.clear();
  topic_.paused = true;
  EXPECT_FALSE(stands());
  topic_.paused = false;
  EXPECT_EQ(round(0s).groups, 0U) << "it begins anew when it can deliver again";
  EXPECT_EQ(round(5s).groups, 1U);
}

TEST_F(ProgressWatchTest, WhatDoesNotBecomeDurableCounts) {
  topic_.groups.clear();
  topic_.next_offset = 11;
  round(0s);
  EXPECT_EQ(round(5s).flushes, 1U);
  topic_.durable_offset = 11;
  EXPECT_EQ(round(5s).flushes, 0U);
  topic_.next_offset = 12;
  EXPECT_EQ(round(0s).flushes, 0U);
  topic_.topic_type = protocol::BrokerType::queue;
  EXPECT_EQ(round(5s).flushes, 0U) << "nothing of it is ever durable";
}

TEST_F(ProgressWatchTest, TopicsThatWaitForTheDiskCountAtOnce) {
  topic_.blocked_by = "disk";
  EXPECT_EQ(round(0s).on_disk, 1U);
  topic_.blocked_by = "group:g";
  EXPECT_EQ(round(0s).on_disk, 0U);
}

}  // namespace

}  // namespace lightq::broker
