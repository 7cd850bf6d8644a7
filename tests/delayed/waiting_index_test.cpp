/// Compares the index of waiting messages with a map of single messages.
#include "delayed/waiting_index.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <utility>

namespace lightq::broker {
namespace {

class IndexAndModel {
 public:
  explicit IndexAndModel(WaitingIndex::Places places)
      : index(places), step_(places == WaitingIndex::Places::equal ? 0U : 1U) {}

  void add(WaitingRun run) {
    run.place = next_place_;
    next_place_ += some(3) == 0 ? run.count + 1'000 : run.count * step_;
    index.add(run);
    for (std::uint32_t each = 0; each < run.count; ++each)
      model[run.number + each] = {run.number + each, run.due_us, run.place + each * step_, run.bytes};
  }
  void remove(std::uint64_t number, std::uint32_t count) {
    index.remove(number, count);
    for (std::uint32_t each = 0; each < count; ++each) model.erase(number + each);
  }
  void set_due(std::uint64_t number, std::uint32_t count, std::int64_t due_us) {
    index.set_due(number, count, due_us);
    for (std::uint32_t each = 0; each < count; ++each) model.at(number + each).due_us = due_us;
  }
  void set_place(std::uint64_t number, std::uint32_t count) {
    index.set_place(number, count, next_place_);
    for (std::uint32_t each = 0; each < count; ++each)
      model.at(number + each).place = next_place_ + each * step_;
    next_place_ += count + some(2);
  }
  /// Returns the first messages of a run that waits, at most `most`, or nothing.
  std::optional<WaitingRun> some_run(std::uint32_t most) {
    auto run = index.from_number(some(next_number + 1));
    if (run) run->count = std::min<std::uint32_t>(run->count, 1 + static_cast<std::uint32_t>(some(most)));
    return run;
  }
  /// Compares everything, and a walk from a random place.
  void compare() {
    ASSERT_EQ(index.size(), model.size());
    ASSERT_LE(index.runs(), index.size());
    std::uint64_t bytes = 0;
    std::set<std::pair<DuePosition, std::uint64_t>> by_due;
    for (const auto& [number, message] : model) {
      bytes += message.bytes;
      by_due.insert({message.position(), message.place});
    }
    ASSERT_EQ(index.bytes(), bytes);
    const DuePosition from{static_cast<std::int64_t>(some(12)), some(next_number + 1)};
    auto expected = by_due.lower_bound({from, 0});
    for (auto walk = index.walk(from); walk.get() != nullptr; walk.next(), ++expected) {
      ASSERT_NE(expected, by_due.end());
      ASSERT_EQ(*walk.get(), expected->first);
      ASSERT_EQ(walk.run().place, expected->second);
    }
    ASSERT_EQ(expected, by_due.end());
    const std::uint64_t number = some(next_number + 2);
    const auto found = index.find(number);
    ASSERT_EQ(found.has_value(), model.contains(number));
    const auto next = model.lower_bound(number);
    const auto run = index.from_number(number);
    ASSERT_EQ(run.has_value(), next != model.end());
    if (!run) return;
    ASSERT_EQ(run->number, next->first);
    for (std::uint32_t each = 0; each < run->count; ++each) {
      const WaitingMessage& message = model.at(run->number + each);
      ASSERT_EQ(message.due_us, run->due_us);
      ASSERT_EQ(message.bytes, run->bytes);
      ASSERT_EQ(message.place, run->place + each * step_);
    }
  }
  std::uint64_t some(std::uint64_t most) { return random() % most; }

  std::mt19937_64 random{7};
  WaitingIndex index;
  std::map<std::uint64_t, WaitingMessage> model;
  std::uint64_t next_number = 0;

 private:
  std::uint64_t step_;
  std::uint64_t next_place_ = 0;
};

class WaitingIndexTest : public testing::TestWithParam<WaitingIndex::Places> {};

TEST_P(WaitingIndexTest, IsLikeAMapOfSingleMessages) {
  IndexAndModel both(GetParam());
  std::size_t longest = 0;
  for (int operation = 0; operation < 20'000; ++operation) {
    const bool grows = operation / 2'000 % 2 == 0;
    if (const auto change = both.some(10); change < (grows ? 4U : 1U)) {
      const auto count = static_cast<std::uint32_t>(1 + both.some(20));
      both.add({both.next_number, static_cast<std::int64_t>(both.some(10)), 0,
                static_cast<std::uint32_t>(both.some(3)), count});
      both.next_number += count + (both.some(4) == 0 ? both.some(5) : 0);
    } else if (const auto run = both.some_run(8); run) {
      longest = std::max<std::size_t>(longest, run->count);
      switch (both.some(4)) {
        case 0: both.set_due(run->number, run->count, static_cast<std::int64_t>(both.some(10))); break;
        case 1: both.set_place(run->number, run->count); break;
        default: both.remove(run->number, run->count); break;
      }
    }
    if (operation % 10 == 0) both.compare();
    ASSERT_FALSE(testing::Test::HasFatalFailure());
  }
  EXPECT_EQ(longest, 8U);
}

INSTANTIATE_TEST_SUITE_P(Places, WaitingIndexTest,
                         testing::Values(WaitingIndex::Places::ascending, WaitingIndex::Places::equal));

TEST(WaitingIndex, NeighboursThatFitAreOneEntry) {
  WaitingIndex index;
  index.add({0, 50, 0, 100, 1'000});
  index.add({1'000, 50, 1'000, 100, 1'000});
  EXPECT_EQ(index.runs(), 1U);
  index.add({2'000, 50, 2'000, 101, 1});
  index.add({2'001, 51, 2'001, 101, 1});
  EXPECT_EQ(index.runs(), 3U);
  index.set_due(700, 1, 60);
  EXPECT_EQ(index.runs(), 5U);
  index.set_due(700, 1, 50);
  EXPECT_EQ(index.runs(), 3U);
  // A command that changes one after the other makes one new run.
  for (std::uint64_t number = 100; number < 200; ++number) index.set_due(number, 1, 40);
  EXPECT_EQ(index.runs(), 5U);
  EXPECT_EQ(index.first()->number, 100U);
  index.remove(150, 10);
  EXPECT_EQ(index.runs(), 6U);
  EXPECT_EQ(index.size(), 1'992U);
}

TEST(WaitingIndex, LoadingMakesTheSameOrder) {
  WaitingIndex index;
  index.load_begin();
  index.add({10, 50, 10, 100, 5});
  index.add({15, 40, 15, 100, 5});
  index.set_due(12, 1, 30);
  index.remove(16, 2);
  index.load_end();
  std::vector<std::uint64_t> numbers;
  for (auto walk = index.walk(); walk.get() != nullptr; walk.next()) numbers.push_back(walk.get()->number);
  EXPECT_EQ(numbers, (std::vector<std::uint64_t>{12, 15, 18, 19, 10, 11, 13, 14}));
}

}  // namespace
}  // namespace lightq::broker
