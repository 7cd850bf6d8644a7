/// A group with settings, for tests of messages that fail.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "delivery/consumer_group_harness.hpp"

namespace lightq::broker {

using namespace std::chrono_literals;
using test::asked;
using test::FakeRecordSink;
using test::Member;
using Strings = std::vector<std::string>;

class GroupFailuresTest : public testing::Test, protected test::GroupWorld {
 protected:
  GroupFailuresTest() : GroupWorld(0x100000) {}

  void set(std::uint32_t max_attempts, std::vector<std::uint32_t> backoff_ms = {},
           std::string dead_letters = "") {
    settings = {};
    settings.max_attempts = max_attempts;
    settings.backoff_ms = std::move(backoff_ms);
    settings.dead_letter_topic = std::move(dead_letters);
    topic.groups().set_settings("default", {settings, letters});
    dispatch();
  }
  ConsumeRequest with_leases() {
    auto open = asked();
    open.leases = true;
    return open;
  }
  void start(Member& member, OffsetRange range) {
    member.group->start(*member.member, {std::nullopt, {range}, 1}, now);
  }
  void kill(Member& member, OffsetRange range, std::string reason = "") {
    Rejection rejection{0, {range}};
    rejection.kind = RejectKind::dead;
    rejection.reason = std::move(reason);
    member.group->reject(*member.member, rejection, now, wall);
  }
  /// Ends the member's session.
  void end(Member& member) {
    topic.groups().detach(*member.group, *std::exchange(member.member, nullptr), now);
  }
  ConsumerGroup& group() { return *topic.groups().plain(); }
  std::vector<DeadMessage> dead(const DeadFilter& filter = {}) {
    return group().dead().list(filter, Offset{0}, 100).messages;
  }
  std::uint64_t retry_all() { return group().dead().retry({}, Offset{0}).messages; }
  /// Replaces the group by one that was saved and restored.
  void restart(Member& joins) {
    const auto stored = test::stored_cursors(topic.groups(), clocks());
    restarted = std::make_unique<test::GroupWorld>(0x100000);
    restarted->now = now;
    restarted->wall = wall;
    restarted->publish_numbers(0, static_cast<int>(topic.log().next_offset().value));
    restarted->topic.groups().set_settings("default", {settings, letters});
    test::restore_cursors(restarted->topic, stored, clocks());
    EXPECT_EQ(restarted->join(joins, asked()), ClientError::none);
    restarted->dispatch();
  }

  static constexpr TopicId letters{9};  // the dead-letter topic
  protocol::GroupSettings settings;
  std::unique_ptr<test::GroupWorld> restarted;
  Member one;
  Member two;
};

}  // namespace lightq::broker
