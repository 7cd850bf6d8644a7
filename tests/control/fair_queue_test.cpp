/// Tests of sharing a bounded queue: admission/fair_queue, access/delayed_replies.
#include "admission/fair_queue.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "access/delayed_replies.hpp"

namespace lightq::broker {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct Item {
  std::string source;
  std::string name;
  int number = 0;
  bool doubtful = false;
};

class FairQueueTest : public testing::Test {
 protected:
  /// Adds an item. Returns the numbers of the items that were evicted for it.
  std::vector<int> push(const std::string& source, const std::string& name, bool doubtful = false,
                        std::size_t source_max = 4) {
    std::vector<int> gone;
    const auto pushed = queue.push({source, name, ++last, doubtful}, source_max);
    for (const Item& each : pushed.of_source) gone.push_back(each.number);
    for (const Item& each : pushed.of_all) gone.push_back(each.number);
    return gone;
  }
  std::vector<int> take_all() {
    std::vector<int> taken;
    while (const auto item = queue.take([](const std::string&) { return true; }))
      taken.push_back(item->number);
    return taken;
  }
  FairQueue<Item> queue{8};
  int last = 0;
};

TEST_F(FairQueueTest, SourcesTakeTurnsAndInThemNames) {
  for (const char* name : {"x", "x", "x", "y"}) push("a", name);
  push("b", "z");
  push("b", "z");
  EXPECT_THAT(take_all(), ElementsAre(1, 5, 4, 6, 2, 3));
  EXPECT_TRUE(queue.empty());
}

TEST_F(FairQueueTest, TakesItemsOfReadySources) {
  push("a", "x");
  push("b", "x");
  const auto only_b = [](const std::string& source) { return source == "b"; };
  EXPECT_EQ(queue.take(only_b)->number, 2);
  EXPECT_FALSE(queue.take(only_b).has_value());
  EXPECT_EQ(queue.size(), 1U);
}

TEST_F(FairQueueTest, InAFullSourceTheNameWithMostLosesAPlace) {
  for (int i = 0; i < 4; ++i) EXPECT_THAT(push("a", "x"), IsEmpty());
  EXPECT_THAT(push("a", "x"), ElementsAre(5)) << "it would be the name itself";
  EXPECT_THAT(push("a", "y"), ElementsAre(4)) << "the newest";
  EXPECT_THAT(push("a", "y"), ElementsAre(3));
  EXPECT_THAT(push("a", "y"), ElementsAre(8)) << "two each";
  EXPECT_THAT(push("b", "x"), IsEmpty());
  EXPECT_THAT(take_all(), ElementsAre(1, 9, 6, 2, 7));
}

TEST_F(FairQueueTest, NamesThatAreDoubtfulAndThoseThatAreNotHaveHalfEach) {
  for (const char* name : {"p", "q", "r", "s"}) push("a", name, true);
  EXPECT_EQ(push("a", "t", true).size(), 1U);
  EXPECT_EQ(push("a", "x").size(), 1U) << "a doubtful one";
  EXPECT_EQ(push("a", "y").size(), 1U);
  EXPECT_THAT(push("a", "z"), testing::SizeIs(1));
  EXPECT_THAT(push("a", "t", true), testing::SizeIs(1));
  std::size_t doubtful = 0;
  for (const Item& each : queue.extract_if([](const Item&) { return true; }))
    doubtful += each.doubtful ? 1 : 0;
  EXPECT_EQ(doubtful, 2U);
  EXPECT_TRUE(queue.empty());
}

TEST_F(FairQueueTest, DoubtfulRequestsLoseTheirPlaces) {
  for (const char* name : {"p", "q", "r", "s"}) push("a", name);
  EXPECT_THAT(push("a", "t"), testing::SizeIs(1)) << "one of five that are alike";
  for (const char* name : {"p", "q", "r", "s", "t"}) queue.doubt("a", name);
  queue.doubt("b", "p");
  push("a", "x");
  push("a", "y");
  EXPECT_EQ(queue.extract_if([](const Item& each) { return each.name >= "x"; }).size(), 2U);
  EXPECT_EQ(queue.size(), 2U);
}

TEST_F(FairQueueTest, IfAllIsFullTheSourceWithMostLosesAPlace) {
  for (int i = 0; i < 8; ++i) EXPECT_THAT(push("a", "x", false, 100), IsEmpty());
  EXPECT_THAT(push("a", "x", false, 100), ElementsAre(9));
  EXPECT_THAT(push("b", "y", false, 100), ElementsAre(8));
  for (const char* source : {"c", "d", "e", "f", "g", "h"}) EXPECT_EQ(push(source, "z").size(), 1U) << source;
  EXPECT_EQ(queue.size(), 8U);
  EXPECT_THAT(push("i", "z"), ElementsAre(17)) << "one each";
}

TEST_F(FairQueueTest, ASourceWithASmallerLimitLosesTheExcessAtItsNextRequest) {
  for (int i = 0; i < 4; ++i) push("a", "x");
  EXPECT_THAT(push("a", "y", false, 2), ElementsAre(4, 3, 2));
  EXPECT_THAT(take_all(), ElementsAre(1, 5));
}

TEST(DelayedReplies, SendsTheOldestEarlyIfThereAreTooMany) {
  DelayedReplies held(3, 2);
  std::vector<int> given;
  const auto add = [&](const std::string& source, int number) {
    const auto added = held.add(source, [&given, number] { given.push_back(number); });
    for (const auto& early : added.early) early();
    return added.number;
  };
  const auto first = add("a", 1);
  const auto second = add("a", 2);
  add("b", 3);
  EXPECT_THAT(given, IsEmpty());
  add("a", 4);
  EXPECT_THAT(given, ElementsAre(1)) << "of its source";
  EXPECT_FALSE(held.take(first).has_value());
  add("c", 5);
  EXPECT_THAT(given, ElementsAre(1, 2)) << "of all";
  EXPECT_FALSE(held.take(second).has_value());
  EXPECT_EQ(held.size(), 3U);
}

}  // namespace
}  // namespace lightq::broker
