/// Tests of MemberTurns, also compared with a list.
#include "delivery/state/member_turns.hpp"

#include <algorithm>
#include <deque>
#include <list>

#include <gtest/gtest.h>

#include "support/random.hpp"

namespace lightq::broker {
namespace {

struct TurnItem : MemberTurns<TurnItem>::Turn {};
using Turns = MemberTurns<TurnItem>;

TEST(MemberTurns, MembersTakeTurnsInTheOrderInWhichTheyWoke) {
  Turns turns;
  TurnItem a, b;
  EXPECT_EQ(turns.waiting(), 0U);
  EXPECT_TRUE(a.is_resting());
  turns.wake(b);
  turns.next();  // alone
  EXPECT_EQ(&turns.front(), &b);
  turns.wake(a);
  turns.wake(b);  // keeps its turn
  EXPECT_EQ(&turns.front(), &b);
  turns.next();
  EXPECT_EQ(&turns.front(), &a);
  turns.next();
  EXPECT_EQ(&turns.front(), &b);
  turns.rest(b);
  turns.rest(b);
  EXPECT_TRUE(b.is_resting());
  EXPECT_EQ(turns.waiting(), 1U);
  EXPECT_EQ(&turns.front(), &a);
  turns.rest(a);
  EXPECT_EQ(turns.waiting(), 0U);
}

TEST(MemberTurns, MatchesAModelList) {
  constexpr int steps = 5000;
  constexpr std::size_t items = 7;
  test::Random random;
  std::deque<TurnItem> members(items);
  Turns turns;
  std::list<TurnItem*> expected;
  for (int step = 0; step < steps; ++step) {
    TurnItem& member = members[random.below(items)];
    const auto at = std::find(expected.begin(), expected.end(), &member);
    switch (random.below(3)) {
      case 0:
        turns.wake(member);
        if (at == expected.end()) expected.push_back(&member);
        break;
      case 1:
        turns.rest(member);
        if (at != expected.end()) expected.erase(at);
        break;
      default:
        if (expected.empty()) break;
        turns.next();
        expected.splice(expected.end(), expected, expected.begin());
    }
    ASSERT_EQ(turns.waiting(), expected.size());
    if (!expected.empty()) {
      ASSERT_EQ(&turns.front(), expected.front());
    }
    for (TurnItem& each : members)
      ASSERT_EQ(each.is_resting(), std::find(expected.begin(), expected.end(), &each) == expected.end());
  }
}

}  // namespace
}  // namespace lightq::broker
