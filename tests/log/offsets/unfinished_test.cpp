/// Tests the unfinished messages of a cursor as a value.
#include "log/saved_state/unfinished.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "log/offsets/offset_model.hpp"
#include "log/saved_state/cursor_file.hpp"

namespace lightq::log {
namespace {

using test::set_of;
using testing::ElementsAre;
using testing::IsEmpty;

Unfinished some_unfinished() {
  Unfinished unfinished{{20}, set_of({{{4}, {5}}, {{7}, {10}}, {{15}, {20}}})};
  unfinished.delayed = {{{100}, set_of({{{8}, {9}}})}, {{200}, set_of({{{4}, {5}}, {{16}, {18}}})}};
  unfinished.delivery_bits = {unfinished.messages, set_of({{{15}, {16}}})};
  return unfinished;
}

TEST(UnfinishedTest, ListsProcessedRanges) {
  const Unfinished unfinished = some_unfinished();
  EXPECT_THAT(unfinished.processed({4}, 10), ElementsAre(OffsetRange{{5}, {7}}, OffsetRange{{10}, {15}}));
  EXPECT_THAT(unfinished.processed({2}, 10),
              ElementsAre(OffsetRange{{2}, {4}}, OffsetRange{{5}, {7}}, OffsetRange{{10}, {15}}));
  EXPECT_THAT(unfinished.processed({4}, 1), ElementsAre(OffsetRange{{5}, {7}}));
  EXPECT_THAT((Unfinished{{9}, {}}.processed({4}, 10)), ElementsAre(OffsetRange{{4}, {9}}));
  EXPECT_THAT((Unfinished{{4}, {}}.processed({4}, 10)), IsEmpty());
}

TEST(UnfinishedTest, IsMadeFromProcessedRanges) {
  const std::vector<OffsetRange> processed = {{{5}, {7}}, {{10}, {15}}};
  const Unfinished unfinished = unfinished_between({4}, processed);
  EXPECT_EQ(unfinished, (Unfinished{{15}, set_of({{{4}, {5}}, {{7}, {10}}})}));
  EXPECT_EQ(unfinished.processed({4}, 10), processed);
  EXPECT_TRUE(unfinished_between({4}, {}).is_plain({4}));
}

TEST(UnfinishedTest, IsCutInAllItsParts) {
  Unfinished unfinished = some_unfinished();
  EXPECT_FALSE(unfinished.cut_at({20}));
  EXPECT_TRUE(unfinished.cut_at({17}));
  Unfinished expected = some_unfinished();
  expected.next = {17};
  expected.messages.remove({{17}, {20}});
  expected.delayed[1].second.remove({{17}, {18}});
  expected.delivery_bits[0] = expected.messages;
  EXPECT_EQ(unfinished, expected);
  EXPECT_TRUE(unfinished.cut_at({8}));
  EXPECT_EQ(unfinished.next, Offset{8});
  EXPECT_EQ(unfinished.messages, set_of({{{4}, {5}}, {{7}, {8}}}));
  ASSERT_EQ(unfinished.delayed.size(), 1U);
  EXPECT_EQ(unfinished.delayed[0].first, Timestamp{200});
  EXPECT_EQ(unfinished.delivery_bits.size(), 1U);
  EXPECT_TRUE(unfinished.cut_at({0}));
  EXPECT_EQ(unfinished, Unfinished());
}

TEST(UnfinishedTest, KnowsCopiesThatShareAll) {
  const Unfinished unfinished = some_unfinished();
  Unfinished copy = unfinished;
  EXPECT_TRUE(copy.shares_all_with(unfinished));
  EXPECT_EQ(copy.bytes(), unfinished.bytes());
  copy.delayed[0].first.us += 1;
  EXPECT_FALSE(copy.shares_all_with(unfinished));
  copy = unfinished;
  copy.delivery_bits[1].remove({{15}, {16}});
  EXPECT_FALSE(copy.shares_all_with(unfinished));
  EXPECT_NE(copy, unfinished);
  EXPECT_FALSE(some_unfinished().shares_all_with(unfinished));
  EXPECT_EQ(some_unfinished(), unfinished);
}

TEST(UnfinishedTest, APlainCursorIsOneWithAnOffsetOnly) {
  const NamedCursor plain{"a", {7}};
  EXPECT_TRUE(plain.is_plain());
  EXPECT_EQ(plain.next(), Offset{7});
  EXPECT_EQ(plain, (NamedCursor{"a", {7}, {}}));
  NamedCursor moved = plain;
  moved.offset = {9};
  EXPECT_TRUE(moved.is_plain());
  EXPECT_EQ(moved, (NamedCursor{"a", {9}}));
  moved.offset = {5};
  EXPECT_FALSE(moved.is_plain()) << "5 and 6 are processed";
  EXPECT_FALSE((NamedCursor{"a", {4}, some_unfinished()}.is_plain()));
}

}  // namespace
}  // namespace lightq::log
