/// Tests of access/client_keys: the keys that clients have registered, and the permissions of each.
#include "access/client_keys.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace lightq::broker {
namespace {

using namespace std::chrono_literals;

constexpr Timestamp time_of_keys{1'800'000'000'000'000};
constexpr Grant to_pull{TopicId{7}, EndpointRole::pull};

CurvePublicKey key_filled_with(std::uint8_t byte) {
  CurvePublicKey key{};
  key.fill(std::byte{byte});
  return key;
}

class ClientKeysTest : public testing::Test {
 protected:
  void put(std::uint8_t byte, const Grant& grant, std::chrono::milliseconds ends_in) {
    const auto ends_ms = static_cast<std::uint64_t>(time_of_keys.us / 1000 + ends_in.count());
    keys_.put({key_filled_with(byte), grant, ends_ms, {7, 1}});
  }
  [[nodiscard]] std::string fault_of(std::uint8_t byte) const {
    return std::string(keys_.check(key_filled_with(byte), to_pull, time_of_keys).fault);
  }
  ClientKeys keys_{60s};
};

TEST_F(ClientKeysTest, AKeyIsValidForItsRegistrationUntilItExpires) {
  put(1, to_pull, 1ms);
  EXPECT_EQ(fault_of(1), "");
  put(1, to_pull, 0ms);
  EXPECT_EQ(fault_of(1), "an expired key");
  EXPECT_EQ(fault_of(2), "a key that is not registered");
  put(3, {TopicId{8}, EndpointRole::pull}, 1ms);
  EXPECT_EQ(fault_of(3), "a key of another topic");
  put(4, {to_pull.topic, EndpointRole::sub}, 1ms);
  EXPECT_EQ(fault_of(4), "a key of another role or mode");
}

TEST_F(ClientKeysTest, AKeyThatExpiresTooLateIsRefused) {
  put(1, to_pull, 60s + ticket_clock_tolerance);
  EXPECT_EQ(fault_of(1), "");
  put(1, to_pull, 60s + ticket_clock_tolerance + 1ms);
  EXPECT_EQ(fault_of(1), "a key that expires later than ticket_ms allows");
}

}  // namespace
}  // namespace lightq::broker
