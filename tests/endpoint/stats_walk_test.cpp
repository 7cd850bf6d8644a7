/// Tests of how the statistics of many topics are read in bounded turns, and divided among reactors.
#include "topic/reactor/stats_walk.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

#include "admission/turn_work.hpp"
#include "broker/stats_parts.hpp"

namespace lightq::broker {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class StatsWalkTest : public testing::Test {
 protected:
  std::optional<protocol::TopicStats> read(TopicId topic) {
    ++read_in_turn[loop.turn()];
    if (topic.value == gone) return std::nullopt;
    std::optional<protocol::TopicStats> stats(std::in_place);
    stats->messages_received = topic.value;
    stats->groups.resize(groups);
    return stats;
  }
  /// Begins a walk that notes the numbers of the topics in `seen`. It ends after `most` of them.
  void begin(std::uint64_t first, std::uint64_t count, std::vector<std::uint64_t>& seen,
             std::size_t most = ~std::size_t{0}) {
    std::vector<TopicId> topics;
    for (std::uint64_t i = 0; i < count; ++i) topics.push_back({first + i});
    ++walks_left;
    walk.begin(
        std::move(topics),
        [&seen, most](const std::optional<protocol::TopicStats>& stats) {
          seen.push_back(stats ? stats->messages_received : 0);
          return seen.size() < most;
        },
        [this](const Result<void>& walked) {
          if (!walked) errors.push_back(walked.error().code);
          if (--walks_left == 0) stop.request_stop();
        });
  }
  void run() { loop.run(stop.get_token()); }

