/// Tests of the limits on endpoints, and of evicting unused endpoints.
#include "admission/endpoint_shares.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace lightq::broker {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t ann = 7;
constexpr std::uint64_t bob = 8;
constexpr std::uint64_t cy = 9;
constexpr std::uint64_t administrator = 0;

class EndpointSharesTest : public testing::Test {
 protected:
  /// Adds one endpoint. Returns "ok", "ok, without 3 4" (the evicted ids), or the reason of a refusal.
  std::string take(EndpointShares& shares, std::uint64_t user, bool is_tcp = true) {
    const auto evicted = shares.take({.id = ++last_, .is_tcp = is_tcp, .user = user}, now_);
    if (!evicted) return evicted.error().text();
    std::string answer = "ok";
    for (const auto& each : *evicted)
      answer += (answer == "ok" ? ", without " : " ") + std::to_string(each.id);
    return answer;
  }
  void take(EndpointShares& shares, std::uint64_t user, int times) {
    for (int i = 0; i < times; ++i) ASSERT_EQ(take(shares, user), "ok");
  }

  LimitCounts counts_;
  EndpointShares shares_{{.endpoints = 16, .ports = 16, .unused_time_min = 2s}, &counts_};
  std::uint64_t last_ = 0;
  EndpointShares::Clock::time_point now_{1h};
};

TEST_F(EndpointSharesTest, AUserWithHalfCannotUseTheReserve) {
  for (const std::uint64_t user : {ann, FairShare::anonymous}) {
    EndpointShares shares({.endpoints = 16}, &counts_);
    take(shares, user, 14);
    EXPECT_NE(
        take(shares, user)
            .find("14 of the 16 endpoints (endpoints_max), and the last 2 are reserved for users with fewer"),
        std::string::npos);
    EXPECT_EQ(take(shares, bob), "ok");
    EXPECT_EQ(take(shares, administrator), "ok");
    EXPECT_NE(take(shares, bob).find("all 16 endpoints (endpoints_max) are in use"), std::string::npos);
  }
  EXPECT_EQ(counts_.of(Limit::endpoints_max), 4U);
  EXPECT_EQ(counts_.of(Limit::ports), 0U);
}

TEST_F(EndpointSharesTest, PortsAreSharedAmongEndpointsOverTcpAlone) {
  EndpointShares shares({.endpoints = 100, .ports = 8}, &counts_);
  take(shares, ann, 7);
  EXPECT_NE(take(shares, ann).find("7 of the 8 TCP ports for endpoints"), std::string::npos);
  EXPECT_EQ(take(shares, ann, false), "ok");
  EXPECT_EQ(take(shares, bob), "ok");
  EXPECT_NE(take(shares, bob).find("all 8 TCP ports"), std::string::npos);
  EXPECT_EQ(counts_.of(Limit::ports), 2U);
  EXPECT_EQ(shares.taken(), 9U);
}

TEST_F(EndpointSharesTest, AReleasedPlaceIsAvailable) {
  take(shares_, ann, 14);
  EXPECT_NE(take(shares_, ann), "ok");
  shares_.give_back(3);
  shares_.give_back(3);
  EXPECT_EQ(take(shares_, ann), "ok");
  EXPECT_NE(take(shares_, ann), "ok");
}

TEST_F(EndpointSharesTest, EndpointsFromBeforeTheStartCountAndAreNotEvicted) {
  for (std::uint64_t id = 101; id <= 120; ++id) shares_.add({.id = id, .user = ann});
  now_ += 1h;
  EXPECT_NE(take(shares_, bob), "ok");
  for (std::uint64_t id = 101; id <= 105; ++id) shares_.give_back(id);
  EXPECT_EQ(take(shares_, bob), "ok");
}

TEST_F(EndpointSharesTest, EvictsTheOldestUnusedEndpointOfTheUserWithMost) {
  take(shares_, cy, 2);   // ids 1, 2
  take(shares_, ann, 8);  // ids 3 to 10
  take(shares_, cy, 3);
  take(shares_, bob, 3);
  shares_.used(3);
  EXPECT_NE(take(shares_, bob), "ok") << "none is old enough";
  now_ += 2s;
  EXPECT_EQ(take(shares_, bob), "ok, without 4");
  EXPECT_EQ(take(shares_, administrator), "ok, without 5");
  EXPECT_EQ(shares_.taken(), 16U);
  shares_.give_back(4);  // closing the evicted endpoint frees no second place
  EXPECT_EQ(shares_.taken(), 16U);
}

TEST_F(EndpointSharesTest, TheUserWithMostEvictsOnlyItsOwn) {
  take(shares_, bob, 1);
  take(shares_, ann, 13);  // ids 2 to 14
  now_ += 2s;
  EXPECT_EQ(take(shares_, ann), "ok, without 2");
  for (std::uint64_t id = 3; id <= 15; ++id) shares_.used(id);
  now_ += 2s;
  EXPECT_NE(take(shares_, ann), "ok");
  take(shares_, bob, 2);
  now_ += 2s;
  EXPECT_NE(take(shares_, ann), "ok") << "there are none of its own, and bob has fewer";
  EXPECT_EQ(take(shares_, bob), "ok, without 1") << "his own";
}

TEST_F(EndpointSharesTest, ForAPortAnEndpointWithAPortIsEvicted) {
  EndpointShares shares({.endpoints = 100, .ports = 4, .unused_time_min = 2s}, &counts_);
  EXPECT_EQ(take(shares, ann, false), "ok");  // id 1
  take(shares, ann, 4);                       // ids 2 to 5
  now_ += 2s;
  EXPECT_EQ(take(shares, bob), "ok, without 2");
  EXPECT_EQ(take(shares, bob, false), "ok");
}

TEST_F(EndpointSharesTest, AJoinWithoutAPortEvictsNoEndpoint) {
  EndpointShares shares({.endpoints = 8, .ports = 4, .unused_time_min = 2s}, &counts_);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(take(shares, cy, false), "ok");
  take(shares, ann, 4);
  for (std::uint64_t id = 5; id <= 8; ++id) shares.used(id);
  now_ += 2s;
  EXPECT_NE(take(shares, bob).find("all 4 TCP ports"), std::string::npos);
  EXPECT_EQ(shares.taken(), 8U);
  EXPECT_EQ(take(shares, bob, false), "ok, without 1") << "it is as old as it was";
}

TEST_F(EndpointSharesTest, ARefusalIsLoggedOnceInAWhile) {
  EXPECT_TRUE(shares_.is_to_be_said(Limit::ports, now_));
  EXPECT_FALSE(shares_.is_to_be_said(Limit::ports, now_ + 9s));
  EXPECT_TRUE(shares_.is_to_be_said(Limit::endpoints_max, now_ + 9s));
  EXPECT_TRUE(shares_.is_to_be_said(Limit::ports, now_ + 10s));
}

}  // namespace
}  // namespace lightq::broker
