/// Tests of admission/eviction_queue: which entry is evicted for others.
#include "admission/eviction_queue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace lightq::broker {
namespace {

using Known = EvictionQueue<std::string>;

/// Uses the queue as the control server does for its connections.
void use(Known& known, std::uint64_t connection, const std::string& owner) {
  known.put(connection, owner, Eviction::excluded);
  known.set(connection, Eviction::first);
}

TEST(EvictionQueue, TheOldestOfTheKeyWithMostIsEvicted) {
  Known known;
  EXPECT_EQ(known.oldest_of_most(), std::nullopt);
  use(known, 1, "bob");
  for (const std::uint64_t each : {2U, 3U, 4U}) use(known, each, "ann");
  EXPECT_EQ(known.oldest_of_most(), 2U) << "not bob's, though it was used before";
  use(known, 2, "ann");
  EXPECT_EQ(known.oldest_of_most(), 3U);
  known.remove(3);
  EXPECT_EQ(known.oldest_of_most(), 4U);
  known.remove(4);
  EXPECT_EQ(known.oldest_of_most(), 1U) << "each has one: the one used longest ago";
  EXPECT_EQ(known.size(), 2U);
}

TEST(EvictionQueue, AnEntryThatIsNeverEvictedCountsForItsKey) {
  Known known;
  use(known, 1, "bob");
  known.put(2, "ann", Eviction::excluded);
  use(known, 3, "ann");
  EXPECT_EQ(known.oldest_of_most(), 3U) << "the older one waits for its answer";
  known.set(3, Eviction::excluded);
  EXPECT_EQ(known.oldest_of_most(), std::nullopt) << "nor does bob's go for them";
  known.set(2, Eviction::first);
  EXPECT_EQ(known.oldest_of_most(), 2U);
  known.set(2, Eviction::excluded);
  known.set(2, Eviction::excluded);
  known.set(3, Eviction::first);
  EXPECT_EQ(known.oldest_of_most(), 3U);
}

TEST(EvictionQueue, AnEntryToEvictLaterFollowsTheOthersOfItsKey) {
  Known known;
  for (const std::uint64_t each : {1U, 2U, 3U}) use(known, each, "ann");
  known.set(1, Eviction::later);
  EXPECT_EQ(known.oldest_of_most(), 2U);
  known.set(2, Eviction::excluded);
  known.set(3, Eviction::later);
  EXPECT_EQ(known.oldest_of_most(), 1U) << "who never reads is not safe";
  known.remove(1);
  EXPECT_EQ(known.oldest_of_most(), 3U);
  known.set(2, Eviction::first);
  EXPECT_EQ(known.oldest_of_most(), 2U);
}

TEST(EvictionQueue, AnEntryCountsForItsLastKey) {
  Known known;
  for (const std::uint64_t each : {1U, 2U, 3U}) use(known, each, "ann");
  for (const std::uint64_t each : {4U, 5U}) use(known, each, "bob");
  use(known, 1, "bob");
  EXPECT_EQ(known.oldest_of_most(), 4U) << "bob has three now";
  use(known, 1, "ann");
  EXPECT_EQ(known.oldest_of_most(), 2U);
}

TEST(EvictionQueue, IgnoresUnknownEntries) {
  Known known;
  known.set(7, Eviction::excluded);
  known.set(7, Eviction::first);
  known.remove(7);
  EXPECT_EQ(known.size(), 0U);
  use(known, 7, "ann");
  known.remove(7);
  known.set(7, Eviction::first);
  EXPECT_EQ(known.oldest_of_most(), std::nullopt);
}

TEST(EvictionQueue, TheOldestOfAllIsEvictedUnlessAKeyHasMoreThanAShare) {
  EvictionQueue<std::string, int> queue;
  EXPECT_EQ(queue.to_evict(0), std::nullopt);
  queue.put(1, "slow");
  for (const int each : {2, 3, 4}) queue.put(each, "many");
  queue.put(5, "other");
  EXPECT_EQ(queue.to_evict(2), 2) << "not the oldest";
  EXPECT_EQ(queue.to_evict(3), 1);
  EXPECT_EQ(queue.oldest_of("many"), 2);
  EXPECT_EQ(queue.oldest_of("none"), std::nullopt);
  queue.set(2, Eviction::excluded);
  EXPECT_EQ(queue.to_evict(2), 3);
  queue.set(1, Eviction::later);
  EXPECT_EQ(queue.oldest(), 3) << "one that goes first, of any key";
  queue.set(1, Eviction::first);
  EXPECT_EQ(queue.oldest(), 1) << "its age stayed";
  queue.put(1, "slow");
  EXPECT_EQ(queue.oldest(), 3) << "it is the newest now";
  EXPECT_EQ(queue.size(), 5U);
}

TEST(EvictionQueue, FindsTheFirstEntryThatIsAccepted) {
  EvictionQueue<std::string, int> queue;
  for (const int each : {1, 2}) queue.put(each, "two");
  for (const int each : {3, 4, 5}) queue.put(each, "three");
  for (const int each : {6, 7, 8, 9}) queue.put(each, "all in use", Eviction::excluded);
  std::vector<std::string> seen;
  const auto none = [&](const std::string& key, std::size_t entries, int id) {
    seen.push_back(key + " " + std::to_string(entries) + " " + std::to_string(id));
    return false;
  };
  EXPECT_EQ(queue.find(none), std::nullopt);
  EXPECT_EQ(seen, (std::vector<std::string>{"three 3 3", "two 2 1"}));
  EXPECT_EQ(queue.find([](const std::string& key, std::size_t, int) { return key == "two"; }), 1);
  EXPECT_EQ(queue.oldest_of_most(), std::nullopt) << "the key with most has none to evict";
  EXPECT_EQ(queue.to_evict(2), 3) << "of the keys that have";
  queue.set(7, Eviction::later);
  EXPECT_EQ(queue.oldest_of_most(), 7);
  EXPECT_EQ(queue.when(7), Eviction::later);
  EXPECT_EQ(queue.when(6), Eviction::excluded);
}

TEST(EvictionQueue, ForgetsKeysWithoutEntries) {
  EvictionQueue<std::string, int> queue;
  queue.put(1, "a");
  queue.put(1, "b");
  EXPECT_EQ(queue.of("a"), 0U);
  EXPECT_EQ(queue.of("b"), 1U);
  queue.remove(1);
  EXPECT_EQ(queue.of("b"), 0U);
  EXPECT_EQ(queue.size(), 0U);
  EXPECT_EQ(queue.oldest(), std::nullopt);
}

/// A model with the rules of the class, computed by examining all entries.
struct QueueModel {
  struct Place {
    std::string key;
    Eviction when;
    std::uint64_t age;
  };
  std::map<std::uint64_t, Place> places;
  using Found = std::optional<std::uint64_t>;

