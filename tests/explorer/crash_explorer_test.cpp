/// Runs the crash explorer on logs and queues. Each test explores 25,000 states, or LIGHTQ_EXPLORER_STATES;
/// with an encrypted log a quarter of that.
#include "explorer/queue_explorer.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <iostream>

#include "support/random.hpp"

namespace lightq::test {
namespace {

std::uint64_t states_wanted() {
  const char* given = std::getenv("LIGHTQ_EXPLORER_STATES");
  if (given != nullptr) return std::strtoull(given, nullptr, 10);
  return 25'000;
}

template <typename Explorer = CrashExplorer>
void explore(ExplorerOptions options, std::uint64_t states_max = states_wanted()) {
  options.states_max = states_max;
  const auto began = std::chrono::steady_clock::now();
  const Exploration result = Explorer(options).run();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - began;
  std::cout << result.states << " states (" << result.in_recovery << " at the second cut or later) after "
            << result.steps << " steps of " << result.programs << " programs in " << seconds.count()
            << " s: " << static_cast<std::uint64_t>(static_cast<double>(result.states) / seconds.count())
            << " states/s\n";
  EXPECT_EQ(result.violation.value_or(""), "");
  EXPECT_GE(result.states, options.states_max);
}

class CrashExplorerTest : public testing::TestWithParam<int> {};

TEST_P(CrashExplorerTest, NoPowerCutLosesInventsOrSpoilsAMessage) {
  const Random random(GetParam());
  explore({.seed = random.seed()});
}

INSTANTIATE_TEST_SUITE_P(Seeds, CrashExplorerTest, testing::Range(0, 4));

TEST(CrashExplorerFilesTest, DoesSoWithLargerFilesToo) {
  const Random random(100);
  ExplorerOptions options{.seed = random.seed()};
  options.segment_bytes = 16'384;
  options.program_steps = 160;
  explore(options);
}

class EncryptedCrashTest : public testing::TestWithParam<int> {};

TEST_P(EncryptedCrashTest, LosesInventsAndSpoilsNothingOfAnEncryptedLog) {
  const Random random(400 + GetParam());
  ExplorerOptions options{.seed = random.seed(), .encrypted = true};
  if (GetParam() == 1) {
    options.segment_bytes = 16'384;
    options.program_steps = 160;
  }
  explore(options, states_wanted() / 4);
}

INSTANTIATE_TEST_SUITE_P(Seeds, EncryptedCrashTest, testing::Range(0, 2));

class MappedCrashTest : public testing::TestWithParam<int> {};

TEST_P(MappedCrashTest, LosesInventsAndSpoilsNothingOfALogWrittenThroughMappings) {
  const Random random(200 + GetParam());
  explore({.seed = random.seed(), .mapped = true});
}

INSTANTIATE_TEST_SUITE_P(Seeds, MappedCrashTest, testing::Range(0, 2));

class QueueCrashTest : public testing::TestWithParam<int> {};

TEST_P(QueueCrashTest, LosesInventsAndSpoilsNothingOfAQueueAndItsCursor) {
  const Random random(300 + GetParam());
  explore<QueueExplorer>({.seed = random.seed()});
}

INSTANTIATE_TEST_SUITE_P(Seeds, QueueCrashTest, testing::Range(0, 2));

}  // namespace
}  // namespace lightq::test
