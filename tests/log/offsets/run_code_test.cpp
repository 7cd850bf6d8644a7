/// Tests the codes of runs: each run has one code, and no other bytes are taken for a run.
#include "log/offsets/run_code.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <vector>

namespace lightq::log {
namespace {

using testing::ElementsAre;

constexpr std::uint64_t highest_offset = ~std::uint64_t{0};

std::vector<unsigned> code_of(std::uint64_t before, std::uint64_t begin, std::uint64_t end) {
  std::array<std::byte, run_code_bytes_max> bytes{};
  const std::byte* const behind = store_run(bytes.data(), {before}, {{begin}, {end}});
  std::vector<unsigned> code;
  for (const std::byte* at = bytes.data(); at != behind; ++at) code.push_back(std::to_integer<unsigned>(*at));
  return code;
}

std::optional<OffsetRange> taken(const std::vector<unsigned>& code, std::uint64_t before,
                                 std::uint64_t limit = highest_offset) {
  std::vector<std::byte> bytes;
  for (const unsigned byte : code) bytes.push_back(static_cast<std::byte>(byte));
  ByteView view(bytes);
  const auto run = take_run(view, {before}, {limit});
  if (run && !view.empty()) return std::nullopt;
  return run;
}

// The examples of docs/log_format.md.
TEST(RunCodeTest, IsAsDocumented) {
  EXPECT_THAT(code_of(10, 10, 11), ElementsAre(0x00));
  EXPECT_THAT(code_of(10, 12, 13), ElementsAre(0x04));
  EXPECT_THAT(code_of(10, 12, 17), ElementsAre(0x05, 0x03));
  EXPECT_THAT(code_of(10, 74, 75), ElementsAre(0x80, 0x01));
  EXPECT_THAT(code_of(0, 1000, 1300), ElementsAre(0xD1, 0x0F, 0xAA, 0x02));
}

TEST(RunCodeTest, DecodesWhatItEncodes) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 100'000; ++i) {
    const std::uint64_t before = random() >> random() % 64;
    const std::uint64_t begin = before + std::min(random() >> random() % 64, highest_offset - 1 - before);
    const std::uint64_t end = begin + 1 + std::min(random() >> random() % 64, highest_offset - begin - 1);
    const OffsetRange run{{begin}, {end}};
    std::array<std::byte, run_code_bytes_max> bytes{};
    const std::byte* const behind = store_run(bytes.data(), {before}, run);
    const std::byte* at = bytes.data();
    ASSERT_EQ(load_run(at, {before}), run);
    ASSERT_EQ(at, behind);
    ByteView view(bytes.data(), behind);
    ASSERT_EQ(take_run(view, {before}, {end}), run);
    ASSERT_TRUE(view.empty());
    view = {bytes.data(), behind};
    ASSERT_FALSE(take_run(view, {before}, {end - 1}).has_value()) << "it ends behind the limit";
    view = {bytes.data(), behind - 1};
    ASSERT_FALSE(take_run(view, {before}, {end}).has_value()) << "its last byte is missing";
  }
}

TEST(RunCodeTest, RefusesOtherCodes) {
  const unsigned full = 0xFF;
  EXPECT_FALSE(taken({}, 0).has_value());
  EXPECT_FALSE(taken({0x80}, 0).has_value());
  EXPECT_FALSE(taken({0x80, 0x00}, 0).has_value()) << "a gap with leading zeros";
  EXPECT_FALSE(taken({0x80, 0x81, 0x00}, 0).has_value()) << "a gap with leading zeros";
  EXPECT_FALSE(taken({0x01, 0x80, 0x00}, 0).has_value()) << "a length with leading zeros";
  EXPECT_FALSE(taken({0x80, full, full, full, full, full, full, full, full, 0x04}, 0).has_value())
      << "a gap of 65 bits";
  EXPECT_TRUE(taken({0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x02}, 0).has_value())
      << "a gap of 2^63";
  EXPECT_FALSE(taken({0x01, full, full, full, full, full, full, full, full, full, 0x02}, 0).has_value())
      << "a length of 65 bits";
  EXPECT_FALSE(taken({0x01, full, full, full, full, full, full, full, full, full, 0x01}, 0).has_value())
      << "a length minus 2 of 2^64 - 1";
  EXPECT_FALSE(taken({0x02}, highest_offset - 1).has_value());
  EXPECT_TRUE(taken({0x00}, highest_offset - 1).has_value());
}

}  // namespace
}  // namespace lightq::log
