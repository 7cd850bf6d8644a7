/// Tests the allocation of space in a ring of memory.
#include "log/memory/ring_space.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <vector>

#include "support/random.hpp"

namespace lightq::log {
namespace {

constexpr std::uint64_t never = ~std::uint64_t{0};

TEST(RingSpace, AllocatesInOrderAndWrapsAroundAtItsEnd) {
  RingSpace space(1000, never);
  for (const std::uint64_t expected : {0U, 300U, 600U}) EXPECT_EQ(space.physical(space.take(300)), expected);
  EXPECT_FALSE(space.has_room(101));
  EXPECT_TRUE(space.has_room(100));
  space.free_before(300);
  EXPECT_TRUE(space.has_room(300));
  EXPECT_FALSE(space.has_room(301));
  EXPECT_EQ(space.physical(space.take(300)), 0U);
  EXPECT_EQ(space.physical(300), 300U);
  EXPECT_EQ(space.begin(), 300U);
  EXPECT_EQ(space.end(), 1200U);
}

TEST(RingSpace, AcceptsAnythingThatFitsWhenItIsEmpty) {
  RingSpace space(1000, never);
  EXPECT_TRUE(space.has_room(1000));
  EXPECT_FALSE(space.has_room(1001));
  for (int round = 0; round < 5; ++round) {
    EXPECT_EQ(space.physical(space.take(700)), 0U);
    space.free_before(space.end());
    EXPECT_EQ(space.physical(space.take(1000)), 0U);
    space.free_before(space.end());
  }
}

TEST(RingSpace, StaysAtItsBeginningWhileLittleIsInUse) {
  RingSpace space(1'000'000, 1000);
  std::deque<std::uint64_t> taken;
  std::uint64_t furthest = 0;
  for (int step = 0; step < 10'000; ++step) {
    taken.push_back(space.take(100));
    furthest = std::max(furthest, space.physical(taken.back()) + 100);
    if (taken.size() > 5) {
      taken.pop_front();
      space.free_before(taken.front());
    }
  }
  EXPECT_LE(furthest, 1000U + 4 * 600U);
}

TEST(RingSpace, AReusedBeginningCostsNoSpace) {
  RingSpace space(100'000, 1000);
  for (int i = 0; i < 20; ++i) space.take(100);
  space.free_before(1800);
  EXPECT_EQ(space.physical(space.take(100)), 0U);
  int more = 0;
  while (space.has_room(100)) {
    space.take(100);
    ++more;
  }
  EXPECT_EQ(space.end() - space.begin(), 100'000U);
  EXPECT_EQ(more, 1000 - 3);
}

/// A model that records the owner of each byte.
class Owners {
 public:
  explicit Owners(std::uint64_t capacity) : bytes_(capacity, 0) {}
  /// Gives the bytes to `owner`. Returns false if not all of them are free.
  bool take(std::uint64_t physical, std::uint64_t size, std::uint64_t owner) {
    if (physical + size > bytes_.size()) return false;
    const auto begin = bytes_.begin() + static_cast<std::ptrdiff_t>(physical);
    const auto end = begin + static_cast<std::ptrdiff_t>(size);
    if (std::any_of(begin, end, [](std::uint64_t each) { return each != 0; })) return false;
    std::fill(begin, end, owner);
    return true;
  }
  void give_back(std::uint64_t owner) { std::replace(bytes_.begin(), bytes_.end(), owner, std::uint64_t{0}); }
  [[nodiscard]] std::uint64_t longest_free() const {
    std::uint64_t longest = 0;
    std::uint64_t run = 0;
    for (const std::uint64_t each : bytes_) longest = std::max(longest, run = each == 0 ? run + 1 : 0);
    return longest;
  }

 private:
  std::vector<std::uint64_t> bytes_;
};

TEST(RingSpace, AllocatesNothingTwiceAndAllFreeSpaceUnderRandomOperations) {
  test::Random random;
  for (int world = 0; world < 20; ++world) {
    const std::uint64_t capacity = random.between(1, 2000);
    RingSpace space(capacity, random.one_in(3) ? never : random.below(600));
    Owners owners(capacity);
    struct Taken {
      std::uint64_t position;
      std::uint64_t size;
      std::uint64_t owner;
    };
    std::deque<Taken> taken;
    std::uint64_t next = 0;
    const std::uint64_t largest = random.between(1, capacity);
    for (std::uint64_t step = 1; step <= 1500; ++step) {
      if (random.one_in(2) && !taken.empty()) {
        for (std::uint64_t many = random.between(1, taken.size()); many > 0; --many) {
          owners.give_back(taken.front().owner);
          taken.pop_front();
        }
        space.free_before(taken.empty() ? next : taken.front().position);
      }
      const std::uint64_t size = random.between(1, largest);
      const bool fits = size <= owners.longest_free();
      // With more allocations, RingSpace may search only behind the newest one.
      const bool all_looked_at = taken.size() < 8;
      ASSERT_TRUE(space.has_room(size) == fits || (fits && !all_looked_at)) << "step " << step;
      if (!space.has_room(size)) continue;
      const std::uint64_t position = space.take(size);
      ASSERT_EQ(position, next);
      ASSERT_TRUE(owners.take(space.physical(position), size, step)) << "step " << step;
      taken.push_back({position, size, step});
      next += size;
      ASSERT_EQ(space.end(), next);
      ASSERT_EQ(space.begin(), taken.front().position);
      for (const Taken& each : taken) {
        ASSERT_EQ(space.physical(each.position + each.size - 1),
                  space.physical(each.position) + each.size - 1);
      }
    }
  }
}

}  // namespace
}  // namespace lightq::log
