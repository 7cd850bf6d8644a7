/// Compares the sorted blocks with a map, and counts the index's memory.
#include "delayed/sorted_blocks.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "delayed/waiting_index.hpp"

namespace lightq::broker {
namespace {

struct NumberEntry {
  std::uint64_t number = 0;
  std::uint64_t value = 0;
  [[nodiscard]] std::uint64_t key() const { return number; }
};

TEST(SortedBlocks, AreLikeAMap) {
  std::mt19937_64 random(5);
  SortedBlocks<NumberEntry> blocks;
  std::map<std::uint64_t, std::uint64_t> model;
  for (int operation = 0; operation < 200'000; ++operation) {
    const std::uint64_t key = random() % 5'000;
    // The number of entries rises and falls.
    const bool grows = operation / 20'000 % 2 == 0;
    if (random() % 10 < (grows ? 7U : 3U)) {
      if (model.emplace(key, operation).second) blocks.insert({key, static_cast<std::uint64_t>(operation)});
    } else {
      ASSERT_EQ(blocks.erase(key), model.erase(key) == 1);
    }
    ASSERT_EQ(blocks.size(), model.size());
    const std::uint64_t asked = random() % 5'100;
    const auto expected = model.lower_bound(asked);
    const NumberEntry* const found = blocks.at(blocks.lower_bound(asked));
    ASSERT_EQ(found == nullptr, expected == model.end());
    if (found == nullptr) continue;
    ASSERT_EQ(found->number, expected->first);
    ASSERT_EQ(found->value, expected->second);
  }
  auto at = blocks.lower_bound(0);
  for (const auto& [key, value] : model) {
    ASSERT_EQ(blocks.at(at)->number, key);
    at = blocks.next(at);
  }
  EXPECT_EQ(blocks.at(at), nullptr);
  // At least half of the memory holds entries.
  EXPECT_LE(blocks.memory_bytes(), 2 * blocks.size() * sizeof(NumberEntry) + 64 * 1024);
}

TEST(WaitingIndex, AMillionMessagesTakeLessThan64MiB) {
  std::mt19937_64 random(6);
  WaitingIndex index;
  for (std::uint64_t number = 0; number < 1'000'000; ++number)
    index.add({number, static_cast<std::int64_t>(random() % 1'000'000'000'000), number, 100});
  EXPECT_LE(index.memory_bytes(), 64U << 20);
  RecordProperty("bytes", std::to_string(index.memory_bytes()));
  WaitingIndex loaded;
  loaded.load_begin();
  for (std::uint64_t number = 0; number < 1'000'000; ++number)
    loaded.add({number, static_cast<std::int64_t>(random() % 1'000'000'000'000), number, 100});
  loaded.load_end();
  EXPECT_LE(loaded.memory_bytes(), 64U << 20);
  DuePosition before;
  std::size_t walked = 0;
  for (auto walk = loaded.walk(); walk.get() != nullptr; walk.next(), ++walked) {
    ASSERT_LT(before, *walk.get());
    before = *walk.get();
  }
  EXPECT_EQ(walked, loaded.size());
}

}  // namespace
}  // namespace lightq::broker
