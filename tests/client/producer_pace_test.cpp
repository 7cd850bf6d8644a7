/// Tests of ProducerPace: after how many messages a producer checks its connection.
#include <lightq/detail/producer_pace.hpp>

#include <gtest/gtest.h>

namespace lightq {
namespace {

using namespace std::chrono_literals;

int messages_before_a_look(ProducerPace& pace) {
  int messages = 1;
  while (!pace.message_taken()) ++messages;
  return messages;
}

TEST(ProducerPace, ChecksImmediatelyAndThenAtGrowingIntervalsUpToAMaximum) {
  ProducerPace pace;
  EXPECT_EQ(messages_before_a_look(pace), 1);
  for (const auto& [in_batch, messages] :
       {std::pair(0U, 1), {1U, 1}, {2U, 2}, {40U, 40}, {64U, 64}, {1000U, 64}}) {
    pace.look_again_behind(in_batch);
    EXPECT_EQ(messages_before_a_look(pace), messages);
  }
  pace.look();
  EXPECT_EQ(messages_before_a_look(pace), 64);
}

TEST(ProducerPace, ReadsNotAgainForSomeMicroseconds) {
  ProducerPace pace;
  constexpr SessionTime start{1h};
  EXPECT_TRUE(pace.may_read(start));
  pace.reads(start);
  EXPECT_FALSE(pace.may_read(start + 24us));
  EXPECT_TRUE(pace.may_read(start + 25us));
}

}  // namespace
}  // namespace lightq
