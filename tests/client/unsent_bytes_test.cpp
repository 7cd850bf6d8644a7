/// UnsentBytes: counts, wakes, and outlives whoever goes first.
#include <lightq/unsent_bytes.hpp>

#include <optional>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace lightq {
namespace {

using namespace std::chrono_literals;

auto in(std::chrono::milliseconds span) {
  return std::chrono::steady_clock::now() + span;
}

TEST(UnsentBytes, CountsAMessageUntilItIsLetGo) {
  const auto unsent = std::make_shared<UnsentBytes>();
  const std::string payload(5000, 'x');
  {
    zmq::message_t message = counted_message(as_byte_view(payload), unsent);
    EXPECT_EQ(message.to_string(), payload);
    EXPECT_EQ(unsent->count(), 5000U);
    const zmq::message_t moved = std::move(message);
    EXPECT_EQ(unsent->count(), 5000U);
  }
  EXPECT_EQ(unsent->count(), 0U);
}

TEST(UnsentBytes, IsKeptByTheMessagesThatItCounts) {
  auto unsent = std::make_shared<UnsentBytes>();
  const std::weak_ptr<UnsentBytes> seen = unsent;
  std::optional<zmq::message_t> message = counted_message(as_byte_view("some bytes"), unsent);
  unsent.reset();
  EXPECT_FALSE(seen.expired());
  message.reset();
  EXPECT_TRUE(seen.expired());
}

TEST(UnsentBytes, WakesWhoWaitsForRoom) {
  UnsentBytes unsent;
  for (int round = 0; round < 500; ++round) {
    unsent.add(10);
    std::jthread other([&] { unsent.remove(10); });
    ASSERT_TRUE(unsent.wait_below(10, in(10s))) << round;
  }
}

TEST(UnsentBytes, StopsWaitingAtTheDeadline) {
  UnsentBytes unsent;
  unsent.add(10);
  EXPECT_FALSE(unsent.wait_below(10, in(20ms)));
  EXPECT_TRUE(unsent.wait_below(11, in(0ms)));
}

}  // namespace
}  // namespace lightq
