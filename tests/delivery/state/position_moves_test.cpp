/// Tests of delivery/state/position_moves.
#include "delivery/state/position_moves.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace lightq::broker {
namespace {

using Skip = PositionMoves::Skip;

Offset at(std::uint64_t offset) {
  return {offset};
}

TEST(PositionMoves, TellsWhichMessagesAGroupNeverWanted) {
  PositionMoves moves;
  EXPECT_EQ(moves.skip_of(at(0)), Skip::none);
  moves.begin(at(5));
  EXPECT_EQ(moves.skip_of(at(4)), Skip::before_group);
  EXPECT_EQ(moves.skip_of(at(5)), Skip::none);
  EXPECT_EQ(moves.last_over(at(4)), nullptr);
}

TEST(PositionMoves, TheLastMoveOverAMessageCounts) {
  PositionMoves moves;
  moves.add({at(3), at(5), at(8), false});
  for (std::uint64_t offset = 0; offset < 10; ++offset)
    EXPECT_EQ(moves.skip_of(at(offset)), offset >= 3 && offset < 8 ? Skip::move : Skip::none) << offset;
  moves.add({at(8), at(9), at(5), false});  // back: the group gets 5 to 8 again
  EXPECT_EQ(moves.skip_of(at(4)), Skip::move);
  EXPECT_EQ(moves.skip_of(at(5)), Skip::none);
  ASSERT_NE(moves.last_over(at(7)), nullptr);
  EXPECT_EQ(moves.last_over(at(7))->to, at(5));
  EXPECT_FALSE(moves.last_over(at(7))->is_purge);
  moves.add({at(6), at(6), at(9), true});
  EXPECT_EQ(moves.skip_of(at(5)), Skip::none) << "it was done after the move back";
  EXPECT_EQ(moves.skip_of(at(7)), Skip::move);
  EXPECT_TRUE(moves.last_over(at(7))->is_purge);
}

TEST(PositionMoves, AGroupThatBeganLaterMayGoBack) {
  PositionMoves moves;
  moves.begin(at(5));
  moves.add({at(5), at(5), at(2), false});
  // It has had 2 to 4 since. The move covers no message in front of the former position that it had had.
  EXPECT_EQ(moves.skip_of(at(1)), Skip::before_group);
  EXPECT_EQ(moves.skip_of(at(3)), Skip::none);
}

TEST(PositionMoves, ForgetsOldMoves) {
  PositionMoves moves;
  moves.add({at(0), at(0), at(1), false});
  for (std::size_t move = 0; move + 1 < PositionMoves::moves_max; ++move)
    moves.add({at(10), at(10), at(11), false});
  EXPECT_EQ(moves.skip_of(at(0)), Skip::move);
  moves.add({at(10), at(10), at(11), false});
  EXPECT_EQ(moves.skip_of(at(0)), Skip::none);
}

}  // namespace
}  // namespace lightq::broker
