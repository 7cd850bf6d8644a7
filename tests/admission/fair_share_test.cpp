/// Tests of admission/fair_share: how much of a shared limit one user may take.
#include "admission/fair_share.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace lightq::broker {
namespace {

using Verdict = FairShare::Verdict;

TEST(FairShare, AUserWithHalfLeavesTheLastEighth) {
  constexpr FairShare share(16);
  EXPECT_EQ(share.ask(13, 7, 13), Verdict::room);
  EXPECT_EQ(share.ask(14, 7, 14), Verdict::others);
  EXPECT_EQ(share.ask(14, 7, 8), Verdict::others);
  EXPECT_EQ(share.ask(14, 7, 7), Verdict::room) << "it has less than half";
  EXPECT_EQ(share.ask(15, 8, 0), Verdict::room);
  EXPECT_EQ(share.ask(16, 8, 0), Verdict::full);
}

TEST(FairShare, TheAdministratorIsBoundByTheWholeLimit) {
  constexpr FairShare share(16);
  EXPECT_EQ(share.ask(15, 0, 15), Verdict::room);
  EXPECT_EQ(share.ask(16, 0, 16), Verdict::full);
}

TEST(FairShare, AskingForManyEqualsAskingOneByOne) {
  for (std::size_t most = 1; most < 20; ++most) {
    const FairShare share(most);
    for (std::size_t taken = 0; taken <= most; ++taken) {
      for (std::size_t own = 0; own <= taken; ++own) {
        auto step = Verdict::room;
        for (std::size_t more = 1; more < 24; ++more) {
          if (step == Verdict::room) step = share.ask(taken + more - 1, 7, own + more - 1);
          if (taken + more > most) step = Verdict::full;
          EXPECT_EQ(share.ask(taken, 7, own, more), step)
              << most << ' ' << taken << ' ' << own << ' ' << more;
        }
      }
    }
  }
}

TEST(FairShare, NoNumberIsTooLarge) {
  constexpr FairShare share(300);
  EXPECT_EQ(share.ask(200, 7, 0, ~std::size_t{0}), Verdict::full);
  EXPECT_EQ(share.ask(~std::size_t{0}, 7, 0, 1), Verdict::full);
}

}  // namespace
}  // namespace lightq::broker
