/// Tests AppendGroup: how long writers that wait for a group's sync stay awake before they sleep.
#include "queue/append_group.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace lightq::queue {
namespace {

using namespace std::chrono_literals;

TEST(AppendGroup, SpinsIfTheDiskIsFast) {
  EXPECT_EQ(0ns, AppendGroup::awake_for(0ns)) << "none was before it";
  EXPECT_EQ(240us, AppendGroup::awake_for(120us)) << "the rest of one and all of another";
  EXPECT_EQ(1ms, AppendGroup::awake_for(500us));
}

TEST(AppendGroup, SleepsIfTheDiskIsSlow) {
  EXPECT_EQ(0ns, AppendGroup::awake_for(501us));
  EXPECT_EQ(0ns, AppendGroup::awake_for(1h));
}

TEST(AppendGroup, DoesNotWaitForSettledJobs) {
  AppendGroup group;
  group.join(as_byte_view("one"));
  const std::uint32_t place = group.join(as_byte_view("two"));
  group.settle(Offset{7});
  EXPECT_EQ(Offset{8}, group.wait(place, 0ns).value_or_throw());
  EXPECT_EQ(Offset{8}, group.wait(place, 1h).value_or_throw());
}

}  // namespace
}  // namespace lightq::queue
