/// Tests of admission/token_bucket: rates with bursts, for one bucket and by key, alone and from two threads.
#include "admission/token_bucket.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <list>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace lightq::broker {
namespace {

using namespace std::chrono_literals;

TEST(Tokens, PermitABurstAndThenARatePerSecond) {
  const Rate rate(1000, 50);
  Tokens tokens;
  Tokens::Time now{1h};
  const auto taken = [&] {
    int count = 0;
    while (tokens.take(rate, now)) ++count;
    return count;
  };
  EXPECT_EQ(tokens.left(rate), 50) << "it is full at first";
  EXPECT_EQ(taken(), 50);
  EXPECT_EQ(taken(), 0);
  now += 10ms;
  EXPECT_EQ(taken(), 10);
  now += 500us;
  EXPECT_EQ(taken(), 0);
  now += 500us;
  EXPECT_EQ(taken(), 1);
  now -= 1s;
  EXPECT_EQ(taken(), 0) << "the clock went back";
  now += 1s;
  EXPECT_EQ(taken(), 0) << "and came to where it was";
  now += 1h;
  EXPECT_TRUE(tokens.take(rate, now));
  EXPECT_FALSE(tokens.take(rate, now - 1s, 50));
  EXPECT_TRUE(tokens.take(rate, now - 1s, 49)) << "a clock that goes back takes no tokens either";
  now += 1h;
  EXPECT_EQ(taken(), 50) << "a burst, however long it was silent";
}

TEST(Tokens, MayGetIntoDebt) {
  const Rate rate(10);
  Tokens tokens;
  Tokens::Time now{1h};
  EXPECT_TRUE(tokens.take(rate, now, 10));
  tokens.charge(10);
  EXPECT_EQ(tokens.left(rate), -10);
  now += 1s;
  EXPECT_FALSE(tokens.take(rate, now));
  tokens.charge(-1);
  EXPECT_TRUE(tokens.take(rate, now)) << "one was returned";
  now += 500ms;
  EXPECT_FALSE(tokens.take(rate, now, 6));
  EXPECT_TRUE(tokens.take(rate, now, 5)) << "the refusal took none";
}

TEST(TokenBucket, PermitsEachKeyARatePerSecond) {
  TokenBucket<std::string> rate(Rate(10), 100);
  Tokens::Time now{1h};
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(rate.take("a", now));
  EXPECT_FALSE(rate.take("a", now));
  EXPECT_TRUE(rate.take("b", now));
  now += 100ms;
  EXPECT_TRUE(rate.take("a", now));
  EXPECT_FALSE(rate.take("a", now));
  now += 1h;
  int taken = 0;
  for (int i = 0; i < 100; ++i) taken += rate.take("a", now) ? 1 : 0;
  EXPECT_EQ(taken, 10) << "a second's worth, however long it was silent";
}

TEST(TokenBucket, DropsTheBucketThatWasUsedLongestAgo) {
  TokenBucket<std::string> rate(Rate(1), 2);
  const Tokens::Time now{1h};
  EXPECT_TRUE(rate.take("a", now));
  EXPECT_TRUE(rate.take("b", now));
  EXPECT_FALSE(rate.take("a", now));
  EXPECT_TRUE(rate.take("c", now)) << "in place of b";
  EXPECT_EQ(rate.size(), 2U);
  EXPECT_FALSE(rate.take("a", now));
  EXPECT_TRUE(rate.take("b", now)) << "it is full again";
  EXPECT_EQ(rate.size(), 2U);
}

class EstimateTest : public testing::Test {
 protected:
  /// Does work of this amount. Returns false if it is refused.
  bool work(const std::string& owner, double amount) {
    const auto taken = rate.take_estimate(owner, now);
    if (taken) rate.settle(owner, *taken, amount);
    return taken.has_value();
  }
  int worked(const std::string& owner, double amount) {
    int times = 0;
    while (work(owner, amount)) ++times;
    return times;
  }
  int under_way(const std::string& owner) {
    int times = 0;
    while (rate.take_estimate(owner, now)) ++times;
    return times;
  }

