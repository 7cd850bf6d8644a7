/// Tests of transfers and deaths while the log drops their messages, and of new incarnations.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "delivery/consumer_group_harness.hpp"

namespace lightq::broker {
namespace {

class DroppedTransferTest : public testing::Test {
 protected:
  DroppedTransferTest() {
    protocol::GroupSettings settings;
    settings.max_attempts = 1;
    settings.dead_letter_topic = "letters";
    world.topic.groups().set_settings("default", {settings, letters});
    world.join(member, test::asked());
    world.publish_numbers(0, 10);
    world.dispatch();
    Rejection rejection{0, {{{0}, {10}}}};
    rejection.kind = RejectKind::dead;
    member.group->reject(*member.member, rejection, world.now, world.wall);
  }
  void drop_all_from_the_log() {
    const std::string large(16 * limits::KiB, 'x');
    for (int i = 0; i < 20; ++i) world.publish({large});
    world.dispatch();
  }
  GroupDead dead() { return member.group->dead(); }

  static constexpr TopicId letters{9};
  test::GroupWorld world{protocol::BrokerType::queue, protocol::Overflow::drop_oldest, 64 * limits::KiB};
  test::Member member;
};

// The target may have the messages under way. If their numbers changed, it would store others again.
TEST_F(DroppedTransferTest, MessagesUnderWayKeepTheirNumbersWhenTheLogDropsThem) {
  ASSERT_EQ(dead().begin(3, letters), 3U);
  const std::uint64_t incarnation = dead().incarnation();
  drop_all_from_the_log();
  EXPECT_EQ(dead().waiting(), 3U) << "the others are lost";
  EXPECT_EQ(dead().incarnation(), incarnation);
  const auto under_way = dead().under_way();
  ASSERT_EQ(under_way.size(), 3U);
  for (std::uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(under_way[i].number, 1 + i);
    EXPECT_EQ(under_way[i].message.offset, Offset{i});
    EXPECT_EQ(under_way[i].message.cause, DeathCause::rejected);
  }
  for (std::uint64_t number = 1; number <= 3; ++number) EXPECT_TRUE(dead().done(incarnation, number));
  EXPECT_EQ(dead().waiting(), 0U);
  EXPECT_GE(member.group->committed(), Offset{10});
}

// The group is saved when its version has changed.
TEST_F(DroppedTransferTest, AMessageUnderWayBelowTheLogChangesTheGroupOnce) {
  ASSERT_EQ(dead().begin(3, letters), 3U);
  drop_all_from_the_log();
  const auto group_version = [&] { return member.group->messages().version(); };
  const GroupVersion before = group_version();
  for (int i = 0; i < 3; ++i) world.dispatch();
  EXPECT_EQ(group_version(), before);
  world.publish({std::string(60 * limits::KiB, 'x')});
  world.dispatch();
  EXPECT_EQ(dead().waiting(), 3U) << "those under way stay when the log drops more";
  EXPECT_EQ(dead().begin(10, letters), 3U);
}

// A message in flight that is below the log's first offset may die later than the others.
TEST_F(DroppedTransferTest, AMessageThatReturnsBelowTheLogIsGivenUp) {
  ASSERT_EQ(dead().begin(1, letters), 1U);
  drop_all_from_the_log();
  const std::uint64_t lost = member.group->messages().loss().trimmed;
  member.group->messages().redelivery().add({{5}, {7}}, 1);
  world.dispatch();
  EXPECT_EQ(member.group->messages().loss().trimmed, lost + 2);
  EXPECT_EQ(member.group->messages().redelivery().ready_messages(), 0U);
}

TEST_F(DroppedTransferTest, AMessageUnderWayThatCanNoLongerBeReadIsLost) {
  ASSERT_EQ(dead().begin(3, letters), 3U);
  const std::uint64_t incarnation = dead().incarnation();
  drop_all_from_the_log();
  const std::uint64_t before = world.stats().lost;
  EXPECT_TRUE(dead().done(incarnation, 1)) << "the target has it";
  EXPECT_TRUE(dead().lose(incarnation, 2));
  EXPECT_FALSE(dead().lose(incarnation, 2));
  EXPECT_TRUE(dead().lose(incarnation, 3));
  EXPECT_EQ(dead().waiting(), 0U);
  EXPECT_EQ(world.stats().lost, before + 2);
  EXPECT_EQ(world.stats().dead_waiting, 0U);
}

TEST_F(DroppedTransferTest, ARenewedOutboxGivesNoNumberAgain) {
  ASSERT_EQ(dead().begin(2, letters), 2U);
  const std::uint64_t incarnation = dead().incarnation();
  ASSERT_TRUE(dead().done(incarnation, 1));
  dead().renew();
  EXPECT_TRUE(dead().under_way().empty()) << "the target has none of them";
  EXPECT_EQ(dead().waiting(), 9U);
  ASSERT_EQ(dead().begin(1, letters), 1U);
  EXPECT_NE(dead().incarnation(), incarnation);
  EXPECT_EQ(dead().under_way().front().message.offset, Offset{1});
}

// Numbers belong to one target. Messages under way have them until that target was asked.
TEST_F(DroppedTransferTest, NumbersBelongToOneTarget) {
  constexpr TopicId other{10};
  EXPECT_EQ(dead().begin(2, {}), 0U) << "to no topic";
  ASSERT_EQ(dead().begin(2, letters), 2U);
  const std::uint64_t incarnation = dead().incarnation();
  EXPECT_EQ(dead().begin(5, other), 2U);
  EXPECT_EQ(dead().target(), letters);
  EXPECT_EQ(dead().incarnation(), incarnation);
  EXPECT_TRUE(dead().done(incarnation, 1) && dead().done(incarnation, 2));
  ASSERT_EQ(dead().begin(1, other), 1U);
  EXPECT_EQ(dead().target(), other);
  EXPECT_NE(dead().incarnation(), incarnation);
  EXPECT_EQ(dead().under_way().front().number, 1U);
}

/// A member has all messages when the log drops them.
class DroppedInFlightTest : public testing::Test {
 protected:
  void begin(std::uint32_t max_attempts, const ConsumeRequest& request) {
    protocol::GroupSettings settings;
    settings.max_attempts = max_attempts;
    world.topic.groups().set_settings("default", {settings, {}});
    world.join(member, request);
    world.publish_numbers(0, 10);
    world.dispatch();
  }
  /// Publishes messages that a member receives which has credit.
  void drop_all_from_the_log() {
    for (int i = 0; i < 20; ++i) world.publish({large});
    world.dispatch();
  }
  void kill(OffsetRange range) {
    Rejection rejection{0, {range}};
    rejection.kind = RejectKind::dead;
    member.group->reject(*member.member, rejection, world.now, world.wall);
  }
  [[nodiscard]] std::uint64_t pending() const {
    const protocol::GroupStats stats = world.stats();
    return stats.ready + stats.in_flight + stats.retrying + stats.parked + stats.dead_waiting;
  }

