/// Tests of control/known_connections: which connections to the control socket are evicted for others.
#include "control/known_connections.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>

namespace lightq::broker {
namespace {

void use(KnownConnections& known, std::uint64_t connection, const std::string& owner) {
  known.used(connection, owner);
  known.idle(connection);
}

TEST(KnownConnections, TheLeastRecentlyUsedOfTheOwnerWithMostIsEvicted) {
  KnownConnections known;
  EXPECT_EQ(known.to_evict(), std::nullopt);
  use(known, 1, "bob");
  for (const std::uint64_t each : {2U, 3U, 4U}) use(known, each, "ann");
  EXPECT_EQ(known.to_evict(), 2U) << "not bob's, though it was used before";
  use(known, 2, "ann");
  EXPECT_EQ(known.to_evict(), 3U);
  known.leave(3);
  EXPECT_EQ(known.to_evict(), 4U);
  known.leave(4);
  EXPECT_EQ(known.to_evict(), 1U) << "each has one: the one used longest ago";
  EXPECT_EQ(known.size(), 2U);
}

TEST(KnownConnections, AConnectionWithARequestUnderWayStays) {
  KnownConnections known;
  use(known, 1, "bob");
  known.used(2, "ann");
  use(known, 3, "ann");
  EXPECT_EQ(known.to_evict(), 3U) << "the older one waits for its answer";
  known.busy(3);
  EXPECT_EQ(known.to_evict(), std::nullopt) << "nor does bob's go for them";
  known.idle(2);
  EXPECT_EQ(known.to_evict(), 2U);
  known.busy(2);
  known.busy(2);
  known.idle(3);
  EXPECT_EQ(known.to_evict(), 3U);
}

TEST(KnownConnections, AConnectionWithUnsentRepliesIsEvictedAfterTheOthersOfItsOwner) {
  KnownConnections known;
  for (const std::uint64_t each : {1U, 2U, 3U}) use(known, each, "ann");
  known.unread(1);
  EXPECT_EQ(known.to_evict(), 2U);
  known.busy(2);
  known.unread(3);
  EXPECT_EQ(known.to_evict(), 1U) << "who never reads is not safe";
  known.leave(1);
  EXPECT_EQ(known.to_evict(), 3U);
  known.idle(2);
  EXPECT_EQ(known.to_evict(), 2U);
}

TEST(KnownConnections, AConnectionCountsForTheLastUserThatItServed) {
  KnownConnections known;
  for (const std::uint64_t each : {1U, 2U, 3U}) use(known, each, "ann");
  for (const std::uint64_t each : {4U, 5U}) use(known, each, "bob");
  use(known, 1, "bob");
  EXPECT_EQ(known.to_evict(), 4U) << "bob has three now";
  use(known, 1, "ann");
  EXPECT_EQ(known.to_evict(), 2U);
}

TEST(KnownConnections, IgnoresUnknownConnections) {
  KnownConnections known;
  known.busy(7);
  known.idle(7);
  known.leave(7);
  EXPECT_EQ(known.size(), 0U);
  use(known, 7, "ann");
  known.leave(7);
  known.idle(7);
  EXPECT_EQ(known.to_evict(), std::nullopt);
}

/// A model with the rule of the class, computed by examining all connections.
struct Model {
  struct Place {
    std::string owner;
    std::uint64_t used;
    bool busy;
    bool unread;
  };
  std::map<std::uint64_t, Place> places;

  static bool goes_before(const Place& one, const Place& other) {
    return one.unread != other.unread ? other.unread : one.used < other.used;
  }

  /// Returns the connection to evict. Only the owners with the most connections count. Their idle connection
  /// that was used longest ago goes first. Connections with unread replies follow when none is idle.
  [[nodiscard]] std::optional<std::uint64_t> to_evict() const {
    std::map<std::string, std::size_t> counts;
    for (const auto& [connection, place] : places) ++counts[place.owner];
    std::size_t most = 0;
    for (const auto& [owner, count] : counts) most = std::max(most, count);
    std::optional<std::uint64_t> found;
    for (const auto& [connection, place] : places) {
      if (place.busy || counts[place.owner] != most) continue;
      if (!found || goes_before(place, places.at(*found))) found = connection;
    }
    return found;
  }
};

TEST(KnownConnections, DoAsAModelThatLooksAtAllOfThem) {
  std::mt19937 random(5);  // NOLINT(cert-msc51-cpp): the same in every run
  KnownConnections known;
  Model model;
  std::uint64_t uses = 0;
  for (int step = 0; step < 20'000; ++step) {
    const std::uint64_t connection = random() % 24;
    const auto place = model.places.find(connection);
    switch (random() % 5) {
      case 0: {
        const std::string owner = "user " + std::to_string(random() % 5);
        known.used(connection, owner);
        model.places[connection] = {owner, ++uses, true, false};
        break;
      }
      case 1:
        known.busy(connection);
        if (place != model.places.end()) place->second.busy = true;  // forgets any other state
        break;
      case 2:
        known.idle(connection);
        if (place != model.places.end()) place->second.busy = place->second.unread = false;
        break;
      case 3:
        known.unread(connection);
        if (place != model.places.end()) {
          place->second.busy = false;
          place->second.unread = true;
        }
        break;
      default:
        if (random() % 3 != 0) break;
        known.leave(connection);
        model.places.erase(connection);
    }
    ASSERT_EQ(known.to_evict(), model.to_evict()) << "step " << step;
    ASSERT_EQ(known.size(), model.places.size());
  }
}

}  // namespace
}  // namespace lightq::broker
