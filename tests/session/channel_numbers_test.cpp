/// Tests of the set of channels that have work to do.
#include "session/channel_numbers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lightq::broker {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::uint32_t> taken_from(ChannelNumbers& numbers) {
  std::vector<std::uint32_t> taken;
  numbers.take_each([&](std::uint32_t number) { taken.push_back(number); });
  return taken;
}

TEST(ChannelNumbers, AreTakenOnceInTheirOrder) {
  ChannelNumbers numbers;
  for (const std::uint32_t number : {3, 3, 1, 3, 3}) numbers.add(number);
  EXPECT_THAT(taken_from(numbers), ElementsAre(3, 1, 3));
  EXPECT_THAT(taken_from(numbers), IsEmpty());
  numbers.add(3);
  EXPECT_THAT(taken_from(numbers), ElementsAre(3));
  numbers.add(4);
  numbers.clear();
  EXPECT_THAT(taken_from(numbers), IsEmpty());
}

TEST(ChannelNumbers, LeaveEntriesAddedDuringAnIterationForTheNext) {
  ChannelNumbers numbers;
  numbers.add(1);
  numbers.add(2);
  std::vector<std::uint32_t> taken;
  numbers.take_each([&](std::uint32_t number) {
    taken.push_back(number);
    if (number == 1) numbers.add(7);
    if (number == 2) {
      EXPECT_THAT(taken_from(numbers), ElementsAre(7, 11)) << "also from within";
    }
    numbers.add(number + 10);
  });
  EXPECT_THAT(taken, ElementsAre(1, 2));
  EXPECT_THAT(taken_from(numbers), ElementsAre(12));
}

}  // namespace
}  // namespace lightq::broker
