/// Tests of control/client_bounds: two listeners, each on its own thread, share the bounds of sources and
/// users.
#include "control/client_bounds.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace lightq::broker {
namespace {

using namespace std::chrono_literals;
using CountedRequest = RequestsUnderWay::Request;

TEST(ClientBounds, AReplyCostsATokenForEachKiB) {
  EXPECT_EQ(ClientBounds::cost_of(0), 0);
  EXPECT_EQ(ClientBounds::cost_of(1), 1);
  EXPECT_EQ(ClientBounds::cost_of(limits::KiB), 1);
  EXPECT_EQ(ClientBounds::cost_of(limits::KiB + 1), 2);
  EXPECT_EQ(ClientBounds::cost_of(80 * limits::KiB), 80);
}

TEST(ClientBounds, OneSourceMayLeaveAQuarterOfTheRepliesUnread) {
  const ClientBounds bounds({.answers_unread_bytes_total = 4000}, 10);
  EXPECT_EQ(bounds.unread.bounds().per_key, 1000U);
  EXPECT_EQ(bounds.unread.bounds().total, 4000U);
}

/// A listener on its own thread, which serves requests of one source and one user.
class ClientBoundsOnTwoThreads : public testing::Test {
 protected:
  static void on_two_threads(const std::function<void(std::size_t)>& work) {
    std::vector<std::jthread> threads;
    for (const std::size_t number : {0U, 1U}) threads.emplace_back([&work, number] { work(number); });
  }
  ClientBounds bounds{{.requests_waiting_max = 64, .answers_unread_bytes_total = 4000}, 1000};
  const Tokens::Time now{1h};
};

TEST_F(ClientBoundsOnTwoThreads, ASourceHasOneRateOnBothListeners) {
  std::array<int, 2> requests{};
  std::array<int, 2> replies{};
  on_two_threads([&](std::size_t number) {
    while (bounds.requests.take("a", now)) ++requests[number];
    while (const auto taken = bounds.replies.take_estimate("user 7", now)) {
      bounds.replies.settle("user 7", *taken, 1);
      ++replies[number];
    }
  });
  EXPECT_EQ(requests[0] + requests[1], 1000);
  EXPECT_EQ(replies[0] + replies[1], 1000);
  EXPECT_TRUE(bounds.requests.take("b", now));
}

TEST_F(ClientBoundsOnTwoThreads, AUserHasOneNumberOfRequestsOnBothListeners) {
  std::array<std::vector<CountedRequest>, 2> kept;
  on_two_threads([&](std::size_t number) {
    const std::string source(1, static_cast<char>('a' + number));
    while (true) {
      CountedRequest request{source};
      bounds.under_way.enter(request);
      if (!bounds.under_way.belongs_to(request, 7)) return bounds.under_way.leave(request);
      kept[number].push_back(request);
    }
  });
  EXPECT_EQ(bounds.under_way.of_user(7), 16U) << "a quarter of 64";
  EXPECT_EQ(kept[0].size() + kept[1].size(), 16U);
  EXPECT_EQ(bounds.under_way.total(), 16U);
  on_two_threads([&](std::size_t number) {
    for (CountedRequest& each : kept[number]) bounds.under_way.leave(each);
  });
  EXPECT_EQ(bounds.under_way.of_user(7), 0U);
  EXPECT_EQ(bounds.under_way.total(), 0U);
}

TEST_F(ClientBoundsOnTwoThreads, EachRequestCountsOnceWhateverHappensAtTheSameTime) {
  std::atomic<std::size_t> most = 0;
  on_two_threads([&](std::size_t number) {
    std::mt19937 random(static_cast<unsigned>(number));
    std::vector<std::optional<CountedRequest>> requests(40);
    for (int step = 0; step < 20'000; ++step) {
      auto& each = requests[random() % requests.size()];
      const auto user = static_cast<std::uint64_t>(random() % 3);
      switch (random() % 4) {
        case 0:
          if (!each) each.emplace(CountedRequest{std::string(1, static_cast<char>('a' + random() % 2))});
          if (!bounds.under_way.objection_to(each->source)) bounds.under_way.enter(*each);
          break;
        case 1:
          if (each && bounds.under_way.belongs_to(*each, user)) {
            std::size_t before = most;
            const std::size_t of_user = bounds.under_way.of_user(1);
            while (of_user > before && !most.compare_exchange_weak(before, of_user)) {
            }
          }
          break;
        default:
          if (each) bounds.under_way.leave(*each);
          if (random() % 2 == 0) each.reset();
      }
    }
    for (auto& each : requests)
      if (each) bounds.under_way.leave(*each);
  });
  EXPECT_GT(most, 0U);
  for (const std::string source : {"a", "b"}) EXPECT_EQ(bounds.under_way.of(source), 0U);
  for (const std::uint64_t user : {1U, 2U}) EXPECT_EQ(bounds.under_way.of_user(user), 0U);
  EXPECT_EQ(bounds.under_way.total(), 0U);
}

TEST_F(ClientBoundsOnTwoThreads, UnreadRepliesOfBothListenersAddUp) {
  std::array<std::size_t, 2> unread{};
  on_two_threads([&](std::size_t number) {
    std::mt19937 random(static_cast<unsigned>(number));
    for (int step = 0; step < 20'000; ++step) {
      const std::size_t next = random() % 1000;
      bounds.unread.change("a", unread[number], next);
      unread[number] = next;
    }
  });
  EXPECT_EQ(bounds.unread.of("a"), unread[0] + unread[1]);
  EXPECT_EQ(bounds.unread.total(), unread[0] + unread[1]);
}

}  // namespace
}  // namespace lightq::broker
