/// Tests of crashes while a recurring schedule fires: before each operation of the disk, with and without a
/// power cut, and again while the broker recovers. No firing is published twice, and after the last start the
/// newest one is there.
#include <gmock/gmock.h>

#include <cstdio>
#include <string>

#include "endpoint/schedule_world.hpp"
#include "recurring/firing_times.hpp"
#include "support/random.hpp"

namespace lightq::broker {
namespace {

using namespace std::chrono_literals;
using protocol::BrokerType;
using test::Random;

enum class Cut { kill, keeps_nothing, keeps_all, keeps_some };

struct ScheduleRun {
  BrokerType type;
  Cut cut;
};

class ScheduleCrashTest : public ScheduleWorld, public testing::WithParamInterface<ScheduleRun> {
 protected:
  ScheduleCrashTest() : ScheduleWorld(GetParam().type) {
    schedule.settings.missed = protocol::MissedFirings::once;
  }

  /// Lets minutes pass, and the clock be set back now and then, until the process ends.
  void live() {
    for (int minutes = 0; minutes < 5 && !is_dead; ++minutes) {
      set_clock(random_.one_in(8) ? std::chrono::microseconds(-90s) : std::chrono::microseconds(1min));
      for (int turns = 0; turns < 8 && !is_dead; ++turns) turn(std::chrono::microseconds(100));
    }
  }
  void crash_now(std::uint64_t next_end) {
    const Cut cut = GetParam().cut;
    const auto keeps = [this, cut] {
      return cut == Cut::keeps_all || (cut == Cut::keeps_some && random_.one_in(2));
    };
    const auto down = random_.one_in(2) ? std::chrono::microseconds(0) : std::chrono::microseconds(5min);
    if (forgets) ++schedule.incarnation;
    crash(cut != Cut::kill, keeps, down, next_end);
  }
  /// Returns a complaint about the messages, or nothing. Their times ascend, so none is there twice.
  std::string judge() {
    Timestamp before;
    for (const Published& message : published()) {
      if (message.id != firing_id("tick", message.time)) return message.id + " has another time";
      if (message.time <= before) return message.id + " is there twice, or comes too late";
      before = message.time;
    }
    return {};
  }
  /// Lives, and crashes before event `first_end` and perhaps before event `second_end` of the recovery.
  /// Returns true if the first crash came before the end.
  bool run(std::uint64_t first_end, std::uint64_t second_end) {
    arm(first_end);
    live();
    const bool was_cut = is_dead;
    for (const std::uint64_t end : {second_end, std::uint64_t{0}}) {
      crash_now(end);
      live();
    }
    return was_cut;
  }

  Random random_;
  bool forgets = false;  ///< a fault: the schedule has another producer after a start
};

TEST_P(ScheduleCrashTest, NoFiringIsPublishedTwiceWhateverStepIsCut) {
  begin(true);
  int cuts = 0;
  for (std::uint64_t end = 1; end <= 20; ++end) {
    cuts += run(end, random_.one_in(2) ? random_.between(1, 20) : 0) ? 1 : 0;
    ASSERT_EQ(judge(), "") << "cut before event " << end;
  }
  EXPECT_GE(cuts, 5);  // a run with fewer cuts proves nothing
  // Until the clock shows a later time than the last firing, which may have been before it was set back.
  const auto is_newest = [this] {
    const auto all = published();
    return !all.empty() && all.back().time == minute();
  };
  for (int minutes = 0; minutes < 60 && !is_newest(); ++minutes) {
    set_clock(1min);
    run_a_while();
  }
  EXPECT_TRUE(is_newest());
  EXPECT_EQ(judge(), "");
  std::printf("%d cuts, %zu messages\n", cuts, published().size());
}

// The test above proves something only if it notices a producer that is forgotten.
TEST_P(ScheduleCrashTest, AForgottenProducerIsNoticed) {
  forgets = true;
  begin(true);
  std::string complaint;
  for (std::uint64_t end = 1; complaint.empty() && end < 60; ++end) {
    run(end, 0);
    complaint = judge();
  }
  EXPECT_THAT(complaint, testing::HasSubstr("is there twice"));
}

std::vector<ScheduleRun> all_runs() {
  std::vector<ScheduleRun> runs;
  for (const BrokerType type : {BrokerType::file, BrokerType::queue_file})
    for (const Cut cut : {Cut::kill, Cut::keeps_nothing, Cut::keeps_all, Cut::keeps_some})
      runs.push_back({type, cut});
  return runs;
}
std::string name_of_run(const testing::TestParamInfo<ScheduleRun>& run) {
  const char* const words[] = {"Kill", "KeepsNothing", "KeepsAll", "KeepsSome"};
  return std::string(run.param.type == BrokerType::file ? "File" : "QueueFile") +
         words[static_cast<int>(run.param.cut)];
}
INSTANTIATE_TEST_SUITE_P(Runs, ScheduleCrashTest, testing::ValuesIn(all_runs()), name_of_run);

}  // namespace
}  // namespace lightq::broker
