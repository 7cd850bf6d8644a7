/// Tests of protocol/stats_fields: every statistic has one entry in its table, of a kind that fits its type.
#include <lightq/protocol/stats_fields.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <concepts>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <type_traits>

namespace lightq::protocol {
namespace {

/// Adds the names of a table. Fails the test if a name occurs twice or a kind does not fit its member.
template <typename Stats>
std::set<std::string> names_of() {
  std::set<std::string> names;
  Stats stats;
  visit_fields(stats, [&](const StatField& field, auto& member) {
    using Member = std::remove_reference_t<decltype(member)>;
    EXPECT_TRUE(names.insert(field.name).second) << field.name;
    if constexpr (std::same_as<Member, std::string> || std::same_as<Member, BrokerType>) {
      EXPECT_EQ(field.kind, StatKind::label) << field.name;
    } else if constexpr (std::same_as<Member, bool>) {
      EXPECT_EQ(field.kind, StatKind::gauge) << field.name;
    } else if constexpr (std::same_as<Member, std::uint64_t> ||
                         std::same_as<Member, std::optional<std::uint32_t>>) {
      EXPECT_TRUE(field.kind == StatKind::counter || field.kind == StatKind::gauge) << field.name;
    } else {
      EXPECT_EQ(field.kind, StatKind::parts) << field.name;
    }
  });
  return names;
}

/// Prints counters and gauges line by line, as a text format for metrics does.
struct LinePrinter {
  std::ostringstream& to;
  void operator()(const StatField& field, std::uint64_t value) const {
    to << (field.kind == StatKind::counter ? "counter " : "gauge ") << field.name << ' ' << value << '\n';
  }
  void operator()(const StatField& field, bool value) const { (*this)(field, std::uint64_t{value}); }
  template <typename Other>
  void operator()(const StatField&, const Other&) const {}
};

TEST(StatsFields, EveryMemberHasOneEntryOfAFittingKind) {
  // Each line names all members: with another one it does not compile, and the table needs an entry too.
  {
    [[maybe_unused]] const auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y,
                                  z, z1, z2, z3, z4, z5, z6, z7, z8, z9] = GroupStats();
    EXPECT_EQ(names_of<GroupStats>().size(), 35U);
  }
  {
    // The user's number is the broker's own.
    [[maybe_unused]] const auto& [a, b, c, d, e, f, g, h] = MemberStats();
    EXPECT_EQ(names_of<MemberStats>().size(), 7U);
  }
  {
    [[maybe_unused]] const auto& [a, b, c, d, e, f, g, h] = SubscriberStats();
    EXPECT_EQ(names_of<SubscriberStats>().size(), 8U);
  }
  {
    [[maybe_unused]] const auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y,
                                  z, z1, z2, z3, z4, z5, z6, z7, z8, z9] = TopicStats();
    EXPECT_EQ(names_of<TopicStats>().size(), 35U);
  }
  {
    [[maybe_unused]] const auto& [a, b, c, d, e, f, g, h] = DelayedStats();
    EXPECT_EQ(names_of<DelayedStats>().size(), 8U);
  }
  {
    [[maybe_unused]] const auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t] = BrokerStats();
    EXPECT_EQ(names_of<BrokerStats>().size(), 20U);
  }
}

/// Returns the names of the counters of a table.
template <typename Stats>
std::set<std::string> counters_of() {
  std::set<std::string> names;
  const Stats stats;
  visit_fields(stats, [&](const StatField& field, const auto&) {
    if (field.kind == StatKind::counter) names.insert(field.name);
  });
  return names;
}

