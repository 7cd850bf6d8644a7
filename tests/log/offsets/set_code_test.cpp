/// Tests of the checks between sets of offsets that a cursor file has.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>

#include "log/offsets/offset_set.hpp"
#include "log/saved_state/set_code.hpp"

namespace lightq::log {
namespace {

/// Says for each offset whether both sets agree that a part is in the whole.
bool is_part_by_offsets(const OffsetSet& part, const OffsetSet& whole) {
  bool all = true;
  part.for_each([&](OffsetRange run) {
    for (std::uint64_t offset = run.begin.value; offset < run.end.value; ++offset)
      all = all && whole.contains({offset});
  });
  return all;
}

TEST(SetCode, APartIsFoundInAWholeHoweverFarItsRunsAre) {
  OffsetSet whole;
  constexpr std::uint64_t runs = 20'000;
  for (std::uint64_t i = 0; i < runs; ++i) whole.add({{4 * i}, {4 * i + 3}});
  for (std::uint64_t step = 1; step < runs; step = step * 3 + 1) {
    OffsetSet part;
    for (std::uint64_t i = step / 2; i < runs; i += step) part.add({{4 * i + 1}, {4 * i + 2}});
    EXPECT_TRUE(is_part_of(part, whole)) << step;
    EXPECT_FALSE(is_part_of(whole, part)) << step;
    OffsetSet beside = part;
    const std::uint64_t last = (runs - 1 - step / 2) / step * step + step / 2;
    beside.add({{4 * last + 3}, {4 * last + 4}});  // in the hole behind a run
    EXPECT_FALSE(is_part_of(beside, whole)) << step;
    OffsetSet beyond = part;
    beyond.add({{4 * runs}, {4 * runs + 1}});
    EXPECT_FALSE(is_part_of(beyond, whole)) << step;
  }
}

TEST(SetCode, AnEmptySetIsAPartOfEachSet) {
  OffsetSet some;
  some.add({{1}, {2}});
  EXPECT_TRUE(is_part_of({}, some));
  EXPECT_TRUE(is_part_of({}, {}));
  EXPECT_FALSE(is_part_of(some, {}));
}

TEST(SetCode, AgreesWithALookAtEachOffset) {
  std::mt19937_64 random(20'261'127);
  const auto below = [&](std::uint64_t limit) { return random() % limit; };
  int parts = 0;
  for (int round = 0; round < 300; ++round) {
    OffsetSet whole;
    OffsetSet part;
    const std::uint64_t offsets = 100 + below(20'000);
    for (std::uint64_t i = 0; i < offsets; i += 1 + below(3)) whole.add({{i}, {i + 1}});
    const std::uint64_t picks = below(40);
    for (std::uint64_t i = 0; i < picks; ++i) {
      const auto run = whole.first_behind({below(offsets)});
      if (!run) continue;
      part.add(below(50) == 0 ? OffsetRange{run->begin, {run->end.value + 1}} : *run);
    }
    const bool expected = is_part_by_offsets(part, whole);
    parts += expected ? 1 : 0;
    EXPECT_EQ(is_part_of(part, whole), expected) << "round " << round;
  }
  EXPECT_GT(parts, 50);
  EXPECT_LT(parts, 290);
}

}  // namespace
}  // namespace lightq::log
