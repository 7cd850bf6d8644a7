/// Tests of producers that send everything again, over power cuts, kills and failing calls. Each message is
/// stored once, or its producer learns that it is unknown.
#include <gtest/gtest.h>

#include <string>

#include "endpoint/producer_world.hpp"

namespace lightq::test {
namespace {

using protocol::BrokerType;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int seeds = 2;  // a tenth of the normal speed
constexpr int seeds_for_long = 2;
#else
constexpr int seeds = 4;
constexpr int seeds_for_long = 24;
#endif
constexpr int steps = 3000;

class ProducerCrashTest : public testing::TestWithParam<int> {
 protected:
  void run(WorldOptions options) {
    Random random(GetParam());
    ProducerWorld world(random, options);
    for (int i = 0; i < steps && !world.violation; ++i) {
      world.step();
      ASSERT_EQ(world.violation, std::nullopt) << "step " << i;
    }
    world.finish();
    ASSERT_EQ(world.violation, std::nullopt) << "in the end";
    // A run without these events proves nothing.
    EXPECT_GT(world.counts.power_cuts + world.counts.kills, 10);
    EXPECT_GT(world.counts.repeats, 0);
    EXPECT_GT(world.counts.saves, 10);
    EXPECT_GT(world.counts.takeovers, 10);
    EXPECT_GT(world.counts.fenced, 0);
  }
};

TEST_P(ProducerCrashTest, InAFileTopicNothingIsStoredTwiceOrTakenForStored) {
  run({});
}

TEST_P(ProducerCrashTest, InAQueueFileTopicNothingIsStoredTwiceOrTakenForStored) {
  run({.type = BrokerType::queue_file});
}

TEST_P(ProducerCrashTest, NothingIsStoredTwiceOrTakenForStoredWhileOldMessagesAreDropped) {
  run({.capacity_bytes = 300'000});
  run({.type = BrokerType::queue_file, .capacity_bytes = 300'000});
}

TEST_P(ProducerCrashTest, NothingIsStoredTwiceOrTakenForStoredWhileCallsFail) {
  run({.calls_fail = true});
  run({.type = BrokerType::queue_file, .capacity_bytes = 300'000, .calls_fail = true});
}

INSTANTIATE_TEST_SUITE_P(Seeds, ProducerCrashTest, testing::Range(0, seeds));
INSTANTIATE_TEST_SUITE_P(MoreSeeds, ProducerCrashTest, testing::Range(seeds, seeds_for_long));

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // tests no memory or threads
/// Returns the complaint of the first of many runs that notices the broken rule, or an empty text.
std::string noticed(BrokenRule broken) {
  for (int seed = 0; seed < 400; ++seed) {
    Random random(seed);
    ProducerWorld world(random, {.steps_to_a_power_cut = 20, .broken = broken});
    for (int i = 0; i < steps && !world.violation; ++i) world.step();
    if (world.violation) return *world.violation;
  }
  return "";
}

// The tests above prove something only if they fail when a rule is broken.
TEST(ProducerRulesTest, ASnapshotThatIsWrittenTooEarlyIsDetected) {
  EXPECT_NE(noticed(BrokenRule::snapshot_before_durable), "");
}

TEST(ProducerRulesTest, AConfirmThatIsSentTooEarlyIsDetected) {
  EXPECT_NE(noticed(BrokenRule::told_before_settled), "");
}
#endif

}  // namespace
}  // namespace lightq::test
