/// Compares a broker with the model of everything that its topics do, over random operations with restarts
/// and crashes. LIGHTQ_SEED=random begins from other seeds, LIGHTQ_STEPS sets the number of steps, and
/// LIGHTQ_RUN=n does only run number n.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "model/steps.hpp"

namespace lightq::model {
namespace {

constexpr int parts = 10;
constexpr int steps_of_run = 1000;
constexpr int enough_runs = 90;  // for all of these to happen

// Each of the parts must count all of these.
constexpr const char* happens[] = {
    "acknowledged",
    "changes of delayed messages",
    "changes of plain connections",
    "clock steps",
    "closes",
    "commands to give back",
    "dead messages purged",
    "dead messages retried",
    "dead: attempts",
    "dead: expired",
    "dead: rejected",
    "delayed messages in the log",
    "delayed publishes",
    "deliveries",
    "deliveries again",
    "deliveries in a slice of one",
    "deliveries of expired messages that were given back",
    "deliveries of suspects",
    "deliveries to plain consumers",
    "deliveries to subscribers",
    "expired",
    "expired messages that subscribers skipped",
    "extensions",
    "joins",
    "kills",
    "late acknowledgements",
    "letters",
    "letters given back",
    "letters published anew",
    "lost with a session",
    "messages lost that were dropped",
    "messages lost that were not synced",
    "messages that subscribers lost",
    "parked without a topic",
    "pauses of groups",
    "pauses of the topic",
    "plain consumers",
    "plain consumers that left",
    "power cuts",
    "publishes",
    "publishes without room",
    "purges",
    "purges of letters",
    "recurring messages",
    "recurring messages missed: once",
    "recurring messages missed: skip",
    "rejections",
    "released at the end of a session",
    "restarts",
    "revoked after the processing time",
    "revoked from silent consumers",
    "schedules changed",
    "schedules created",
    "schedules paused",
    "schedules removed",
    "schedules resumed",
    "seeks",
    "sessions lost",
    "settings",
    "silences",
    "subscribers",
    "subscribers found after a start",
    "subscribers removed",
    "subscribers that a crash set back",
    "subscribers that disconnected with unsent messages",
    "starts",
    "timed out without leases",
    "times",
    "times to live",
    "times without the broker",
    "unsent messages that came back",
};

std::uint64_t steps_of_all() {
  const char* given = std::getenv("LIGHTQ_STEPS");
  if (given != nullptr) return std::strtoull(given, nullptr, 10);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return 100'000;
#else
  return 1'020'000;  // some runs end early
#endif
}

class EverythingTest : public testing::TestWithParam<int> {};

TEST_P(EverythingTest, TheBrokerAgreesWithTheModel) {
  Tally tally;
  int ended_early = 0;
  const auto runs = static_cast<int>(steps_of_all() / parts / steps_of_run);
  const char* const only = std::getenv("LIGHTQ_RUN");  // the number of one run
  for (int run = GetParam() * runs; run < (GetParam() + 1) * runs; ++run) {
    if (only != nullptr && std::strtol(only, nullptr, 10) != run) continue;
    test::Random random(run);
    test::simulated_random = test::SmallRandom(random.seed());
    Steps steps(random, Steps::catalogue_of(static_cast<std::uint64_t>(run)), run % 4 >= 2, run % 5 < 2);
    int step = 0;
    try {
      for (; step < steps_of_run && !steps.is_over(); ++step) steps.step();
    } catch (const std::exception& wrong) {
      FAIL() << "run " << run << ", step " << step + 1 << ": " << wrong.what() << "\n"
             << steps.history().text();
    }
    ended_early += step < steps_of_run ? 1 : 0;
    tally["steps"] += static_cast<std::uint64_t>(step);
    for (const auto& [name, number] : steps.tally()) tally[name] += number;
  }
  // One of about 120 runs does. A part with few runs may have some of them by chance.
  EXPECT_LE(ended_early, std::max(4, runs / 16)) << "many runs end early";
  for (const char* const name : happens) {
    EXPECT_TRUE(runs < enough_runs || only != nullptr || tally[name] > 0) << "never: " << name;
  }
  for (const auto& [name, number] : tally)
    std::printf("%8llu %s\n", static_cast<unsigned long long>(number), name.c_str());
}

INSTANTIATE_TEST_SUITE_P(Tenths, EverythingTest, testing::Range(0, parts));

}  // namespace
}  // namespace lightq::model
