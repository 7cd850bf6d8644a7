/// HighWater: bytes bounded, marks that fall no faster than libzmq bears.
#include <lightq/high_water.hpp>

#include <gtest/gtest.h>

namespace lightq {
namespace {

TEST(HighWater, RisesToItsBoundForSmallMessages) {
  HighWater high_water(1 << 20, 10'000);
  EXPECT_EQ(high_water.mark(), HighWater::messages_at_first);
  for (int i = 0; i < 100; ++i) (void)high_water.observe(10);
  EXPECT_EQ(high_water.mark(), 10'000);
}

TEST(HighWater, AllowsAMessageLargerThanTheBound) {
  HighWater high_water(1 << 20, 10'000);
  for (int i = 0; i < 100; ++i) (void)high_water.observe(16 << 20);
  EXPECT_EQ(high_water.mark(), HighWater::messages_min);
}

TEST(HighWater, FallsByNoMoreThanHalfAndOnlyAfterAWholeMarkOfMessages) {
  HighWater high_water(1 << 20, 10'000);
  for (int i = 0; i < 100; ++i) (void)high_water.observe(10);
  int mark = high_water.mark();
  std::uint64_t since = 0;
  for (int i = 0; i < 200'000; ++i) {
    ++since;
    const auto changed = high_water.observe(1 << 18);
    if (!changed) continue;
    EXPECT_GE(*changed, (mark + 1) / 2);
    EXPECT_GE(since + 100, static_cast<std::uint64_t>(mark));  // the first window had begun before
    mark = *changed;
    since = 0;
  }
  EXPECT_LE(mark, 5);
}

TEST(HighWater, CountsEmptyMessagesToo) {
  HighWater high_water(1 << 20, 500);
  for (int i = 0; i < 100; ++i) (void)high_water.observe(0);
  EXPECT_EQ(high_water.mark(), 500);
}

}  // namespace
}  // namespace lightq
