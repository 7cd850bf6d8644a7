/// Tests of acknowledgements that arrive after their timeout.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "delivery/consumer_group_harness.hpp"

namespace lightq::test {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class GroupLateTest : public ::testing::Test, protected GroupWorld {};

TEST_F(GroupLateTest, ALateAcknowledgementCountsUntilTheMessageIsRedelivered) {
  Member slow, other;
  auto open = asked();
  open.ack_timeout_ms = 1000;
  slow.consumer.wants_late = true;
  join(slow, open);
  publish_numbers(0, 5);
  dispatch();
  slow.consumer.is_writable = false;
  pass(milliseconds(1020));
  dispatch();
  EXPECT_EQ(stats().unacknowledged, 0U);
  acknowledge(slow, {{{0}, {2}}});
  EXPECT_EQ(stats().committed_offset, 2U);
  EXPECT_THAT(slow.consumer.was_late, IsEmpty());
  open.credit.messages = 2;
  join(other, open);
  dispatch();
  EXPECT_THAT(other.consumer.take(), ElementsAre("2#2", "3#2"));
  acknowledge(slow, {{{0}, {5}}});
  EXPECT_THAT(slow.consumer.was_late, ElementsAre(OffsetRange{{2}, {4}}));
  acknowledge(slow, {{{0}, {5}}});
  EXPECT_THAT(slow.consumer.was_late, ElementsAre(OffsetRange{{2}, {4}})) << "each is told once";
  acknowledge(other, {{{2}, {4}}});
  EXPECT_EQ(stats().committed_offset, 5U);
}

TEST_F(GroupLateTest, AMessageRedeliveredToTheSameMemberIsNotLate) {
  Member slow;
  auto open = asked();
  open.ack_timeout_ms = 1000;
  slow.consumer.wants_late = true;
  join(slow, open);
  publish_numbers(0, 2);
  dispatch();
  pass(milliseconds(1020));
  dispatch();
  EXPECT_THAT(slow.consumer.take(), ElementsAre("0", "1", "0#2", "1#2"));
  acknowledge_before(slow, 2);
  EXPECT_EQ(stats().committed_offset, 2U);
  EXPECT_THAT(slow.consumer.was_late, IsEmpty());
}

TEST_F(GroupLateTest, AMemberWithoutTheOptionIsNotToldOfLateAcknowledgements) {
  Member slow;
  auto open = asked();
  open.ack_timeout_ms = 1000;
  join(slow, open);
  publish_numbers(0, 2);
  dispatch();
  slow.consumer.is_writable = false;
  pass(milliseconds(1020));
  dispatch();
  acknowledge(slow, {{{0}, {2}}});
  EXPECT_EQ(stats().committed_offset, 0U);
}

}  // namespace
}  // namespace lightq::test
