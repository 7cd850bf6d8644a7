/// Runs the explorer of delivery on a million states, or LIGHTQ_DELIVERY_STATES. Each test explores an
/// eighth.
#include "explorer/delivery/delivery_explorer.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <iostream>
#include <string>

#include "support/random.hpp"

namespace lightq::test {
namespace {

/// Returns the seconds that the process has computed. No test sets this clock.
double seconds_now() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

std::uint64_t states_of_test() {
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__)
  constexpr std::uint64_t usual = 1'000'000;
#else
  constexpr std::uint64_t usual = 40'000;
#endif
  const char* given = std::getenv("LIGHTQ_DELIVERY_STATES");
  return (given != nullptr ? std::strtoull(given, nullptr, 10) : usual) / 8;
}

struct DeliveryRun {
  DeliveryPart part;
  int seed;
};

class DeliveryExplorerTest : public testing::TestWithParam<DeliveryRun> {};

TEST_P(DeliveryExplorerTest, NothingIsLostDoubledOrEarly) {
  const Random random(500 + 10 * static_cast<int>(GetParam().part) + GetParam().seed);
  DeliveryOptions options;
  options.part = GetParam().part;
  const char* const replayed = std::getenv("LIGHTQ_DELIVERY_SEED");  // the seed that a violation states
  options.seed = replayed != nullptr ? std::strtoull(replayed, nullptr, 10) : random.seed();
  if (const char* const program = std::getenv("LIGHTQ_DELIVERY_PROGRAM"); program != nullptr) {
    char* end = nullptr;
    const std::uint64_t random_state = std::strtoull(program, &end, 10);
    ASSERT_EQ(*end, ':') << "LIGHTQ_DELIVERY_PROGRAM has two numbers, as a violation states them";
    options.replayed.emplace(random_state, std::strtoull(end + 1, nullptr, 10));
  }
  options.states_max = states_of_test();
  const double began = seconds_now();
  const DeliveryExploration result = DeliveryExplorer(options).run();
  const double seconds = seconds_now() - began;
  std::cout << result.states << " states (" << result.in_recovery << " at the second cut, " << result.finished
            << " finished, " << result.carried << " with carried messages, " << result.waiting
            << " with delayed ones, " << result.letters << " with letters) after " << result.steps
            << " steps of " << result.programs << " programs in " << seconds
            << " s: " << static_cast<std::uint64_t>(static_cast<double>(result.states) / seconds)
            << " states/s\n";
  EXPECT_EQ(result.violation.value_or(""), "");
}

std::vector<DeliveryRun> all_delivery_runs() {
  std::vector<DeliveryRun> runs;
  for (int part = 0; part < 4; ++part)
    for (int seed = 0; seed < 2; ++seed) runs.push_back({static_cast<DeliveryPart>(part), seed});
  return runs;
}
std::string name_of_delivery_run(const testing::TestParamInfo<DeliveryRun>& run) {
  const char* const words[] = {"Schedule", "Letters", "CarryOver", "All"};
  return words[static_cast<int>(run.param.part)] + std::to_string(run.param.seed);
}
INSTANTIATE_TEST_SUITE_P(Parts, DeliveryExplorerTest, testing::ValuesIn(all_delivery_runs()),
                         name_of_delivery_run);

}  // namespace
}  // namespace lightq::test