  const std::string large = std::string(16 * limits::KiB, 'x');
  test::GroupWorld world{protocol::BrokerType::queue, protocol::Overflow::drop_oldest, 64 * limits::KiB};
  test::Member member;
};

TEST_F(DroppedInFlightTest, ADroppedMessageThatFailsForGoodIsLostAndNotDead) {
  ConsumeRequest request = test::asked();
  request.credit.messages = 10;
  begin(1, request);
  drop_all_from_the_log();
  const protocol::GroupStats before = world.stats();
  const std::uint64_t pending_before = pending();
  kill({{0}, {3}});
  world.reject(member, {{3}, {5}});
  const protocol::GroupStats after = world.stats();
  EXPECT_EQ(after.failed, 5U);
  EXPECT_EQ(after.dead, 0U);
  EXPECT_EQ(after.parked, 0U);
  EXPECT_EQ(after.lost, before.lost + 5);
  EXPECT_EQ(pending(), pending_before - 5);
  world.dispatch();
  EXPECT_EQ(world.stats().lost, before.lost + 5) << "each once";
}

// The log drops messages while a batch is published; requests come before the next dispatch.
TEST_F(DroppedInFlightTest, ADropCountsBeforeTheNextDispatch) {
  ConsumeRequest request = test::asked();
  request.credit.messages = 10;
  begin(1, request);
  for (int i = 0; i < 20; ++i) world.publish({large});
  kill({{0}, {1}});
  EXPECT_EQ(world.stats().dead, 0U);
  EXPECT_EQ(world.stats().parked, 0U);
}

// Two consumers without leases. Message 0, a suspect, is taken back from one and was dropped.
TEST_F(DroppedInFlightTest, NobodyWaitsForASuspectThatTheLogHasDropped) {
  ConsumeRequest request = test::asked();
  request.credit.messages = 12;
  request.ack_timeout_ms = 1000;
  begin(4, request);
  world.acknowledge(member, {{{1}, {10}}});
  world.reject(member, {{0}, {1}});
  world.dispatch();
  world.reject(member, {{0}, {1}});
  world.dispatch();
  ASSERT_EQ(member.consumer.frames.back().delivery, 3U) << "it is a suspect, and the credit is used up";
  test::Member other;
  world.join(other, test::asked());
  drop_all_from_the_log();
  other.consumer.take();
  world.publish_numbers(30, 31);
  world.pass(std::chrono::seconds(2));
  static_cast<void>(world.topic.dispatch({.now = world.now, .wall = world.wall}));
  EXPECT_EQ(other.consumer.take(), std::vector<std::string>{"30"});
  EXPECT_EQ(world.stats().timed_out, 1U);
}

}  // namespace
}  // namespace lightq::broker
