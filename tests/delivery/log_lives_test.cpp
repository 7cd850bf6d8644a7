/// Tests of delivery/log_lives: the incarnations that a log has had.
#include "delivery/state/log_lives.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <random>
#include <set>

namespace lightq::broker {
namespace {

constexpr std::uint64_t incarnation = 0x0123456789ABCDEF;
constexpr Offset beyond_all{~std::uint64_t{0}};

std::uint32_t any_number() {
  static std::mt19937 source(42);
  return static_cast<std::uint32_t>(source());
}

TEST(LogLives, BeginWithTheLogsFirstLife) {
  const LogLives lives(incarnation);
  EXPECT_EQ(lives.incarnation(), incarnation);
  EXPECT_EQ(lives.same_up_to(incarnation), beyond_all);
  EXPECT_EQ(lives.same_up_to(incarnation + 1), std::nullopt);
  EXPECT_TRUE(lives.cursors().empty());
}

TEST(LogLives, HaveTheSameMessagesUpToTheBeginningOfTheNext) {
  LogLives lives(incarnation);
  lives.begin({120}, any_number());
  const std::uint64_t second = lives.incarnation();
  lives.begin({300}, any_number());
  EXPECT_NE(second, incarnation);
  EXPECT_EQ(lives.same_up_to(incarnation), Offset{120});
  EXPECT_EQ(lives.same_up_to(second), Offset{300});
  EXPECT_EQ(lives.same_up_to(lives.incarnation()), beyond_all);
  EXPECT_EQ(lives.incarnation() >> 32, incarnation >> 32) << "whose log it is";
}

TEST(LogLives, AnEndLostLaterIsLostForEarlierLivesToo) {
  LogLives lives(incarnation);
  lives.begin({120}, any_number());
  const std::uint64_t second = lives.incarnation();
  lives.begin({50}, any_number());
  EXPECT_EQ(lives.same_up_to(incarnation), Offset{50});
  EXPECT_EQ(lives.same_up_to(second), Offset{50});
}

TEST(LogLives, AreFoundAmongTheCursorsAgain) {
  LogLives lives(incarnation);
  for (const std::uint64_t end : {5, 7, 7, 12, 40, 41, 50, 60, 70, 80, 90}) lives.begin({end}, any_number());
  auto stored = lives.cursors();
  stored.push_back({"group:life:3", {1}, {}});
  stored.push_back({"life:", {1}, {}});
  stored.push_back({"life:x", {1}, {}});
  const LogLives again(incarnation, stored);
  EXPECT_EQ(again.incarnation(), lives.incarnation());
  EXPECT_EQ(again.same_up_to(incarnation), Offset{5});
  EXPECT_EQ(again.cursors(), lives.cursors());
}

TEST(LogLives, AFewAreKeptAndNoTwoAreAlike) {
  LogLives lives(incarnation);
  std::vector<std::uint64_t> shown = {incarnation};
  for (std::uint64_t end = 1; end <= 100; ++end) {
    lives.begin({end}, any_number());
    shown.push_back(lives.incarnation());
  }
  EXPECT_EQ(std::set(shown.begin(), shown.end()).size(), shown.size());
  EXPECT_EQ(lives.cursors().size(), LogLives::kept_max);
  const std::size_t oldest = 100 - 16;  // clients of so many earlier lives continue
  EXPECT_EQ(lives.same_up_to(shown[oldest]), Offset{oldest + 1});
  EXPECT_EQ(lives.same_up_to(shown[oldest - 1]), std::nullopt) << "too long ago";
}

// Both begin lives at the same offset and then assign it to different messages.
TEST(LogLives, OfALogAndOfItsCopyAreNeverTheSame) {
  LogLives log(incarnation);
  log.begin({10}, any_number());
  LogLives copy(incarnation, log.cursors());
  const std::uint64_t common = log.incarnation();
  ASSERT_EQ(copy.incarnation(), common);
  log.begin({20}, any_number());
  copy.begin({20}, any_number());
  EXPECT_EQ(copy.same_up_to(log.incarnation()), std::nullopt);
  EXPECT_EQ(log.same_up_to(copy.incarnation()), std::nullopt);
  EXPECT_EQ(copy.same_up_to(common), Offset{20});
}

TEST(LogLives, OfEarlierVersionsCountOneByOne) {
  std::vector<log::NamedCursor> stored;
  for (std::uint64_t number = 5; number < 5 + LogLives::kept_max; ++number)
    stored.push_back({"life:" + std::to_string(number), {number * 10}, {}});
  const LogLives lives(incarnation, stored);
  const auto of_number = [](std::uint32_t number) {
    return incarnation ^ std::uint32_t{number * 0x9E3779B9U};
  };
  EXPECT_EQ(lives.incarnation(), of_number(4 + LogLives::kept_max));
  EXPECT_EQ(lives.same_up_to(of_number(4)), Offset{50});
  EXPECT_EQ(lives.same_up_to(of_number(7)), Offset{80});
  EXPECT_EQ(lives.same_up_to(of_number(3)), std::nullopt);
}

TEST(LogLives, ThatWouldLookLikeAnEarlierOneGetAnotherNumber) {
  LogLives lives(incarnation);
  std::set<std::uint64_t> shown = {incarnation};
  for (std::uint64_t end = 1; end <= 10; ++end) {
    lives.begin({end}, 0xFFFFFFFF);  // every second number differs from one before by 2^32
    EXPECT_TRUE(shown.insert(lives.incarnation()).second) << end;
  }
}

TEST(LogLives, AnUnwrittenLifeIsNotShown) {
  LogLives lives(incarnation);
  lives.begin({9}, any_number());
  const std::uint64_t written = lives.incarnation();
  lives.hide(17);
  EXPECT_EQ(lives.incarnation(), (incarnation & 0xFFFFFFFF00000000) | 17);
  EXPECT_EQ(lives.same_up_to(incarnation), Offset{9});
  EXPECT_EQ(lives.cursors().size(), 1U) << "it is, a little later";
  EXPECT_EQ(LogLives(incarnation, lives.cursors()).incarnation(), written);
}

}  // namespace
}  // namespace lightq::broker
