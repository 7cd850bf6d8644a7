/// Tests of control/commands/operations: operations that are called without a request and without a password.
#include "control/commands/operations.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "control/catalogue/catalogue_settings.hpp"
#include "control/catalogue_room.hpp"
#include "control/fake_data_plane.hpp"
#include "control/loop_thread.hpp"
#include "support/planted.hpp"

namespace lightq::broker {
namespace {

using test::name;

const Asker administrator{Asker::Kind::administrator, {}};

class OperationsTest : public ::testing::Test {
 protected:
  /// Runs an operation, and returns its result.
  template <typename Value, typename Operate>
  Result<Value> result_of(Operate operate) {
    std::optional<Result<Value>> result;
    operate(Done<Value>([&](Result<Value> got) { result.emplace(std::move(got)); }));
    test::run_until(loop, [&] { return result.has_value(); });
    if (!result) return Error{ErrorCode::internal, "no result"};
    return *result;
  }
  template <typename Value, typename Operate>
  std::string code(Operate operate) {
    const auto result = result_of<Value>(operate);
    return result ? "ok" : std::string(to_word(result.error().code));
  }
  std::string create(const Asker& asker, const std::string& topic, const std::string& own_user = {},
                     protocol::BrokerType type = protocol::BrokerType::queue) {
    protocol::TopicSettings settings;
    settings.broker_type = type;
    const protocol::Credentials own{own_user, own_user.empty() ? "" : planted::owner_password};
    return code<protocol::CreatedTopic>([&](const Done<protocol::CreatedTopic>& done) {
      operations.topics().create(asker, {name(topic), settings, own}, done);
    });
  }
  /// Creates a user without a password, and returns it as an asker.
  Asker create_user(const std::string& user_id, const protocol::TopicRight& right, std::uint32_t uid = 1000) {
    EXPECT_EQ(code<void>([&](const Done<void>& done) {
                operations.users().create(administrator, {user_id, {}, false, {right}, uid}, done);
              }),
              "ok");
    const UserRecord* const record = catalogue->state().user(user_id);
    return {Asker::Kind::user, {record->id, record->generation}};
  }
  std::vector<std::string> topics_of(const Asker& asker) {
    std::vector<std::string> names;
    for (const auto& each : operations.topics().list(asker).topics) names.push_back(each.topic);
    return names;
  }

  StatsPage page_of(const Asker& asker, const TopicsWanted& wanted = {}) {
    return result_of<StatsPage>(
               [&](const Done<StatsPage>& done) { operations.stats().topics(asker, wanted, done); })
        .value();
  }

