/// Tests of slowing down password guesses: access/login_throttle, admission/recent_map, net/request_source.
#include "access/login_throttle.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/request_source.hpp"
#include "net/socket.hpp"

namespace lightq::broker {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

class LoginThrottleTest : public testing::Test {
 protected:
  /// Reports `times` wrong passwords. Returns the delay of each.
  std::vector<std::chrono::milliseconds> fail(const std::string& source, const std::string& user, int times) {
    std::vector<std::chrono::milliseconds> delays;
    for (int i = 0; i < times; ++i) delays.push_back(throttle.wrong(source, user, now));
    return delays;
  }
  LoginThrottle throttle;
  LoginThrottle::Time now{1h};
};

TEST_F(LoginThrottleTest, AFewFailuresAreFreeAndThenEachDoublesTheDelay) {
  EXPECT_THAT(fail("a", "user", 14),
              ElementsAre(0ms, 0ms, 0ms, 0ms, 0ms, 16ms, 32ms, 64ms, 128ms, 256ms, 512ms, 1s, 1s, 1s));
}

TEST_F(LoginThrottleTest, ASourcesFailuresCountForAllNames) {
  for (int i = 0; i < 5; ++i) EXPECT_EQ(throttle.wrong("a", "user " + std::to_string(i), now), 0ms);
  EXPECT_EQ(throttle.wrong("a", "another", now), 16ms);
  EXPECT_EQ(throttle.wrong("b", "yet another", now), 0ms) << "of another source nothing is known";
}

TEST_F(LoginThrottleTest, AUsersFailuresSlowDownThoseThatWereNeverRightForIt) {
  throttle.right("home", "user");
  for (int i = 0; i < 20; ++i) (void)throttle.wrong("attacker " + std::to_string(i), "user", now);
  EXPECT_EQ(throttle.wrong("attacker 20", "user", now), 1s) << "the first failure of this source";
  EXPECT_EQ(throttle.wrong("home", "user", now), 0ms) << "somebody mistypes at home";
  EXPECT_EQ(throttle.wrong("attacker 21", "other", now), 0ms);
}

TEST_F(LoginThrottleTest, FailuresPassWithTime) {
  fail("a", "user", 10);
  now += LoginThrottle::forgotten_after - 1ms;
  EXPECT_EQ(throttle.wrong("a", "user", now), 512ms);
  now += LoginThrottle::forgotten_after;
  EXPECT_EQ(throttle.wrong("a", "user", now), 0ms);
}

TEST_F(LoginThrottleTest, ASlowedSourceComputesAFewInTheTimeOfItsDelay) {
  EXPECT_EQ(throttle.next_computation("a", now), now);
  fail("a", "user", 5);
  throttle.computing("a", now);
  EXPECT_EQ(throttle.next_computation("a", now), now) << "a few failures are free";
  EXPECT_FALSE(throttle.is_slowed("a", now));
  fail("a", "user", 1);
  EXPECT_EQ(throttle.next_computation("a", now), now + 500us);
  fail("a", "user", 7);
  EXPECT_EQ(throttle.next_computation("a", now), now + 31'250us);
  EXPECT_TRUE(throttle.is_slowed("a", now));
  EXPECT_EQ(throttle.next_computation("b", now), now);
  const auto later = now + LoginThrottle::forgotten_after;
  EXPECT_FALSE(throttle.is_slowed("a", later));
  EXPECT_EQ(throttle.next_computation("a", later), later);
}

TEST_F(LoginThrottleTest, RemembersWhichNamesASourceHasFailedWith) {
  fail("a", "user", 1);
  EXPECT_TRUE(throttle.has_failed("a", "user", now));
  EXPECT_FALSE(throttle.has_failed("a", "another", now));
  EXPECT_FALSE(throttle.has_failed("b", "user", now));
  EXPECT_FALSE(throttle.has_failed("au", "ser", now));
  EXPECT_FALSE(throttle.has_failed("a", "user", now + LoginThrottle::forgotten_after));
}

TEST(RecentMap, ForgetsTheLeastRecentlyUsedEntry) {
  RecentMap<std::string, int> map(3);
  map["a"] = 1;
  map["b"] = 2;
  map["c"] = 3;
  EXPECT_EQ(map["a"], 1) << "used again";
  map["d"] = 4;
  EXPECT_EQ(map.size(), 3U);
  EXPECT_EQ(map["a"], 1);
  EXPECT_EQ(map["d"], 4);
  EXPECT_EQ(map["b"], 0) << "it was the oldest";
}

std::string key_of_tcp(const std::string& address) {
  const auto listening = listen_tcp(address, 0).value_or_throw();
  const bool six = address.find(':') != std::string::npos;
  const UniqueFd client(socket(six ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_storage to{};
  socklen_t length = sizeof to;
  getsockname(listening.descriptor.get(), reinterpret_cast<sockaddr*>(&to), &length);
  EXPECT_EQ(connect(client.get(), reinterpret_cast<const sockaddr*>(&to), length), 0);
  return source_of(client.get()).key;
}

TEST(RequestSource, IsAnAddressANetworkOrAUserOfTheMachine) {
  EXPECT_EQ(key_of_tcp("127.0.0.1"), std::string("4\x7f\0\0\1", 5));
  if (const auto six = listen_tcp("::1", 0); six) {
    EXPECT_EQ(key_of_tcp("::1"), std::string("6\0\0\0\0\0\0\0\0", 9)) << "the first 64 bits";
  }
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  const UniqueFd one(pair[0]);
  const UniqueFd other(pair[1]);
  const RequestSource source = source_of(one.get());
  EXPECT_EQ(source.uid, getuid());
  EXPECT_EQ(source.key.size(), 5U);
  EXPECT_EQ(source.key.front(), 'u');
  EXPECT_EQ(source_of(-1).key, "");
}

}  // namespace
}  // namespace lightq::broker