  TokenBucket<std::string> rate{Rate(800), 100};
  Tokens::Time now{1h};
};

TEST_F(EstimateTest, ChargesTheAmountThatIsKnownAfterwards) {
  EXPECT_EQ(worked("ann", 1), 800);
  EXPECT_EQ(worked("bob", 80), 10) << "of each owner";
  now += 500ms;
  EXPECT_EQ(worked("ann", 1), 400);
  EXPECT_EQ(worked("bob", 80), 5);
}

TEST_F(EstimateTest, ANegativeBalanceDelaysTheNextWork) {
  EXPECT_TRUE(work("ann", 3200));
  now += 3s;
  EXPECT_FALSE(work("ann", 1)) << "just even";
  now += 200ms;
  EXPECT_TRUE(work("ann", 1));
}

TEST_F(EstimateTest, PendingWorkCountsAsTheLargestSoFar) {
  EXPECT_TRUE(work("ann", 50));
  EXPECT_TRUE(work("ann", 1)) << "of which one that is smaller changes nothing";
  now += 1s;
  EXPECT_EQ(under_way("ann"), 16);
  EXPECT_EQ(under_way("bob"), 800) << "of its own work";
}

TEST_F(EstimateTest, AfterTheLargestWorkEightMoreMayBeUnderWay) {
  EXPECT_TRUE(work("ann", 100'000));
  now += 1h;
  EXPECT_EQ(under_way("ann"), 8);
}

TEST_F(EstimateTest, TheSmallestRatePermitsOne) {
  TokenBucket<std::string> smallest(Rate(1), 100);
  const auto taken = smallest.take_estimate("ann", now);
  ASSERT_TRUE(taken);
  smallest.settle("ann", *taken, 1);
  EXPECT_FALSE(smallest.take_estimate("ann", now));
  now += 1s;
  EXPECT_TRUE(smallest.take_estimate("ann", now));
}

/// A model with the rules of TokenBucket in whole microtokens: it repeats all that happened to a key since
/// its bucket was new.
struct TokenModel {
  static constexpr std::int64_t token = 1'000'000;
  struct Event {
    std::int64_t at_us;
    std::int64_t amount;  // in microtokens
  };
  struct Bucket {
    int key;
    std::vector<Event> events = {};
    std::int64_t largest = 0;
  };
  std::int64_t per_second;
  std::int64_t burst;
  std::size_t keys_max;
  std::list<Bucket> buckets = {};  // the most recently used first

  Bucket& bucket_of(int key) {
    const auto found = std::ranges::find(buckets, key, &Bucket::key);
    if (found == buckets.end()) {
      buckets.push_front({key});
      if (buckets.size() > keys_max) buckets.pop_back();
    } else {
      buckets.splice(buckets.begin(), buckets, found);
    }
    return buckets.front();
  }
  /// Returns the microtokens at a time, by adding up from the beginning.
  [[nodiscard]] std::int64_t left(const Bucket& bucket, std::int64_t now_us) const {
    std::int64_t left = burst * token;
    std::int64_t seen = 0;
    for (const Event& each : bucket.events) {
      left = std::min(burst * token, left + (each.at_us - seen) * per_second) - each.amount;
      seen = each.at_us;
    }
    return std::min(burst * token, left + (now_us - seen) * per_second);
  }
  bool take(int key, std::int64_t now_us, std::int64_t amount) {
    Bucket& bucket = bucket_of(key);
    if (left(bucket, now_us) < amount) return false;
    bucket.events.push_back({now_us, amount});
    return true;
  }
};

TEST(TokenBucket, DoesAsAModelThatRepeatsEverything) {
  std::mt19937 random(13);  // NOLINT(cert-msc51-cpp): the same in every run
  int taken = 0;
  int refused = 0;
  for (int round = 0; round < 100; ++round) {
    // The products of these rates and steps of time are exact in binary fractions.
    const std::int64_t per_second = std::int64_t{1} << (random() % 6);
    const auto burst = static_cast<std::int64_t>(8 * (1 + random() % 5));
    TokenBucket<int> rate(Rate(static_cast<std::size_t>(per_second), static_cast<std::size_t>(burst)), 3);
    TokenModel model{per_second, burst, 3};
    std::int64_t now_us = 3'600'000'000;
    for (int step = 0; step < 100; ++step) {
      now_us += static_cast<std::int64_t>(random() % 8) * 125'000;
      const Tokens::Time now{std::chrono::microseconds(now_us)};
      const int key = static_cast<int>(random() % 4);
      if (random() % 2 == 0) {
        const auto amount = static_cast<std::int64_t>(1 + random() % 3);
        const bool expected = model.take(key, now_us, amount * TokenModel::token);
        ASSERT_EQ(rate.take(key, now, static_cast<double>(amount)), expected) << round << ' ' << step;
        ++(expected ? taken : refused);
        continue;
      }
      const std::int64_t largest = std::max<std::int64_t>(model.bucket_of(key).largest, TokenModel::token);
      const std::int64_t estimate = std::min(largest, burst * TokenModel::token / 8);
      const bool expected = model.take(key, now_us, estimate);
      const auto got = rate.take_estimate(key, now);
      ASSERT_EQ(got.has_value(), expected) << round << ' ' << step;
      ++(expected ? taken : refused);
      if (!got) continue;
      ASSERT_EQ(*got, static_cast<double>(estimate) / TokenModel::token);
      const auto amount = static_cast<std::int64_t>(random() % 16);
      rate.settle(key, *got, static_cast<double>(amount));
      TokenModel::Bucket& bucket = model.bucket_of(key);
      bucket.events.back().amount = amount * TokenModel::token;
      bucket.largest = std::max(bucket.largest, amount * TokenModel::token);
    }
    ASSERT_EQ(rate.size(), model.buckets.size());
  }
  EXPECT_GT(taken, 1'000);
  EXPECT_GT(refused, 500);
}

TEST(TokenBucketOnTwoThreads, AKeyHasItsRateOnceOnBothTogether) {
  constexpr std::size_t burst = 1000;
  TokenBucket<std::string, std::mutex> rate(Rate(burst), 2);
  Tokens::Time now{1h};
  for (int round = 0; round < 50; ++round) {
    now += 1s;
    std::array<std::size_t, 2> taken{};
    {
      std::vector<std::jthread> threads;
      for (std::size_t& own : taken) {
        threads.emplace_back([&rate, &own, now] {
          while (rate.take("ann", now)) ++own;
        });
      }
    }
    ASSERT_EQ(taken[0] + taken[1], burst);
  }
}

TEST(TokenBucketOnTwoThreads, KeepsItsBalanceAndItsBound) {
  TokenBucket<int, std::mutex> rate(Rate(1'000'000), 8);
  const Tokens::Time now{1h};
  {
    std::vector<std::jthread> threads;
    for (const unsigned number : {0U, 1U}) {
      threads.emplace_back([&rate, now, number] {
        std::mt19937 random(number);
        for (int step = 0; step < 100'000; ++step) {
          const int key = static_cast<int>(random() % 8);
          if (const auto taken = rate.take_estimate(key, now)) rate.settle(key, *taken, 0);
        }
      });
    }
  }
  EXPECT_EQ(rate.size(), 8U);
  for (int key = 0; key < 8; ++key) {
    EXPECT_TRUE(rate.take(key, now, 1'000'000)) << "all that was taken was returned";
    EXPECT_FALSE(rate.take(key, now));
  }
}

}  // namespace
}  // namespace lightq::broker
