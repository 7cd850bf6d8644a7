/// Tests of the permissions that the tickets of a session give.
#include "session/session_permits.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace lightq::broker {
namespace {

SessionPermit permit(std::uint64_t topic, EndpointRole role, std::uint64_t user = 0) {
  return {{{topic}, role}, {.user = user, .generation = 1}};
}

TEST(SessionPermits, AreFoundByTheTopicsName) {
  SessionPermits permits;
  for (std::uint64_t topic = 0; topic < 1'000; ++topic)
    permits.add("t" + std::to_string(topic), permit(topic, EndpointRole::pull));
  permits.add("t7", permit(7, EndpointRole::produce));
  EXPECT_EQ(permits.size(), 1'001U);
  ASSERT_EQ(permits.of("t7").size(), 2U);
  EXPECT_EQ(permits.of("t7")[0], permit(7, EndpointRole::pull));
  EXPECT_EQ(permits.of("t7")[1], permit(7, EndpointRole::produce));
  EXPECT_TRUE(permits.of("no topic").empty());
  EXPECT_TRUE(permits.contains("t7", permit(7, EndpointRole::produce)));
  EXPECT_FALSE(permits.contains("t7", permit(7, EndpointRole::sub)));
  EXPECT_FALSE(permits.contains("t8", permit(7, EndpointRole::produce)));
}

TEST(SessionPermits, PermitsOfTheFormerTopicStayAfterItIsCreatedAgain) {
  SessionPermits permits;
  permits.add("t", permit(1, EndpointRole::pull));
  permits.add("t", permit(2, EndpointRole::pull));
  EXPECT_EQ(permits.of("t").size(), 2U);
}

TEST(SessionPermits, InvalidPermitsAreCountedOnce) {
  SessionPermits permits;
  for (std::uint64_t topic = 0; topic < 10; ++topic)
    permits.add("t" + std::to_string(topic), permit(topic, EndpointRole::pull, topic % 2));
  permits.add("t1", permit(1, EndpointRole::sub, 0));
  const auto of_user_1 = [](const SessionPermit& each) { return each.holder.user == 1; };
  EXPECT_EQ(permits.erase_if(of_user_1), 5U);
  EXPECT_EQ(permits.size(), 6U);
  EXPECT_EQ(permits.of("t1").size(), 1U);
  EXPECT_EQ(permits.erase_if(of_user_1), 0U);
  EXPECT_EQ(permits.erase_if([](const SessionPermit&) { return true; }), 6U);
  EXPECT_TRUE(permits.empty());
}

}  // namespace
}  // namespace lightq::broker
