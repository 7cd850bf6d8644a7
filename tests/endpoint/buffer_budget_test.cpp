/// Tests of BufferBudget: which connections are ended when their buffers exceed the budget.
#include "admission/buffer_budget.hpp"

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace lightq::broker {
namespace {

using namespace std::chrono_literals;
using Time = BufferBudget::Clock::time_point;

constexpr std::size_t kib = 1024;

class Fake final : public BufferBudget::Holder {
 public:
  explicit Fake(std::uint64_t user) : user_(user) {}
  [[nodiscard]] std::size_t buffered_bytes() const override { return bytes + idle; }
  void release_spare_memory() override { idle = 0; }
  void end_soon(const std::string& why) override { ended = why; }
  [[nodiscard]] std::uint64_t held_by() const override { return user_; }
  [[nodiscard]] bool waits_for_us() const override { return waits; }

  bool waits = false;
  std::size_t bytes = 0;
  std::size_t idle = 0;
  std::string ended;

 private:
  std::uint64_t user_;
};

class LastLine final : public LogSink {
 public:
  void write(LogLevel, std::string_view line) override {
    ++lines;
    last = line;
  }
  int lines = 0;
  std::string last;
};

class Budget : public ::testing::Test {
 protected:
  Fake& add(std::uint64_t user, std::size_t bytes, Time at) {
    holders.push_back(std::make_unique<Fake>(user));
    holders.back()->bytes = bytes;
    budget.note(*holders.back(), true, at);
    return *holders.back();
  }

  LimitCounts counts;
  LastLine log;
  BufferBudget budget{4096 * kib, &counts, &log};
  std::vector<std::unique_ptr<Fake>> holders;
  const Time start{1h};
};

TEST_F(Budget, SmallOnesAreNotCounted) {
  Fake& small = add(1, 63 * kib, start);
  EXPECT_EQ(budget.bytes(), 0U);
  small.bytes = 64 * kib;
  EXPECT_TRUE(budget.note(small, true, start));
  EXPECT_EQ(budget.bytes(), 64 * kib);
  small.bytes = 0;
  EXPECT_FALSE(budget.note(small, true, start));
  EXPECT_EQ(budget.bytes(), 0U);
  budget.forget(small);
}

TEST_F(Budget, EndsIdleConnectionsFromAQuarterOn) {
  Fake& still = add(1, 1000 * kib, start);
  Fake& moving = add(1, 100 * kib, start + 900ms);
  EXPECT_EQ(still.ended, "") << "not for a second yet";
  moving.bytes = 200 * kib;
  budget.note(moving, true, start + 1001ms);
  EXPECT_NE(still.ended, "");
  EXPECT_EQ(moving.ended, "");
  EXPECT_EQ(budget.bytes(), 200 * kib);
  EXPECT_EQ(counts.of(Limit::unfinished_bytes_total), 1U);
  budget.forget(still);
  EXPECT_EQ(budget.bytes(), 200 * kib);
}

TEST_F(Budget, BelowAQuarterIdleConnectionsStay) {
  Fake& still = add(1, 500 * kib, start);
  add(2, 500 * kib, start + 1h);
  EXPECT_EQ(still.ended, "");
}

TEST_F(Budget, ASmallUserDoesNotEndForTheBuffersOfALargeOne) {
  Fake& bobs = add(2, 300 * kib, start);
  Fake& drips = add(1, 1500 * kib, start);
  budget.note(drips, true, start + 1900ms);
  Fake& anns = add(1, 100 * kib, start + 2s);
  EXPECT_EQ(bobs.ended + drips.ended + anns.ended, "") << "who holds most goes on";
  anns.bytes = 200 * kib;
  budget.note(anns, true, start + 3s);
  EXPECT_NE(drips.ended, "");
  EXPECT_EQ(bobs.ended + anns.ended, "");
}

TEST_F(Budget, AConnectionWithLessThanAnEighthMayBeIdle) {
  std::vector<Fake*> few;
  for (const std::uint64_t user : {1U, 2U, 3U}) few.push_back(&add(user, 512 * kib, start));
  Fake& asking = add(4, 64 * kib, start + 1h);
  for (const Fake* const each : few) EXPECT_EQ(each->ended, "");
  few.front()->bytes = 513 * kib;
  budget.note(*few.front(), false, start + 1h);
  asking.bytes = 65 * kib;
  budget.note(asking, true, start + 2h);
  EXPECT_NE(few.front()->ended, "");
  EXPECT_EQ(few[1]->ended + few[2]->ended + asking.ended, "");
}

TEST_F(Budget, ReportsEndedConnectionsOnlyOnceInAWhile) {
  add(1, 1100 * kib, start);
  add(1, 1100 * kib, start + 1500ms);
  EXPECT_EQ(log.lines, 1);
  EXPECT_EQ(log.last,
            "closed a connection: partly transferred large messages use 2252800 of the 4194304 bytes that a "
            "thread allows (unfinished_bytes_total); bytes of the connection's user: 2252800");
  add(1, 1100 * kib, start + 3s);
  EXPECT_EQ(counts.of(Limit::unfinished_bytes_total), 2U);
  EXPECT_EQ(log.lines, 1) << "not again so soon";
  add(1, 1100 * kib, start + 13s);
  EXPECT_EQ(log.lines, 2);
}

TEST_F(Budget, BeyondTheLimitTheLeastRecentlyActiveConnectionOfTheLargestUserEnds) {
  Fake& other = add(2, 900 * kib, start);
  Fake& older = add(1, 1000 * kib, start + 1ms);
  Fake& newer = add(1, 1000 * kib, start + 2ms);
  Fake& asking = add(3, 1000 * kib, start + 3ms);
  EXPECT_EQ(other.ended + older.ended + newer.ended + asking.ended, "");
  asking.bytes = 1200 * kib;
  budget.note(asking, true, start + 4ms);
  EXPECT_EQ(other.ended + newer.ended + asking.ended, "");
  EXPECT_NE(older.ended, "");
}

TEST_F(Budget, AConnectionThatWaitsForTheBrokerIsNotIdleAndEndsLastOfItsUser) {
  Fake& waiting = add(1, 1500 * kib, start);
  waiting.waits = true;
  Fake& other = add(1, 1500 * kib, start + 1h);
  Fake& honest = add(2, 500 * kib, start + 1h);
  EXPECT_EQ(waiting.ended + other.ended + honest.ended, "");
  Fake& asking = add(3, 900 * kib, start + 1h);
  EXPECT_EQ(waiting.ended + honest.ended + asking.ended, "");
  EXPECT_NE(other.ended, "");
  asking.bytes = 2200 * kib;
  budget.note(asking, true, start + 1h + 1ms);
  EXPECT_NE(waiting.ended, "") << "his user holds most, whether he waits or not";
  EXPECT_EQ(honest.ended + asking.ended, "");
}

TEST_F(Budget, AConnectionThatWaitsForTheBrokerDoesNotMakeOthersIdle) {
  Fake& waiting = add(1, 3000 * kib, start);
  waiting.waits = true;
  Fake& still = add(2, 520 * kib, start);
  add(3, 500 * kib, start + 1h);
  EXPECT_EQ(waiting.ended + still.ended, "");
  add(4, 64 * kib, start + 1h + 1s);
  EXPECT_EQ(waiting.ended, "");
  EXPECT_NE(still.ended, "") << "what does not wait is more than a quarter by itself";
}

TEST_F(Budget, TheRequestingConnectionStaysIfItIsAlone) {
  Fake& alone = add(1, 5000 * kib, start);
  alone.bytes = 9000 * kib;
  budget.note(alone, true, start + 1h);
  EXPECT_EQ(alone.ended, "");
  EXPECT_EQ(counts.of(Limit::unfinished_bytes_total), 0U);
}

TEST_F(Budget, ReleasesUnneededBuffersBeforeItEndsConnections) {
  Fake& idle = add(1, 0, start);
  idle.idle = 3000 * kib;
  budget.note(idle, false, start);
  Fake& asking = add(2, 2000 * kib, start + 1h);
  EXPECT_EQ(idle.ended, "");
  EXPECT_EQ(idle.idle, 0U);
  EXPECT_EQ(asking.ended, "");
  EXPECT_EQ(budget.bytes(), 2000 * kib);
}

TEST_F(Budget, KeepsItsCountThroughRandomOperations) {
  std::mt19937 random(7);
  for (std::uint64_t user = 0; user < 40; ++user) add(user % 5, 0, start);
  Time now = start;
  for (int step = 0; step < 20'000; ++step) {
    now += std::chrono::milliseconds(random() % 50);
    Fake& holder = *holders[random() % holders.size()];
    if (!holder.ended.empty()) {  // models a new connection in place of the ended one
      budget.forget(holder);
      holder.ended.clear();
      holder.bytes = holder.idle = 0;
    }
    holder.bytes = random() % (600 * kib);
    holder.idle = random() % (100 * kib);
    budget.note(holder, random() % 2 == 0, now);
    std::size_t expected = 0;
    for (const auto& each : holders) {
      if (each->ended.empty() && each->buffered_bytes() >= BufferBudget::counted_from)
        expected += each->buffered_bytes();
    }
    ASSERT_EQ(budget.bytes(), expected) << step;
    ASSERT_LE(budget.bytes(), 4096 * kib + holder.buffered_bytes());
  }
  EXPECT_GT(counts.of(Limit::unfinished_bytes_total), 0U);
}

}  // namespace
}  // namespace lightq::broker