  EventLoop loop;
  std::stop_source stop;
  int walks_left = 0;
  std::vector<ErrorCode> errors;  // of the walks, in the order of their ends
  std::uint64_t gone = ~std::uint64_t{0};
  std::size_t groups = 0;
  std::map<std::uint64_t, std::uint64_t> read_in_turn;
  StatsWalk walk{loop, [this](TopicId topic) { return read(topic); }};
};

TEST_F(StatsWalkTest, NoTurnReadsMoreThanItsShare) {
  std::vector<std::uint64_t> seen;
  begin(1, 10'000, seen);
  run();
  EXPECT_EQ(seen.size(), 10'000U);
  EXPECT_TRUE(std::ranges::is_sorted(seen));
  const std::uint64_t share = TurnShare::call_work_max / StatsWalk::topic_work_bytes + 1;
  for (const auto& [turn, count] : read_in_turn) EXPECT_LE(count, share) << "turn " << turn;
  EXPECT_LE(read_in_turn.size(), 10'000 / share + 2) << "and each turn is used";
}

TEST_F(StatsWalkTest, ATopicOfManyGroupsTakesMoreOfTheTurn) {
  groups = 200;
  std::vector<std::uint64_t> seen;
  begin(1, 100, seen);
  run();
  const std::uint64_t share =
      TurnShare::call_work_max / (StatsWalk::topic_work_bytes + 200 * StatsWalk::entry_work_bytes) + 1;
  EXPECT_LT(share, 10U);
  for (const auto& [turn, count] : read_in_turn) EXPECT_LE(count, share) << "turn " << turn;
  EXPECT_EQ(seen.size(), 100U);
}

TEST_F(StatsWalkTest, OtherSourcesGetTheirTurnsDuringAWalk) {
  class Other final : public EventLoop::Source {
   public:
    explicit Other(EventLoop& loop) : loop_(loop) { loop.call_by_turns(*this); }
    ~Other() override { loop_.cancel_soon(*this); }
    void on_ready() override {
      TurnWork::add(TurnShare::turn_work_max);  // as much as all sources may do in a turn
      ++calls;
      loop_.call_by_turns(*this);
    }
    int calls = 0;

   private:
    EventLoop& loop_;
  } other(loop);
  std::vector<std::uint64_t> seen;
  begin(1, 2'000, seen);
  run();
  EXPECT_EQ(seen.size(), 2'000U);
  EXPECT_GE(other.calls, 2'000 / 257) << "once between two shares";
}

TEST_F(StatsWalkTest, WalksFollowEachOtherAndMayEndEarly) {
  gone = 2;
  std::vector<std::uint64_t> first;
  std::vector<std::uint64_t> second;
  std::vector<std::uint64_t> none;
  begin(1, 1'000, first, 3);
  begin(0, 0, none);
  begin(7, 2, second);
  run();
  EXPECT_THAT(first, ElementsAre(1, 0, 3)) << "0: the topic is gone";
  EXPECT_THAT(none, IsEmpty());
  EXPECT_THAT(second, ElementsAre(7, 8));
  EXPECT_THAT(errors, IsEmpty());
}

TEST_F(StatsWalkTest, AStopEndsAllWalksWithinTheCallAndReadsNothing) {
  std::vector<std::uint64_t> first;
  std::vector<std::uint64_t> second;
  begin(1, 100'000, first);
  begin(1, 5, second);
  walk.on_ready();
  const std::size_t read_before = first.size();
  EXPECT_GT(read_before, 0U);
  const std::uint64_t work_before = TurnWork::bytes();
  walk.stop();
  EXPECT_EQ(first.size(), read_before);
  EXPECT_THAT(second, IsEmpty());
  EXPECT_EQ(TurnWork::bytes(), work_before);
  EXPECT_EQ(walks_left, 0);
  EXPECT_THAT(errors, ElementsAre(ErrorCode::shutting_down, ErrorCode::shutting_down));
}

TEST_F(StatsWalkTest, AfterAStopWalksEndAsTheyBegin) {
  walk.stop();
  std::vector<std::uint64_t> seen;
  begin(1, 5, seen);
  EXPECT_EQ(walks_left, 0);
  EXPECT_THAT(seen, IsEmpty());
  EXPECT_THAT(errors, ElementsAre(ErrorCode::shutting_down));
}

TopicsStats counted(const std::vector<std::uint64_t>& numbers) {
  TopicsStats answer;
  for (const std::uint64_t number : numbers) {
    auto& stats = answer.topics.emplace_back();
    if (number != 0) stats.emplace().messages_received = number;
  }
  return answer;
}

std::vector<std::uint64_t> numbers_of(const TopicsStats& answer) {
  std::vector<std::uint64_t> numbers;
  for (const auto& stats : answer.topics) numbers.push_back(stats ? stats->messages_received : 0);
  return numbers;
}

std::vector<std::uint64_t> ids_of(const TopicsAsked& asked) {
  std::vector<std::uint64_t> ids;
  for (const TopicId topic : asked.topics) ids.push_back(topic.value);
  return ids;
}

StatsParts parts_of(const std::vector<std::uint64_t>& ids, std::size_t entries_max = 100) {
  TopicsAsked asked;
  asked.entries_max = entries_max;
  for (const std::uint64_t id : ids) asked.topics.push_back({id});
  return {std::move(asked), 3, [](TopicId topic) { return static_cast<std::size_t>(topic.value % 3); }};
}

TEST(StatsParts, EachReactorGetsItsTopicsAndTheAnswerKeepsTheOrder) {
  StatsParts parts = parts_of({7, 2, 4, 1, 5});
  EXPECT_THAT(ids_of(parts.take_part(0)), IsEmpty());
  EXPECT_THAT(ids_of(parts.take_part(1)), ElementsAre(7, 4, 1));
  EXPECT_THAT(ids_of(parts.take_part(2)), ElementsAre(2, 5));
  EXPECT_FALSE(parts.complete());
  parts.put(2, counted({2, 0}));  // topic 5 is gone
  EXPECT_FALSE(parts.complete());
  parts.put(1, counted({7, 4, 1}));
  EXPECT_TRUE(parts.complete()) << "reactor 0 has none of the topics";
  EXPECT_THAT(numbers_of(*parts.joined()), ElementsAre(7, 2, 4, 1, 0));
}

TEST(StatsParts, AnAnswerThatEndsEarlyLeavesNoGap) {
  StatsParts parts = parts_of({1, 2, 4, 5, 7}, 3);
  EXPECT_EQ(parts.take_part(1).entries_max, 3U);
  parts.put(1, counted({1, 4, 7}));
  parts.put(2, counted({2}));  // topic 2 alone has as many entries as the answer may have
  EXPECT_THAT(numbers_of(*parts.joined()), ElementsAre(1, 2, 4));
  StatsParts bounded = parts_of({1, 2, 4, 5, 7}, 2);
  bounded.put(1, counted({1, 4}));
  bounded.put(2, counted({2, 5}));
  EXPECT_THAT(numbers_of(*bounded.joined()), ElementsAre(1, 2)) << "reactors together find more than fits";
}

TEST(StatsParts, AQuestionWithoutTopicsIsComplete) {
  StatsParts parts = parts_of({});
  EXPECT_TRUE(parts.complete());
  EXPECT_THAT(parts.joined()->topics, IsEmpty());
}

TEST(StatsParts, AnErrorOfOneReactorIsTheAnswerOnceAllHaveAnswered) {
  StatsParts parts = parts_of({1, 2});
  parts.put(1, Error{ErrorCode::shutting_down, "the broker is stopping"});
  EXPECT_FALSE(parts.complete());
  parts.put(2, counted({2}));
  EXPECT_TRUE(parts.complete());
  EXPECT_EQ(parts.joined().error().code, ErrorCode::shutting_down);
}

}  // namespace
}  // namespace lightq::broker
