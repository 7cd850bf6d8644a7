/// Tests of the histories of topics: their steps, their gaps, and their bound.
#include "topic/history/history_book.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <optional>
#include <vector>

namespace lightq::broker {

namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::SizeIs;

constexpr std::uint64_t minute = 60;

TEST(TopicHistory, HasRatesOfSecondsAndTheStateAtTheirEnds) {
  TopicHistory history(100, {});
  EXPECT_TRUE(history.add(100, {.in = 7, .out = 2, .pending = 5, .lag = 4}));
  EXPECT_TRUE(history.add(101, {.in = 10, .out = 10, .pending = 0, .lag = 0}));
  EXPECT_FALSE(history.add(102, {.in = 10, .out = 10, .pending = 0, .lag = 0}));
  EXPECT_THAT(history.course().seconds,
              ElementsAre(FlowSample{7, 2, 5, 4}, FlowSample{3, 8, 0, 0}, FlowSample{0, 0, 0, 0}));
}

TEST(TopicHistory, DividesWhatCameInAGapAmongItsSeconds) {
  TopicHistory history(100, {});
  history.add(100, {.in = 1});
  history.add(104, {.in = 9, .pending = 3});
  EXPECT_THAT(history.course().seconds, ElementsAre(FlowSample{1}, FlowSample{2, 0, 3}, FlowSample{2, 0, 3},
                                                    FlowSample{2, 0, 3}, FlowSample{2, 0, 3}));
}

TEST(TopicHistory, TakesNoSecondTwiceAndNoCounterThatFalls) {
  TopicHistory history(100, {.in = 5});
  history.add(100, {.in = 3});
  EXPECT_FALSE(history.add(100, {.in = 8}));
  history.add(101, {.in = 8});
  EXPECT_THAT(history.course().seconds, ElementsAre(FlowSample{0}, FlowSample{5}));
}

TEST(TopicHistory, HasMeansAndPeaksOfMinutes) {
  TopicHistory history(2 * minute, {});
  history.add(2 * minute, {.in = 120, .pending = 90, .lag = 9});
  history.add(3 * minute - 1, {.in = 120, .pending = 0, .lag = 0});
  history.add(3 * minute, {.in = 123, .pending = 1, .lag = 1});
  EXPECT_THAT(history.course().minutes, ElementsAre(FlowSample{2, 0, 90, 9}, FlowSample{3, 0, 1, 1}));
}

TEST(TopicHistory, KeepsAnHourHoweverLongItRuns) {
  TopicHistory history(0, {});
  for (std::uint64_t second = 0; second < 2 * minute * minute; ++second) history.add(second, {.in = second});
  const TopicCourse course = history.course();
  EXPECT_THAT(course.seconds, SizeIs(TopicHistory::seconds_kept));
  EXPECT_THAT(course.minutes, SizeIs(TopicHistory::minutes_kept));
  EXPECT_THAT(course.minutes, Each(FlowSample{1}));
  history.add(100 * minute * minute, {.in = 1'000'000'000});  // a gap of days ends
  EXPECT_THAT(history.course().seconds, SizeIs(TopicHistory::seconds_kept));
}

TEST(TopicHistory, CutsNumbersThatAreTooLarge) {
  TopicHistory history(0, {});
  history.add(0, {.pending = ~std::uint64_t{0}, .lag = std::uint64_t{1} << 32U});
  EXPECT_THAT(history.course().seconds, ElementsAre(FlowSample{0, 0, 0xFFFFFFFF, 0xFFFFFFFF}));
}

/// A book of at most two histories, with counters and a clock that the tests set.
class HistoryBookTest : public ::testing::Test {
 protected:
  void move(std::uint64_t topic, std::uint64_t in) {
    flows_[topic].in += in;
    book_.moved({topic}, now_);
  }
  void pass(std::uint64_t seconds = 1) {
    for (std::uint64_t i = 0; i < seconds; ++i) book_.sample(now_ += std::chrono::seconds(1));
  }
  std::vector<float> rates(std::uint64_t topic) {
    std::vector<float> rates;
    for (const FlowSample& sample : book_.course_of({topic}, now_).seconds) rates.push_back(sample.in);
    return rates;
  }

  std::map<std::uint64_t, TopicFlow> flows_;
  int reads_ = 0;
  HistoryBook::Time now_{std::chrono::hours(10)};
  HistoryBook book_{nullptr,
                    [this](TopicId topic) {
                      ++reads_;
                      const auto found = flows_.find(topic.value);
                      return found == flows_.end() ? std::nullopt : std::optional(found->second);
                    },
                    2};
};

TEST_F(HistoryBookTest, BeginsWithTheFirstMessages) {
  move(1, 0);
  EXPECT_EQ(book_.size(), 0U);
  move(1, 5);
  pass();
  move(1, 1);
  pass();
  EXPECT_THAT(rates(1), ElementsAre(5, 1));
  EXPECT_THAT(rates(2), IsEmpty());
}

TEST_F(HistoryBookTest, ReadsNoTopicThatIsStill) {
  move(1, 5);
  flows_[1].pending = 5;
  EXPECT_THAT(book_.next_sample(now_), Optional(now_ + std::chrono::seconds(1)));
  pass(2);
  reads_ = 0;
  pass(100);
  EXPECT_EQ(reads_, 0);
  EXPECT_EQ(book_.next_sample(now_), std::nullopt) << "with pending messages it stays as it is";
  EXPECT_THAT(rates(1), SizeIs(102)) << "a reader gets the still seconds, too";
  EXPECT_EQ(reads_, 1);
}

TEST_F(HistoryBookTest, WaitsForTheEndOfAStillHistory) {
  const auto begin = now_;
  move(1, 5);
  pass(2);
  const auto end = book_.next_sample(now_);
  ASSERT_THAT(end, Optional(begin + std::chrono::seconds(HistoryBook::still_seconds_max + 2)));
  now_ = *end - std::chrono::seconds(1);
  book_.sample(now_);
  EXPECT_EQ(book_.size(), 1U);
  book_.sample(*end);
  EXPECT_EQ(book_.size(), 0U);
  EXPECT_EQ(book_.next_sample(*end), std::nullopt);
}

TEST_F(HistoryBookTest, CountsWhatMovesAfterAStillTimeInItsOwnSecond) {
  move(1, 5);
  pass(4);
  move(1, 6);
  pass();
  EXPECT_THAT(rates(1), ElementsAre(5, 0, 0, 0, 6));
}

TEST_F(HistoryBookTest, ShowsAStillTopicThatChangesWithoutMessages) {
  move(1, 5);
  flows_[1].pending = 5;
  pass(3);
  flows_[1].pending = 2;  // some have expired
  const auto seconds = book_.course_of({1}, now_ + std::chrono::seconds(2)).seconds;
  ASSERT_THAT(seconds, SizeIs(5));
  EXPECT_EQ(seconds[3].pending, 5U);
  EXPECT_EQ(seconds[4].pending, 2U);
}

TEST(HistoryBook, KeepsNothingWithoutPlaces) {
  int reads = 0;
  HistoryBook book(
      nullptr,
      [&](TopicId) {
        ++reads;
        return std::optional(TopicFlow{.in = 1});
      },
      0);
  const HistoryBook::Time now{std::chrono::hours(10)};
  book.moved({1}, now);
  EXPECT_EQ(book.size(), 0U);
  EXPECT_EQ(reads, 0);
  EXPECT_EQ(book.next_sample(now), std::nullopt);
}

TEST_F(HistoryBookTest, ForgetsATopicThatIsGone) {
  move(1, 5);
  move(2, 5);
  book_.forget({1});
  flows_.erase(2);
  pass();
  EXPECT_EQ(book_.size(), 0U);
}

TEST_F(HistoryBookTest, ForgetsATopicThatIsStillForAnHourUnlessMessagesArePending) {
  move(1, 5);
  move(2, 5);
  flows_[2].pending = 1;
  pass(HistoryBook::still_seconds_max + 3);
  EXPECT_THAT(rates(1), IsEmpty());
  EXPECT_THAT(rates(2), SizeIs(TopicHistory::seconds_kept));
  // Messages that moved without a history are not taken for a peak.
  flows_[1].in += 1000;
  move(1, 1);
  pass();
  EXPECT_THAT(rates(1), ElementsAre(0));
}

TEST_F(HistoryBookTest, GivesThePlaceOfTheStillestTopicToOneThatMoves) {
  move(1, 1);
  move(2, 1);
  pass();
  move(3, 1);
  EXPECT_THAT(rates(3), IsEmpty()) << "both have moved in the last minute";
  pass(HistoryBook::still_seconds_min);
  move(2, 1);
  pass();
  move(3, 1);
  pass();
  EXPECT_THAT(rates(1), IsEmpty());
  EXPECT_FALSE(rates(2).empty());
  EXPECT_THAT(rates(3), SizeIs(1));
  EXPECT_EQ(book_.size(), 2U);
}

TEST_F(HistoryBookTest, LooksForAPlaceOnceASecond) {
  move(1, 1);
  move(2, 1);
  pass(2 * HistoryBook::still_seconds_min);
  move(3, 1);
  move(4, 1);
  EXPECT_EQ(book_.size(), 2U);
  pass();
  EXPECT_FALSE(rates(3).empty());
  EXPECT_THAT(rates(4), IsEmpty());
  move(4, 1);
  pass();
  EXPECT_FALSE(rates(4).empty());
}

}  // namespace

}  // namespace lightq::broker
