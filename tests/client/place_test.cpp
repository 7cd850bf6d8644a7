/// Tests of parsing positions in a topic as users write them.
#include "client/place.hpp"

#include <gtest/gtest.h>

namespace lightq::cli {
namespace {

using session::From;
using session::Place;

constexpr Timestamp now{1'795'320'000'000'000};  // 2026-11-22T04:00:00Z

std::optional<Place> place(std::string_view text) {
  return parse_place(text, now);
}

TEST(Place, ReadsWords) {
  EXPECT_EQ(place("first"), (Place{From::first, 0}));
  EXPECT_EQ(place("next"), (Place{From::next, 0}));
  EXPECT_EQ(place("last"), (Place{From::last, 0}));
}

TEST(Place, TakesBareNumbersForOffsets) {
  EXPECT_EQ(place("0"), (Place{From::offset, 0}));
  EXPECT_EQ(place("18446744073709551615"), (Place{From::offset, UINT64_MAX}));
  EXPECT_EQ(place("18446744073709551616"), std::nullopt);
}

TEST(Place, ReadsTimesInUtc) {
  EXPECT_EQ(place("2026-11-22T04:00:00Z"), (Place{From::time, 1'795'320'000'000'000}));
  EXPECT_EQ(place("2026-11-22T04:00:00.25Z"), (Place{From::time, 1'795'320'000'250'000}));
  EXPECT_EQ(place("2026-11-22T04:00:00.1234567Z"), (Place{From::time, 1'795'320'000'123'456}));
  EXPECT_EQ(place("1970-01-01T00:00:00Z"), (Place{From::time, 0}));
  EXPECT_EQ(place("2024-02-29T23:59:59Z"), (Place{From::time, 1'709'251'199'000'000}));
}

TEST(Place, ReadsDatesAndOtherClocksThanUtc) {
  EXPECT_EQ(place("2026-11-22"), (Place{From::time, 1'795'320'000'000'000 - 4 * 3'600'000'000ULL}));
  EXPECT_EQ(place("2026-11-22T04:00Z"), (Place{From::time, 1'795'320'000'000'000}));
  EXPECT_EQ(place("2026-11-22T05:00:00+01:00"), (Place{From::time, 1'795'320'000'000'000}));
  EXPECT_EQ(place("2026-11-21T22:30-05:30"), (Place{From::time, 1'795'320'000'000'000}));
  for (const char* text : {"2026-11-22T04:00+1:00", "2026-11-22T04:00+24:00", "2026-11-22T04:00+01:60",
                           "2026-11-22+01:00", "2026-11-22Z", "2026-11-31", "2026-11-22T04:00 01:00"})
    EXPECT_EQ(place(text), std::nullopt) << text;
}

TEST(Place, ReadsHowLongAgo) {
  EXPECT_EQ(place("1h30m"), (Place{From::time, 1'795'320'000'000'000 - 5'400'000'000ULL}));
  EXPECT_EQ(place("15m"), (Place{From::time, 1'795'320'000'000'000 - 900'000'000ULL}));
  EXPECT_EQ(place("1.5h"), (Place{From::time, 1'795'320'000'000'000 - 5'400'000'000ULL}));
  EXPECT_EQ(place("250ms"), (Place{From::time, 1'795'320'000'000'000 - 250'000ULL}));
  EXPECT_EQ(place("100000000d"), (Place{From::time, 0}));
}

TEST(Place, RefusesAnInvalidPosition) {
  for (const char* text : {"",
                           "First",
                           "begin",
                           "-1",
                           "-10m",
                           "1.5",
                           "1.",
                           "+1",
                           "1 2",
                           "10x",
                           "2026-11-22T04:00:00",
                           "2026-11-22 04:00:00Z",
                           "2026-02-29T00:00:00Z",
                           "2026-13-01T00:00:00Z",
                           "2026-11-22T24:00:00Z",
                           "2026-11-22T04:60:00Z",
                           "2026-11-22T04:00:60Z",
                           "2026-11-22T04:00:00.Z",
                           "2026-11-22T04:00:00.1xZ",
                           "1969-12-31T23:59:59Z",
                           "Z",
                           "first ",
                           " 1"}) {
    EXPECT_EQ(place(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace lightq::cli