  static bool goes_before(const Place& one, const Place& other) {
    return one.when != other.when ? one.when < other.when : one.age < other.age;
  }
  [[nodiscard]] std::size_t of(const std::string& key) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(places, [&](const auto& each) { return each.second.key == key; }));
  }
  /// Returns the entry that goes before all others for which `may_go(place)` returns true.
  template <typename MayGo>
  [[nodiscard]] Found first(MayGo may_go) const {
    Found found;
    for (const auto& [id, place] : places) {
      if (place.when == Eviction::excluded || !may_go(place)) continue;
      if (!found || goes_before(place, places.at(*found))) found = id;
    }
    return found;
  }
  [[nodiscard]] Found oldest() const {
    return first([](const Place&) { return true; });
  }
  [[nodiscard]] Found oldest_of(const std::string& key) const {
    return first([&](const Place& each) { return each.key == key; });
  }
  [[nodiscard]] std::size_t most(bool evictable) const {
    std::size_t most = 0;
    for (const auto& [id, place] : places)
      if (!evictable || oldest_of(place.key)) most = std::max(most, of(place.key));
    return most;
  }
  [[nodiscard]] Found of_keys_with(std::size_t entries) const {
    return first([&](const Place& each) { return of(each.key) == entries; });
  }
  [[nodiscard]] Found to_evict(std::size_t share) const {
    return most(true) > share ? of_keys_with(most(true)) : oldest();
  }
  /// Returns the entry that goes first of the keys that have at least `least` entries; of these, of a key
  /// with most.
  [[nodiscard]] Found find(std::size_t least, const std::string& not_of) const {
    Found found;
    for (std::size_t entries = places.size(); entries >= std::max<std::size_t>(1, least) && !found; --entries)
      found = first([&](const Place& each) { return of(each.key) == entries && each.key != not_of; });
    return found;
  }
};

TEST(EvictionQueue, DoesAsAModelThatLooksAtAllEntries) {
  std::mt19937 random(5);  // NOLINT(cert-msc51-cpp): the same in every run
  EvictionQueue<std::string> queue;
  QueueModel model;
  std::uint64_t age = 0;
  int blocked = 0;
  for (int step = 0; step < 20'000; ++step) {
    const std::uint64_t id = random() % 24;
    const std::string key = "user " + std::to_string(random() % 5);
    const auto when = static_cast<Eviction>(std::min<std::uint_fast32_t>(random() % 5, 2));
    switch (random() % 4) {
      case 0:
        queue.put(id, key, when);
        model.places[id] = {key, when, ++age};
        break;
      case 1:
      case 2:
        queue.set(id, when);
        if (const auto place = model.places.find(id); place != model.places.end()) place->second.when = when;
        break;
      default:
        if (random() % 3 != 0) break;
        queue.remove(id);
        model.places.erase(id);
    }
    ASSERT_EQ(queue.oldest_of_most(), model.of_keys_with(model.most(false))) << "step " << step;
    ASSERT_EQ(queue.oldest(), model.oldest());
    ASSERT_EQ(queue.oldest_of(key), model.oldest_of(key));
    const std::size_t share = random() % 8;
    ASSERT_EQ(queue.to_evict(share), model.to_evict(share));
    const auto accept = [&](const std::string& each, std::size_t entries, std::uint64_t first) {
      EXPECT_EQ(model.oldest_of(each), first);
      return entries >= share && each != key;
    };
    ASSERT_EQ(queue.find(accept), model.find(share, key)) << "step " << step;
    ASSERT_EQ(queue.of(key), model.of(key));
    ASSERT_EQ(queue.size(), model.places.size());
    blocked += !queue.oldest_of_most() && queue.oldest() ? 1 : 0;
  }
  EXPECT_GT(blocked, 100) << "the key with most had none to evict";
}

}  // namespace
}  // namespace lightq::broker
