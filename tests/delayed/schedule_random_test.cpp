/// Compares a schedule with a model of plain containers over random operations, kills and power cuts.
#include <gtest/gtest.h>

#include "delayed/schedule_world.hpp"

namespace lightq::test {
namespace {

class ScheduleRandom : public testing::TestWithParam<std::uint64_t> {};

TEST_P(ScheduleRandom, KeepsMovesAndForgetsLikeItsModel) {
  ScheduleWorld world(GetParam());
  for (int operation = 0; operation < 12'500 && world.wrong().empty(); ++operation) {
    world.step();
    if (world.random() % 300 != 0) continue;
    world.random() % 2 == 0 ? world.kill() : world.power_cut();
  }
  ASSERT_EQ(world.wrong(), "");
  world.finish(1'000'000);
  EXPECT_EQ(world.wrong(), "");
  world.power_cut();
  EXPECT_EQ(world.wrong(), "");
  EXPECT_GT(world.in_log(), 1'000U);
  EXPECT_GT(world.lost(), 10U);  // power cuts have taken messages that were not durable
}

INSTANTIATE_TEST_SUITE_P(Seeds, ScheduleRandom, testing::Range<std::uint64_t>(1, 9));

TEST(ScheduleRandom, OneFarAwayMessageDoesNotKeepTheFiles) {
  ScheduleWorld world(1);
  world.publish_due({world.now() + 3'600'000'000'000LL});
  std::uint64_t most = 0;
  for (int round = 0; round < 400; ++round) {
    for (int each = 0; each < 20; ++each) world.publish_due({0, 0, 0, 0, 0});
    world.finish(0);
    most = std::max(most, world.schedule_log().stored_bytes());
  }
  ASSERT_EQ(world.wrong(), "");
  EXPECT_EQ(world.waiting(), 1U);
  EXPECT_LT(most, 1 * limits::MiB);
  EXPECT_GT(world.schedule_log().first_offset().value, 1'000U);
  world.power_cut();
  EXPECT_EQ(world.wrong(), "");
  EXPECT_EQ(world.waiting(), 1U);
}

}  // namespace
}  // namespace lightq::test
