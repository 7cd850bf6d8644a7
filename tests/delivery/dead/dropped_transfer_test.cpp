/// Tests of transfers whose messages the log drops meanwhile, and of new incarnations.
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
    world.topic.groups().set_settings("default", settings);
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

  test::GroupWorld world{protocol::BrokerType::queue, protocol::Overflow::drop_oldest, 64 * limits::KiB};
  test::Member member;
};

// The target may have the messages under way. If their numbers changed, it would store others again.
TEST_F(DroppedTransferTest, MessagesUnderWayKeepTheirNumbersWhenTheLogDropsThem) {
  ASSERT_EQ(dead().begin(3), 3U);
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

TEST_F(DroppedTransferTest, ARenewedOutboxGivesNoNumberAgain) {
  ASSERT_EQ(dead().begin(1), 1U);
  const std::uint64_t incarnation = dead().incarnation();
  dead().renew();
  EXPECT_EQ(dead().incarnation(), incarnation) << "a message is under way";
  ASSERT_TRUE(dead().done(incarnation, 1));
  dead().renew();
  ASSERT_EQ(dead().begin(1), 1U);
  EXPECT_NE(dead().incarnation(), incarnation);
  EXPECT_EQ(dead().under_way().front().message.offset, Offset{1});
}

}  // namespace
}  // namespace lightq::broker
