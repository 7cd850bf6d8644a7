/// Tests of admission/quota: the share of a key in a limit, alone and from two threads.
#include "admission/quota.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <latch>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "admission/connection_quota.hpp"
#include "admission/range_budget.hpp"

namespace lightq::broker {
namespace {

using Verdict = FairShare::Verdict;
using UserQuota = Quota<std::uint64_t>;

/// Takes units of the key until it is refused. Returns how many it got.
template <typename Key, typename Mutex>
std::size_t take_all(Quota<Key, Mutex>& quota, const std::type_identity_t<Key>& key) {
  std::size_t taken = 0;
  while (quota.take(key) == Verdict::room) ++taken;
  return taken;
}

TEST(Quota, AUserWithHalfLeavesTheLastEighthToOthers) {
  UserQuota quota({.total = 16});
  EXPECT_EQ(take_all(quota, 7), 14U);
  EXPECT_EQ(quota.ask(7), Verdict::others);
  EXPECT_EQ(take_all(quota, 8), 2U);
  EXPECT_EQ(quota.ask(8), Verdict::full);
  EXPECT_EQ(quota.total(), 16U);
  quota.give_back(7);
  EXPECT_EQ(quota.ask(7), Verdict::others) << "it has more than half";
  EXPECT_EQ(quota.take(9), Verdict::room);
}

TEST(Quota, OneKeyHasItsOwnBound) {
  Quota<std::string> quota({.total = 5, .per_key = 2});
  EXPECT_EQ(take_all(quota, "a"), 2U);
  EXPECT_EQ(quota.ask("a"), Verdict::own);
  EXPECT_EQ(quota.ask("b", 3), Verdict::own);
  EXPECT_EQ(take_all(quota, "b"), 2U);
  EXPECT_EQ(take_all(quota, "c"), 1U);
  EXPECT_EQ(quota.ask("c"), Verdict::full);
  EXPECT_EQ(quota.ask("a"), Verdict::own) << "this is the first reason";
  quota.give_back("a");
  EXPECT_EQ(quota.take("c"), Verdict::room);
}

TEST(Quota, UserZeroIsBoundByTheTotalAlone) {
  UserQuota quota({.total = 16, .per_key = 4});
  EXPECT_EQ(take_all(quota, 0), 16U);
  EXPECT_EQ(quota.ask(0), Verdict::full);
  EXPECT_EQ(quota.ask(7), Verdict::full);
  Quota<std::string> by_source({.total = 16});
  EXPECT_EQ(take_all(by_source, ""), 14U) << "an unknown source is a source";
}

TEST(Quota, WithoutBoundsItOnlyCounts) {
  UserQuota quota;
  constexpr std::size_t many = UserQuota::unlimited / 2;
  EXPECT_EQ(quota.take(7, many), Verdict::room);
  EXPECT_EQ(quota.of(7), many);
  EXPECT_EQ(quota.take(8, UserQuota::unlimited), Verdict::full) << "no sum exceeds the largest number";
  quota.give_back(7, many);
  EXPECT_EQ(quota.total(), 0U);
}

TEST(Quota, TakesAllOrNothing) {
  UserQuota quota({.total = 100});
  EXPECT_EQ(quota.take(7, 60), Verdict::room);
  EXPECT_EQ(quota.take(8, 41), Verdict::full);
  EXPECT_EQ(quota.of(8), 0U);
  EXPECT_EQ(quota.take(8, 40), Verdict::room);
  EXPECT_EQ(quota.take(9, ~std::size_t{0}), Verdict::full);
}

TEST(Quota, ReturnsNoMoreThanAKeyHas) {
  UserQuota quota({.total = 10});
  quota.add(7, 3);
  quota.give_back(7, 4);
  quota.give_back(8);
  EXPECT_EQ(quota.of(7), 0U);
  EXPECT_EQ(quota.total(), 0U);
}

TEST(Quota, CountsBeyondItsBounds) {
  UserQuota quota({.total = 4, .per_key = 2});
  quota.add(7, 9);
  EXPECT_EQ(quota.total(), 9U);
  EXPECT_EQ(quota.ask(7), Verdict::own);
  EXPECT_EQ(quota.ask(8), Verdict::full);
}

TEST(Quota, CountsChangesByKeyAndTogether) {
  Quota<std::string> unread({.total = 100, .per_key = 25});
  unread.change("a", 0, 100);
  unread.change("b", 0, 7);
  unread.change("a", 100, 30);
  EXPECT_EQ(unread.of("a"), 30U);
  EXPECT_EQ(unread.of("b"), 7U);
  EXPECT_EQ(unread.of("c"), 0U);
  EXPECT_EQ(unread.total(), 37U);
  unread.change("a", 30, 0);
  unread.change("c", 0, 0);
  EXPECT_EQ(unread.total(), 7U);
  EXPECT_EQ(unread.bounds().per_key, 25U);
}

TEST(QuotaHolding, CountsForItsKeyUntilItEnds) {
  UserQuota quota({.total = 16});
  {
    UserQuota::Holding one(&quota, 7);
    UserQuota::Holding two(&quota, 7);
    UserQuota::Holding other(&quota, 8);
    EXPECT_EQ(quota.total(), 0U);
    one.set(10);
    two.set(4);
    EXPECT_EQ(quota.of(7), 14U);
    EXPECT_FALSE(one.has_room());
    EXPECT_TRUE(other.has_room());
    quota.add(7, 1);
    two.set(1);
    one.set(9);
    EXPECT_EQ(quota.of(7), 11U);
    EXPECT_EQ(one.units(), 9U);
    EXPECT_TRUE(two.has_room());
  }
  EXPECT_EQ(quota.of(7), 1U) << "units that were taken without a holding stay";
  EXPECT_EQ(quota.total(), 1U);
}

TEST(QuotaHolding, OutlivesTheUnitsOfItsKey) {
  UserQuota quota({.total = 16});
  UserQuota::Holding holding(&quota, 7);
  quota.add(7, 3);
  quota.give_back(7, 3);
  holding.set(5);
  EXPECT_EQ(quota.of(7), 5U);
}

TEST(QuotaHolding, WithoutAQuotaNothingIsBounded) {
  UserQuota::Holding holding(nullptr, 7);
  holding.set(~std::size_t{0});
  EXPECT_TRUE(holding.has_room());
  EXPECT_EQ(holding.units(), 0U);
}

TEST(RangeCharge, AFewRangesAreAlwaysAllowed) {
  RangeBudget budget(16);
  RangeCharge first(&budget, 7);
  first.set(14);
  EXPECT_TRUE(first.has_room()) << "it has less than 16";
  first.set(16);
  EXPECT_FALSE(first.has_room());
  RangeCharge second(&budget, 8);
  second.set(15);
  EXPECT_TRUE(second.has_room()) << "though the budget is used up";
  EXPECT_EQ(budget.ranges.total(), 31U);
}

/// A model with the rules of Quota, computed by adding up the units of all keys.
struct QuotaModel {
  std::size_t total_max;
  std::size_t per_key_max;
  std::map<std::uint64_t, std::size_t> units;