TEST(StatsFields, NumbersThatMayDecreaseAreNoCounters) {
  using testing::UnorderedElementsAre;
  EXPECT_THAT(counters_of<GroupStats>(),
              UnorderedElementsAre("redelivered", "acknowledged", "released", "failed", "timed_out",
                                   "lost_with_session", "revoked", "dead", "expired"));
  EXPECT_THAT(counters_of<SubscriberStats>(), testing::IsEmpty());
  EXPECT_THAT(counters_of<DelayedStats>(), UnorderedElementsAre("moved", "cancelled", "corrupt"));
  EXPECT_THAT(counters_of<TopicStats>(),
              UnorderedElementsAre("messages_received", "total_bytes_written", "total_bytes_read", "dropped",
                                   "rejected", "refused", "unclaimed_dropped", "corrupt",
                                   "refused_connections", "duplicates", "messages_out", "blocked_ms"));
  // The broker's sums over topics decrease when a topic is deleted.
  EXPECT_THAT(counters_of<BrokerStats>(), UnorderedElementsAre("auth_failures", "throttled_requests",
                                                               "refused_connections", "evicted_connections"));
}

/// Returns the names of the broker's fields that are summed in this way.
std::set<std::string> sums_of(StatSum sum) {
  std::set<std::string> names;
  const BrokerStats stats;
  visit_fields(stats, [&](const StatField& field, const auto&) {
    if (field.sum == sum) names.insert(field.name);
  });
  return names;
}

/// Sets each number of a struct to a value of its own.
template <typename Stats>
void number_all(Stats& stats, std::uint64_t first) {
  visit_fields(stats, [&]<typename Member>(const StatField&, Member& member) {
    if constexpr (std::same_as<Member, std::uint64_t>) member = first++;
  });
}

TEST(StatsFields, TheBrokersSumsAreMarkedInItsTable) {
  using testing::UnorderedElementsAre;
  EXPECT_THAT(sums_of(StatSum::topics),
              UnorderedElementsAre("messages_received", "messages_sent", "deliveries", "total_bytes_written",
                                   "total_bytes_read", "log_bytes"));
  EXPECT_THAT(sums_of(StatSum::reactors),
              UnorderedElementsAre("topics", "connections", "refused_connections", "evicted_connections"));
  TopicStats topic;
  number_all(topic, 1);
  for (const std::string& name : sums_of(StatSum::topics))
    EXPECT_GT(number_of(topic, name), 0U) << name << " is no number of a topic";
}

TEST(StatsFields, ATopicIsAddedByTheNamesOfItsFields) {
  TopicStats topic;
  number_all(topic, 100);
  BrokerStats sum;
  for (int i = 0; i < 2; ++i) add(sum, topic);
  EXPECT_EQ(sum.topics, 2U);
  EXPECT_EQ(sum.connections, 2 * (topic.publishers_count + topic.subscribers_count));
  for (const std::string& name : sums_of(StatSum::topics))
    EXPECT_EQ(number_of(sum, name), 2 * number_of(topic, name)) << name;
  EXPECT_EQ(sum.refused_connections, 0U) << "the reactor counts them, with those of sessions";
  EXPECT_EQ(sum.auth_failures + sum.pid + sum.uptime_ms, 0U);
}

TEST(StatsFields, PartsOfABrokerAreAddedFieldByField) {
  BrokerStats part;
  number_all(part, 1'000);
  part.version = "of a part";
  BrokerStats sum;
  for (int i = 0; i < 3; ++i) add(sum, part);
  visit_fields(sum, [&]<typename Member>(const StatField& field, const Member& member) {
    if constexpr (std::same_as<Member, std::uint64_t>) {
      const bool is_sum = field.sum != StatSum::none;
      EXPECT_EQ(member, is_sum ? 3 * number_of(part, field.name) : 0) << field.name;
    }
  });
  EXPECT_EQ(sum.version, "");
}

TEST(StatsFields, AnotherFormatIsAnotherVisitor) {
  std::ostringstream text;
  GroupStats stats;
  stats.pending = 3;
  stats.redelivered = 2;
  visit_fields(stats, LinePrinter{text});
  EXPECT_THAT(text.str(), testing::HasSubstr("gauge pending 3\n"));
  EXPECT_THAT(text.str(), testing::HasSubstr("counter redelivered 2\n"));
  EXPECT_THAT(text.str(), testing::HasSubstr("gauge paused 0\n"));
  EXPECT_THAT(text.str(), testing::Not(testing::HasSubstr("blocked_by")));
}

}  // namespace
}  // namespace lightq::protocol
