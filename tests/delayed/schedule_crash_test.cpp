/// Ends the disk at every call of a schedule's life, then cuts the power, and looks at the next start.
#include <gtest/gtest.h>

#include <cerrno>

#include "delayed/schedule_world.hpp"

namespace lightq::test {
namespace {

/// A life with messages that leave at once, later and never, a broken plan, commands, copies and dropped
/// files.
void live(ScheduleWorld& world) {
  world.publish_due({-10'000, -20'000, 0, world.now() + 3'600'000'000LL});
  world.sync_schedule();
  world.pump();
  world.sync_schedule();
  world.pump();
  world.step_clock(5'000);
  world.publish_due({-1'000, -1'000});  // sorts before planned ones
  world.pump();
  world.cancel_some();
  world.sync_schedule();
  world.step_clock(6'000);
  world.pump();
  world.sync_log();
  world.reschedule_some();
  for (int each = 0; each < 6; ++each) {
    world.publish_due({0, -3'000, -30'000});
    world.pump();
    world.sync_schedule();
    world.step_clock(7'000);
    world.pump();
    if (each % 2 == 0) world.sync_log();
    world.maintain();
  }
  world.cancel_some();
  world.sync_schedule();
}

TEST(ScheduleCrash, NothingIsLostDoubledOrEarlyAfterTheDiskEndsAtAnyCall) {
  int calls = 0;
  {
    ScheduleWorld world(1);
    world.storage.on_call = [&](FaultyStorage::Call, const std::string&) {
      ++calls;
      return FaultyStorage::Fault{};
    };
    live(world);
    ASSERT_EQ(world.wrong(), "");
    ASSERT_GT(world.in_log(), 5U);
  }
  ASSERT_GT(calls, 50);
  for (int last = 1; last <= calls; ++last) {
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      ScheduleWorld world(1);
      int left = last;
      world.storage.on_call = [&](FaultyStorage::Call, const std::string&) {
        return FaultyStorage::Fault{left-- > 0 ? 0 : EIO};
      };
      live(world);
      ASSERT_EQ(world.wrong(), "") << "before the cut at call " << last;
      world.storage.on_call = nullptr;
      world.random.seed(seed);  // of the sectors that survive
      world.power_cut();
      ASSERT_EQ(world.wrong(), "") << "call " << last << ", seed " << seed;
      // The recovery is cut, too.
      world.pump();
      world.power_cut();
      ASSERT_EQ(world.wrong(), "") << "second cut, call " << last << ", seed " << seed;
      world.finish(100'000);
      world.kill();
      ASSERT_EQ(world.wrong(), "") << "end, call " << last << ", seed " << seed;
    }
  }
}

}  // namespace
}  // namespace lightq::test
