/// Tests the explorer of delivery: it must find each bug of mutants/. Prints how long that took.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <iterator>
#include <optional>
#include <string>

#include "explorer/bug_hunt.hpp"
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
    {Bug::retrying_uncarried, DeliveryPart::carry_over},
};

static_assert(std::size(all_seeded_deliveries) == bug_names.size() - 1,
              "each bug of mutants/ needs a row here");

constexpr std::uint64_t states_of_hunt = 4'000'000;
constexpr std::uint64_t states_of_seed = 150'000;

std::optional<std::string> search_for(const SeededDelivery& seeded, std::uint64_t& tried) {
  seeded_bug = seeded.bug;
  DeliveryOptions options;
  options.part = seeded.part;
  options.states_max = states_of_seed;
  for (options.seed = 1; tried < states_of_hunt; ++options.seed) {
    const DeliveryExploration explored = DeliveryExplorer(options).run();
    tried += explored.states;
    if (explored.violation) return explored.violation;
  }
  return std::nullopt;
}

class SeededDeliveryTest : public testing::TestWithParam<SeededDelivery> {};

TEST_P(SeededDeliveryTest, IsFound) {
  const SeededDelivery& seeded = GetParam();
  const BugHunt result = hunt_in_child([&](std::uint64_t& tried) { return search_for(seeded, tried); });
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