  [[nodiscard]] std::size_t total() const {
    std::size_t sum = 0;
    for (const auto& [key, count] : units) sum += count;
    return sum;
  }
  /// Takes the units one by one, so that no rule depends on how many are asked for together.
  [[nodiscard]] Verdict ask(std::uint64_t key, std::size_t more) const {
    const auto found = units.find(key);
    const std::size_t own = found == units.end() ? 0 : found->second;
    if (key != 0 && own + more > per_key_max) return Verdict::own;
    if (total() + more > total_max) return Verdict::full;
    for (std::size_t i = 0; i < more; ++i) {
      const bool in_reserve = total() + i >= total_max - total_max / 8;
      if (key != 0 && in_reserve && 2 * (own + i + 1) > total_max) return Verdict::others;
    }
    return Verdict::room;
  }
};

TEST(Quota, DoesAsAModelThatAddsUp) {
  std::mt19937 random(11);  // NOLINT(cert-msc51-cpp): the same in every run
  std::map<Verdict, int> seen;
  for (int round = 0; round < 200; ++round) {
    const std::size_t total_max = random() % 40;
    const std::size_t per_key_max = random() % 3 == 0 ? random() % 20 : 1000;
    UserQuota quota({.total = total_max, .per_key = per_key_max});
    QuotaModel model{total_max, per_key_max, {}};
    std::map<std::uint64_t, std::optional<UserQuota::Holding>> holdings;
    std::map<std::uint64_t, std::size_t> held;
    for (int step = 0; step < 200; ++step) {
      const std::uint64_t key = random() % 4;
      const std::size_t more = 1 + random() % 3;
      std::size_t& units = model.units[key];
      switch (random() % 5) {
        case 0:
        case 1: {
          const Verdict verdict = quota.ask(key, more);
          ASSERT_EQ(verdict, model.ask(key, more)) << total_max << ' ' << key << ' ' << more;
          ASSERT_EQ(quota.take(key, more), verdict);
          ++seen[verdict];
          if (verdict == Verdict::room) units += more;
          break;
        }
        case 2: {
          const std::size_t fewer = std::min(more, units - held[key]);
          quota.give_back(key, fewer);
          units -= fewer;
          break;
        }
        case 3:
          if (random() % 4 == 0) {
            quota.add(key, more);
            units += more;
          }
          break;
        default: {
          auto& holding = holdings[key];
          if (holding && random() % 4 == 0) {
            holding.reset();
            units -= std::exchange(held[key], 0);
          } else {
            if (!holding) holding.emplace(&quota, key);
            units += more - held[key];
            held[key] = more;
            holding->set(more);
            ASSERT_EQ(holding->has_room(), model.ask(key, 1) == Verdict::room);
          }
        }
      }
      ASSERT_EQ(quota.of(key), units);
      ASSERT_EQ(quota.total(), model.total());
    }
  }
  EXPECT_EQ(seen.size(), 4U) << "every verdict occurs";
}

/// Runs `work(number)` on two threads, which begin together.
template <typename Work>
void on_two_threads(Work work) {
  std::latch begin(2);
  std::vector<std::jthread> threads;
  for (int number = 0; number < 2; ++number) {
    threads.emplace_back([&begin, &work, number] {
      begin.arrive_and_wait();
      work(number);
    });
  }
}

TEST(QuotaOnTwoThreads, AUserHasItsBoundOnceOnBothTogether) {
  for (int round = 0; round < 50; ++round) {
    Quota<std::uint64_t, std::mutex> quota({.total = 1600, .per_key = 1000});
    std::array<std::size_t, 2> taken{};
    on_two_threads([&](int number) { taken[static_cast<std::size_t>(number)] = take_all(quota, 7); });
    ASSERT_EQ(taken[0] + taken[1], 1000U);
    on_two_threads([&](int number) {
      taken[static_cast<std::size_t>(number)] = take_all(quota, static_cast<std::uint64_t>(8 + number));
    });
    ASSERT_EQ(taken[0] + taken[1], 600U);
    ASSERT_EQ(quota.ask(9), Verdict::full);
  }
}

TEST(QuotaOnTwoThreads, NeverExceedsItsBounds) {
  constexpr std::size_t bound = 5;
  Quota<std::uint64_t, std::mutex> quota({.per_key = bound});
  std::array<std::atomic<std::size_t>, 2> in_use{};
  std::atomic<std::size_t> most = 0;
  on_two_threads([&](int number) {
    std::mt19937 random(static_cast<unsigned>(number));
    std::array<std::size_t, 2> own{};
    for (int step = 0; step < 50'000; ++step) {
      const std::size_t user = random() % 2;
      if (random() % 2 == 0) {
        if (quota.take(user + 1) != Verdict::room) continue;
        ++own[user];
        const std::size_t now = ++in_use[user];
        std::size_t before = most;
        while (now > before && !most.compare_exchange_weak(before, now)) {
        }
      } else if (own[user] > 0) {
        --own[user];
        --in_use[user];
        quota.give_back(user + 1);
      }
    }
    for (std::size_t user = 0; user < 2; ++user) {
      in_use[user] -= own[user];
      quota.give_back(user + 1, own[user]);
    }
  });
  EXPECT_EQ(most, bound) << "the bound is reached";
  EXPECT_EQ(quota.total(), 0U);
}

TEST(ConnectionQuota, HasOneBoundForTheListenersOfTwoThreads) {
  LimitCounts counts;
  ConnectionQuota quota(100, &counts);
  std::array<int, 2> open{};
  on_two_threads([&](int number) {
    auto& own = open[static_cast<std::size_t>(number)];
    for (int i = 0; i < 100; ++i) {
      own += quota.take(7) ? 1 : 0;
      quota.take(0);
    }
  });
  EXPECT_EQ(open[0] + open[1], 100);
  EXPECT_EQ(counts.of(Limit::connections_per_user), 100U);
  ASSERT_TRUE(quota.objection(7));
  EXPECT_NE(quota.objection(7)->text().find("this user has 100 data connections"), std::string::npos);
  EXPECT_EQ(counts.of(Limit::connections_per_user), 102U);
  quota.give_back(0);
  quota.give_back(7);
  EXPECT_FALSE(quota.objection(7) || quota.objection(0) || quota.objection(8));
  EXPECT_TRUE(quota.take(7));
  EXPECT_FALSE(quota.take(7));
}

}  // namespace
}  // namespace lightq::broker
