/// Tests the explorer of delivery: it must find each bug of mutants/. Prints how long that took.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <ctime>
#include <iterator>
#include <string>

#include "explorer/delivery/delivery_explorer.hpp"
#include "mutants/seeded_bug.hpp"

namespace lightq::test {
namespace {

struct SeededDelivery {
  Bug bug;
  DeliveryPart part;

  [[nodiscard]] const char* name() const { return bug_names.at(static_cast<std::size_t>(bug)); }
};

// Each bug, and the part of delivery that must find it.
constexpr SeededDelivery all_seeded_deliveries[] = {
    {Bug::plan_not_durable, DeliveryPart::schedule},     {Bug::done_too_soon, DeliveryPart::schedule},
    {Bug::cancelled_in_memory, DeliveryPart::schedule},  {Bug::moved_not_sought, DeliveryPart::schedule},
    {Bug::letter_number_unsaved, DeliveryPart::letters}, {Bug::letter_not_durable, DeliveryPart::letters},
    {Bug::give_back_unmarked, DeliveryPart::letters},    {Bug::copies_unsynced, DeliveryPart::carry_over},
    {Bug::needed_copy_swept, DeliveryPart::carry_over},  {Bug::cut_cursors_unsaved, DeliveryPart::carry_over},
    {Bug::save_told_soon, DeliveryPart::carry_over},     {Bug::slot_trusted, DeliveryPart::carry_over},
};

static_assert(std::size(all_seeded_deliveries) == bug_names.size() - 1,
              "each bug of mutants/ needs a row here");

constexpr std::uint64_t states_of_hunt = 4'000'000;
constexpr std::uint64_t states_of_seed = 150'000;

/// The result of a hunt. It is small enough to be written to a pipe in one piece.
struct DeliveryHunt {
  bool found = false;
  std::uint64_t tried = 0;
  double seconds = 0;
  char what[200] = {};
};

DeliveryHunt hunt_here(const SeededDelivery& seeded) {
  DeliveryHunt result;
  seeded_bug = seeded.bug;
  DeliveryOptions options;
  options.part = seeded.part;
  options.states_max = states_of_seed;
  for (options.seed = 1; result.tried < states_of_hunt && !result.found; ++options.seed) {
    const DeliveryExploration explored = DeliveryExplorer(options).run();
    result.tried += explored.states;
    result.found = explored.violation.has_value();
    std::snprintf(result.what, sizeof result.what, "%s", explored.violation.value_or("").c_str());
  }
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  result.seconds = static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  return result;
}

// Hunts in a child process: a topic with a bug may fail one of its own assertions, which also counts as
// found.
DeliveryHunt hunt_delivery(const SeededDelivery& seeded) {
  int ends[2] = {};
  if (::pipe(ends) != 0) return {};
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(290);
    const DeliveryHunt result = hunt_here(seeded);
    const bool sent = ::write(ends[1], &result, sizeof result) == static_cast<ssize_t>(sizeof result);
    ::_exit(sent ? 0 : 1);
  }
  ::close(ends[1]);
  DeliveryHunt result;
  const bool came = ::read(ends[0], &result, sizeof result) == static_cast<ssize_t>(sizeof result);
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (!came) std::snprintf(result.what, sizeof result.what, "ended with status %d", status);
  return result;
}

class SeededDeliveryTest : public testing::TestWithParam<SeededDelivery> {};

TEST_P(SeededDeliveryTest, IsFound) {
  const SeededDelivery& seeded = GetParam();
  const DeliveryHunt result = hunt_delivery(seeded);
  std::printf("| `%s` | %llu | %.1f s |\n  %s\n", seeded.name(),
              static_cast<unsigned long long>(result.tried), result.seconds, result.what);
  EXPECT_TRUE(result.found) << seeded.name() << ": " << result.what;
}

INSTANTIATE_TEST_SUITE_P(Bugs, SeededDeliveryTest, testing::ValuesIn(all_seeded_deliveries),
                         [](const testing::TestParamInfo<SeededDelivery>& one) {
                           return std::string(one.param.name());
                         });

}  // namespace
}  // namespace lightq::test
