/// Tests of the timers by the wall clock, with the system's clock and with one that steps.
#include "net/timers/wall_timers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <stop_token>
#include <vector>

namespace lightq::broker {
namespace {

using testing::ElementsAre;

Timestamp system_time() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return {std::chrono::duration_cast<std::chrono::microseconds>(since).count()};
}

/// A loop with a wall clock that the test sets.
struct SteppedTimers {
  EventLoop loop;
  std::int64_t time = 5'000'000;
  const WallClock clock = [this] { return Timestamp{time}; };
  WallTimers timers{loop, clock};
  std::vector<int> fired;

  WallTimers::TimerId at(std::int64_t when, int name) {
    return timers.at({when}, [this, name] { fired.push_back(name); });
  }
  void step_to(std::int64_t to) {
    time = to;
    timers.clock_was_set();
    turns();
  }
  void turns(int count = 3) {
    std::stop_source stop;
    int left = count;
    std::function<void()> next = [&] {
      if (--left <= 0) return (void)stop.request_stop();
      ASSERT_TRUE(loop.post(next));
    };
    ASSERT_TRUE(loop.post(next));
    loop.run(stop.get_token());
  }
};

TEST(WallTimers, FireByTheSystemsClockInTheirOrderAndNeverEarly) {
  EventLoop loop;
  const WallClock clock = system_time;
  WallTimers timers(loop, clock);
  std::stop_source stop;
  std::vector<int> fired;
  const Timestamp begin = system_time();
  const auto at = [&](std::int64_t after, int name) {
    timers.at({begin.us + after}, [&, after, name] {
      EXPECT_LE(begin.us + after, system_time().us);
      fired.push_back(name);
      if (fired.size() == 4) stop.request_stop();
    });
  };
  at(20'000, 3);
  at(10'000, 1);
  at(10'000, 2);
  at(-1, 0);
  loop.run(stop.get_token());
  EXPECT_THAT(fired, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(timers.waiting(), 0U);
}

TEST(WallTimers, AStepForwardFiresWhatIsDueAndNothingElse) {
  SteppedTimers world;
  world.at(6'000'000, 2);
  world.at(5'500'000, 1);
  world.at(9'000'000, 3);
  world.turns();
  EXPECT_TRUE(world.fired.empty());
  world.step_to(6'000'000);
  EXPECT_THAT(world.fired, ElementsAre(1, 2));
}

TEST(WallTimers, AfterAStepBackNothingFiresTwiceAndTheRestWaits) {
  SteppedTimers world;
  world.at(6'000'000, 1);
  world.at(7'000'000, 2);
  world.step_to(6'500'000);
  world.step_to(1'000'000);
  world.step_to(6'999'999);
  EXPECT_THAT(world.fired, ElementsAre(1));
  world.step_to(7'000'000);
  EXPECT_THAT(world.fired, ElementsAre(1, 2));
}

TEST(WallTimers, TheyTellThatTheClockWasSetBack) {
  SteppedTimers world;
  int told = 0;
  world.timers.when_set_back(&world, [&] { ++told; });
  world.at(9'000'000, 1);
  world.step_to(6'000'000);
  EXPECT_EQ(told, 0);
  world.step_to(5'500'000);
  world.step_to(5'500'000);
  EXPECT_EQ(told, 1);
  world.timers.forget(&world);
  world.step_to(5'000'000);
  EXPECT_EQ(told, 1);
}

TEST(WallTimers, ACancelledTimerNeverFires) {
  SteppedTimers world;
  const auto first = world.at(6'000'000, 1);
  world.at(6'000'000, 2);
  world.timers.cancel(first);
  world.timers.cancel(first);
  world.step_to(8'000'000);
  EXPECT_THAT(world.fired, ElementsAre(2));
}

TEST(WallTimers, ATaskMaySetAndCancelTimers) {
  SteppedTimers world;
  const auto last = world.at(6'000'002, 9);
  world.timers.at({6'000'000}, [&] {
    world.timers.cancel(last);
    world.at(6'000'001, 1);
    world.at(6'000'001, 2);
  });
  world.step_to(7'000'000);
  EXPECT_THAT(world.fired, ElementsAre(1, 2));
}

TEST(WallTimers, ManyTasksRunInSeveralTurns) {
  SteppedTimers world;
  for (int i = 0; i < 1'000; ++i) world.at(6'000'000, i);
  world.time = 6'000'000;
  world.timers.clock_was_set();
  world.turns(2);
  EXPECT_LT(world.fired.size(), 1'000U);
  world.turns(30);
  EXPECT_EQ(world.fired.size(), 1'000U);
  EXPECT_TRUE(std::is_sorted(world.fired.begin(), world.fired.end()));
}

/// The system's clock is past these times, so its timer fires at once; the clock handed in is not.
TEST(WallTimers, AClockOfItsOwnIsAskedAgainWithoutAStep) {
  SteppedTimers world;
  std::stop_source stop;
  world.timers.at({5'000'100}, [&] { stop.request_stop(); });
  world.turns(20);
  world.time = 5'000'100;
  world.loop.run(stop.get_token());
  EXPECT_EQ(world.timers.waiting(), 0U);
}

}  // namespace
}  // namespace lightq::broker
