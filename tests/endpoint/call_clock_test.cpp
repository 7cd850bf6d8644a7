/// Tests of the wall clock within a call of the event loop.
#include "net/call_clock.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace lightq::broker {
namespace {

TEST(CallClock, IsAskedOnceInEachCall) {
  EventLoop loop;
  std::int64_t time = 1000;
  const WallClock wall = [&time] { return Timestamp{++time}; };
  CallClock clock(loop, wall);
  std::stop_source stop;
  std::vector<std::int64_t> told;
  for (int call = 0; call < 3; ++call) {
    ASSERT_TRUE(loop.post([&] {
      for (int i = 0; i < 2; ++i) told.push_back(clock.now().us);
    }));
  }
  ASSERT_TRUE(loop.post([&] { stop.request_stop(); }));
  loop.run(stop.get_token());
  EXPECT_THAT(told, testing::ElementsAre(1001, 1001, 1002, 1002, 1003, 1003));
}

}  // namespace
}  // namespace lightq::broker