  EventLoop loop;
  test::CatalogueRoom room;
  std::unique_ptr<Catalogue> catalogue = room.open();
  Authenticator authenticator{loop, "admin", Secret(planted::admin_password)};
  int refusals = 0;
  AskerRights rights{*catalogue, [this] { ++refusals; }};
  test::FakeDataPlane data_plane{loop};
  Operations operations{{loop, *catalogue, authenticator, rights, data_plane, room.sink},
                        {"/data", [this] { return room.now(); }}};
};

TEST_F(OperationsTest, ATopicIsDurableWhenItsCreationIsDone) {
  EXPECT_EQ(create(administrator, "t"), "ok");
  EXPECT_FALSE(catalogue->unflushed());
  EXPECT_EQ(data_plane.topics.size(), 1U);
  EXPECT_EQ(create(administrator, "t"), "topic_already_exists");
  EXPECT_EQ(code<void>([&](const Done<void>& done) { operations.topics().remove(name("t"), done); }), "ok");
  EXPECT_TRUE(data_plane.topics.empty());
}

TEST_F(OperationsTest, AnAskerSeesTheTopicsThatItKnows) {
  const Asker ann = create_user("ann", {"a*", {.consume = true}});
  for (const auto* topic : {"a1", "a2", "b"}) ASSERT_EQ(create(administrator, topic), "ok");
  EXPECT_THAT(topics_of(administrator), testing::ElementsAre("a1", "a2", "b"));
  EXPECT_THAT(topics_of(ann), testing::ElementsAre("a1", "a2"));
  EXPECT_THAT(topics_of(Asker{}), testing::IsEmpty()) << "an anonymous asker";
  ASSERT_TRUE(catalogue->remove_user(ann.holder.user));
  EXPECT_THAT(topics_of(ann), testing::IsEmpty()) << "a user that was deleted";
}

TEST_F(OperationsTest, StatisticsOfAllTopicsCostOneQuestion) {
  for (int i = 0; i < 300; ++i) ASSERT_EQ(create(administrator, "t" + std::to_string(i)), "ok");
  data_plane.topics.erase(catalogue->state().find("t7")->definition.id.value);  // is about to be removed
  const StatsPage page = page_of(administrator);
  EXPECT_EQ(page.topics.size(), 299U);
  EXPECT_TRUE(std::ranges::is_sorted(page.topics, {}, &protocol::TopicStats::topic));
  EXPECT_EQ(page.continue_after, "");
  EXPECT_EQ(data_plane.bulk_questions, 1U);
}

TEST_F(OperationsTest, PagesOfStatisticsHaveEachTopicOnce) {
  for (const auto* topic : {"a", "b", "c", "d", "e"}) ASSERT_EQ(create(administrator, topic), "ok");
  const auto pages = [&](std::size_t topics_max, std::size_t entries_max) {
    std::vector<std::vector<std::string>> names;
    TopicsWanted wanted{.after = {}, .topics_max = topics_max, .entries_max = entries_max};
    do {
      StatsPage page = page_of(administrator, wanted);
      names.emplace_back();
      for (const auto& stats : page.topics) names.back().push_back(stats.topic);
      wanted.after = TopicName::parse(page.continue_after);
    } while (wanted.after && names.size() < 9);
    return names;
  };
  using Names = std::vector<std::string>;
  EXPECT_THAT(pages(2, 100), testing::ElementsAre(Names{"a", "b"}, Names{"c", "d"}, Names{"e"}));
  EXPECT_THAT(pages(5, 100), testing::ElementsAre(Names{"a", "b", "c", "d", "e"}));
  data_plane.groups_of_each = 9;  // so each topic has 10 entries
  EXPECT_THAT(pages(4, 11), testing::ElementsAre(Names{"a", "b"}, Names{"c", "d"}, Names{"e"}));
  EXPECT_THAT(pages(4, 1), testing::ElementsAre(Names{"a"}, Names{"b"}, Names{"c"}, Names{"d"}, Names{"e"}))
      << "a page has at least one topic";
  const TopicsWanted behind_all{.after = name("z")};
  EXPECT_THAT(page_of(administrator, behind_all).topics, testing::IsEmpty());
}

TEST_F(OperationsTest, ATraceShowsDeathsOnlyToAskersThatMayListThem) {
  const Asker reader = create_user("reader", {"t", {.consume = true}});
  const Asker of_group = create_user("of_group", {"t:billing", {.manage = true}}, 1001);
  const Asker manager = create_user("manager", {"t", {.manage = true}}, 1002);
  ASSERT_EQ(create(administrator, "t", "owner"), "ok");
  const Asker owner{Asker::Kind::topic_user, {catalogue->state().find("t")->credential_id, 0}};
  data_plane.traced.topic = "t";
  for (const auto* group : {"billing", "audit"}) {
    protocol::GroupTrace& dead = data_plane.traced.groups.emplace_back();
    dead.group = group;
    dead.state = protocol::MessageState::parked;
    dead.death = protocol::DeadMessage{.offset = 3, .reason = "secret"};
  }
  const auto deaths = [&](const Asker& asker) {
    const auto traced = result_of<WorkedTrace>(
        [&](const Done<WorkedTrace>& done) { operations.traces().trace(asker, name("t"), Offset{3}, done); });
    std::vector<std::string> groups;
    for (const auto& group : traced.value().trace.groups) {
      EXPECT_EQ(group.state, protocol::MessageState::parked);
      if (group.death) groups.push_back(group.group);
    }
    EXPECT_GT(traced.value().work_bytes, 0U) << "it is charged";
    return groups;
  };
  EXPECT_THAT(deaths(reader), testing::IsEmpty());
  EXPECT_THAT(deaths(Asker{}), testing::IsEmpty()) << "an anonymous asker of an open topic";
  EXPECT_THAT(deaths(of_group), testing::ElementsAre("billing"));
  for (const Asker& asker : {manager, owner, administrator})
    EXPECT_THAT(deaths(asker), testing::ElementsAre("billing", "audit"));
}

TEST_F(OperationsTest, ATraceThatLooksForALetterIsChargedForEachLetterOfItsKey) {
  for (const auto* topic : {"t", "letters"}) ASSERT_EQ(create(administrator, topic), "ok");
  data_plane.traced.topic = "t";
  data_plane.traced.offset = 3;
  data_plane.traced.groups.push_back(
      {.group = "billing", .state = protocol::MessageState::done, .letter_topic = "letters"});
  const auto traced = [&] {
    return result_of<WorkedTrace>([&](const Done<WorkedTrace>& done) {
             operations.traces().trace(administrator, name("t"), Offset{3}, done);
           })
        .value();
  };
  data_plane.letters.assign(1, {.offset = 0});
  const std::uint64_t one = traced().work_bytes;
  data_plane.letters.assign(100, {.offset = 0});
  data_plane.letters.back() = {
      .offset = 99, .source_topic = "t", .source_group = "billing", .source_offset = 3};
  const WorkedTrace many = traced();
  EXPECT_EQ(many.trace.groups[0].state, protocol::MessageState::dead_letter);
  EXPECT_EQ(many.trace.groups[0].letter_offset, 99U);
  EXPECT_EQ(many.work_bytes - one, 99 * std::uint64_t{256});
}

TEST_F(OperationsTest, StatisticsShowOnlyTopicsThatTheAskerKnows) {
  const Asker ann = create_user("ann", {"a*", {.produce = true}});
  for (const auto* topic : {"a1", "a2", "b", "a3"}) ASSERT_EQ(create(administrator, topic), "ok");
  const auto names = [&](const Asker& asker, std::size_t topics_max) {
    std::vector<std::string> all;
    for (const auto& stats : page_of(asker, {.after = {}, .topics_max = topics_max}).topics)
      all.push_back(stats.topic);
    return all;
  };
  EXPECT_THAT(names(ann, 100), testing::ElementsAre("a1", "a2", "a3"));
  EXPECT_THAT(names(ann, 2), testing::ElementsAre("a1", "a2"));
  EXPECT_GT(page_of(ann).work_bytes, 0U) << "comparing names with patterns is charged";
  EXPECT_THAT(names(Asker{}, 100), testing::IsEmpty()) << "an anonymous asker";
  const Asker own{Asker::Kind::topic_user, {7, 0}};
  EXPECT_THAT(names(own, 100), testing::IsEmpty());
  ASSERT_TRUE(catalogue->remove_user(ann.holder.user));
  EXPECT_THAT(names(ann, 100), testing::IsEmpty()) << "a user that was deleted";
}

TEST_F(OperationsTest, AnAskerThatLosesItsRightDuringAHashIsRefused) {
  const Asker ann = create_user("ann", {"t*", {.manage = true}});
  EXPECT_EQ(create(ann, "t1", "own"), "ok");
  const auto refused = code<protocol::CreatedTopic>([&](const Done<protocol::CreatedTopic>& done) {
    operations.topics().create(ann, {name("t2"), {}, {"another", planted::other_password}}, done);
    ASSERT_TRUE(catalogue->remove_user(ann.holder.user));
  });
  EXPECT_EQ(refused, "unauthorized_access");
  EXPECT_EQ(refusals, 1);
  EXPECT_EQ(catalogue->state().find("t2"), nullptr);
}

TEST_F(OperationsTest, ATopicsOwnUserSetsOnlyTheNewestPassword) {
  ASSERT_EQ(create(administrator, "t", "own"), "ok");
  const Asker own{Asker::Kind::topic_user, {catalogue->state().find("t")->credential_id, 0}};
  const auto set_password = [&](const Asker& asker, const std::string& expected, const char* password) {
    return code<void>([&](const Done<void>& done) {
      operations.users().set_topic_password(asker, name("t"), expected, Secret(password), done);
    });
  };
  EXPECT_EQ(set_password(administrator, "another", planted::other_password), "invalid_request");
  EXPECT_EQ(set_password(own, {}, planted::other_password), "ok");
  EXPECT_EQ(set_password(own, {}, planted::user_password), "unauthorized_access") << "of the former password";
  EXPECT_EQ(refusals, 1);
  EXPECT_EQ(set_password(administrator, "own", planted::user_password), "ok");
}

TEST_F(OperationsTest, OnlyTopicsWithFilesGetSettingsOfFiles) {
  ASSERT_EQ(create(administrator, "memory"), "ok");
  ASSERT_EQ(create(administrator, "files", {}, protocol::BrokerType::file), "ok");
  const auto change = [&](const std::string& topic, const protocol::TopicChange& to) {
    return code<void>([&](const Done<void>& done) { operations.topics().change(name(topic), to, done); });
  };
  EXPECT_EQ(change("memory", {.retention_ms = 1}), "invalid_request");
  EXPECT_EQ(change("memory", {.capacity_bytes = 1 << 20}), "invalid_request");
  EXPECT_EQ(change("memory", {.overflow = protocol::Overflow::reject}), "ok");
  EXPECT_EQ(change("files", {.capacity_bytes = 1 << 20, .retention_ms = 1}), "ok");
  EXPECT_EQ(catalogue->state().find("files")->definition.settings.retention_ms, 1U);
  EXPECT_EQ(catalogue->state().find("memory")->definition.settings.overflow, protocol::Overflow::reject);
}

TEST_F(OperationsTest, ACapacityMustHaveRoomForAMessage) {
  ASSERT_EQ(create(administrator, "files", {}, protocol::BrokerType::file), "ok");
  const auto change = [&](std::uint64_t capacity) {
    return code<void>([&](const Done<void>& done) {
      operations.topics().change(name("files"), {.capacity_bytes = capacity}, done);
    });
  };
  const auto create_with = [&](const std::string& topic, std::uint64_t capacity) {
    return code<protocol::CreatedTopic>([&](const Done<protocol::CreatedTopic>& done) {
      operations.topics().create(
          administrator,
          {name(topic), {.broker_type = protocol::BrokerType::file, .capacity_bytes = capacity}, {}}, done);
    });
  };
  for (const std::uint64_t none_fits : {1, 68}) {
    EXPECT_EQ(change(none_fits), "invalid_request") << none_fits;
    EXPECT_EQ(create_with("small", none_fits), "invalid_request") << none_fits;
  }
  EXPECT_EQ(catalogue->state().find("small"), nullptr);
  EXPECT_EQ(change(69), "ok");
  EXPECT_EQ(change(0), "ok");
  EXPECT_EQ(create_with("small", 69), "ok");
}

TEST_F(OperationsTest, OnlyTopicsThatStoreMessagesArePurged) {
  ASSERT_EQ(create(administrator, "stored"), "ok");
  ASSERT_EQ(create(administrator, "direct", {}, protocol::BrokerType::direct), "ok");
  const auto purge = [&](const std::string& topic) {
    return result_of<std::uint64_t>(
        [&](const Done<std::uint64_t>& done) { operations.topics().purge(name(topic), done); });
  };
  EXPECT_EQ(purge("stored").value(), 7U);
  EXPECT_EQ(purge("direct").error().code, ErrorCode::not_supported);
  EXPECT_EQ(purge("none").error().code, ErrorCode::topic_not_found);
  const auto of_group = result_of<std::uint64_t>(
      [&](const Done<std::uint64_t>& done) { operations.groups().purge(name("stored"), "default", done); });
  EXPECT_EQ(of_group.value(), 5U);
}

TEST_F(OperationsTest, AListWithGroupsComesInPages) {
  const GroupSetup settings{{.max_attempts = 5}};
  for (const auto* topic : {"a", "b", "c"}) {
    ASSERT_EQ(create(administrator, topic), "ok");
    const TopicId id = catalogue->state().find(std::string_view(topic))->definition.id;
    for (std::size_t group = 0; group < limits::groups_per_topic_max; ++group)
      ASSERT_TRUE(put_group(*catalogue, id, "g" + std::to_string(group), settings));
  }
  const auto page = [&](const Asker& asker, const std::optional<TopicName>& after) {
    const TopicList list = operations.topics().list_with_groups(asker, after);
    std::string text;
    for (const auto& topic : list.topics)
      text += topic.topic + " " + std::to_string(topic.groups.size()) + ", ";
    return text + "then " + list.continue_after;
  };
  EXPECT_EQ(page(administrator, {}), "a 1024, b 1024, then b");
  EXPECT_EQ(page(administrator, name("b")), "c 1024, then ");
  EXPECT_EQ(page(create_user("ann", {"b", {.consume = true}}), {}), "b 1024, then ");
  for (const auto& topic : operations.topics().list(administrator).topics)
    EXPECT_THAT(topic.groups, testing::IsEmpty());
  // As many as end a page that begins with topic a.
  for (std::size_t hidden = 1; hidden < limits::stats_page_entries_max - limits::groups_per_topic_max;
       ++hidden)
    ASSERT_EQ(create(administrator, ("b" + std::to_string(hidden)).c_str()), "ok");
  const Asker eve = create_user("eve", {"a", {.consume = true}}, 1001);
  EXPECT_EQ(page(eve, {}), "a 1024, then ") << "a page's end names no topic that the user may not see";
}

TEST_F(OperationsTest, AJoinNamesItsAskerAsTheHolderOfTheTicket) {
  const Asker ann = create_user("ann", {"t", {.consume = true}});
  ASSERT_EQ(create(administrator, "t"), "ok");
  const auto joined = result_of<Joined>([&](const Done<Joined>& done) {
    operations.endpoints().join(ann, name("t"), {protocol::JoinType::pull}, std::nullopt, done);
  });
  ASSERT_TRUE(joined) << joined.error().text();
  EXPECT_THAT(data_plane.holders, testing::ElementsAre(ann.holder));
  const auto left = result_of<std::uint64_t>([&](const Done<std::uint64_t>& done) {
    operations.endpoints().leave(ann, name("t"), joined.value().bind_uri, done);
  });
  EXPECT_EQ(left.value(), 42U);
  EXPECT_THAT(data_plane.leavers, testing::ElementsAre(Leaver{ann.holder.user, false, false}));
}

}  // namespace
}  // namespace lightq::broker
