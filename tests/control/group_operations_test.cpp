/// Tests of control/commands/group_operations: settings of groups and their dead messages.
#include "control/commands/group_operations.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>

#include "control/catalogue_room.hpp"
#include "control/commands_under_test.hpp"
#include "control/fake_data_plane.hpp"
#include "control/loop_thread.hpp"
#include "support/planted.hpp"

namespace lightq::broker {
namespace {

using protocol::GroupChange;
using protocol::GroupSettings;
using test::name;

const protocol::Credentials the_admin{"lightq_admin", planted::admin_password};

/// Commands on a catalogue, with a data plane that only records them. `restart` makes new ones on the same
/// catalogue.
class GroupCommands : public ::testing::Test {
 protected:
  std::unique_ptr<test::CommandsUnderTest> make() {
    OperationSettings settings{"/data", [this] { return room.now(); }};
    settings.groups_per_topic_max = groups_max;
    settings.redelivery_ms_max = 60'000;
    return std::make_unique<test::CommandsUnderTest>(loop, *catalogue, authenticator, data_plane, room.sink,
                                                     settings);
  }
  void restart() {
    commands.reset();
    catalogue.reset();
    data_plane.topics.clear();
    data_plane.groups.clear();
    catalogue = room.open();
    commands = make();
    bool up = false;
    commands->bring_up([&] { up = true; });
    test::run_until(loop, [&] { return up; });
  }
  protocol::Reply ask(const protocol::Request& request) {
    std::optional<protocol::Reply> reply;
    commands->handle(request, [&](protocol::Reply got) { reply = std::move(got); });
    test::run_until(loop, [&] { return reply.has_value(); });
    return reply.value_or(protocol::ErrorReply{});
  }
  std::string code(const protocol::Request& request) {
    const auto reply = ask(request);
    const auto* error = std::get_if<protocol::ErrorReply>(&reply);
    if (error == nullptr) return "ok";
    last_sentence = error->description;
    return std::string(to_word(error->code));
  }
  void create(const std::string& topic, protocol::BrokerType type = protocol::BrokerType::queue,
              const protocol::Credentials& own = {}) {
    protocol::TopicSettings settings;
    settings.broker_type = type;
    ASSERT_EQ(code(protocol::CreateTopic{the_admin, name(topic), settings, own}), "ok") << last_sentence;
  }
  std::string set(const std::string& topic, const std::string& group, const GroupChange& change,
                  const protocol::Credentials& by = the_admin) {
    return code(protocol::SetGroup{by, name(topic), group, change, by.user_id == the_admin.user_id});
  }
  std::string aim(const std::string& topic, const std::string& target,
                  const protocol::Credentials& by = the_admin) {
    return set(topic, "g", {.dead_letter_topic = target}, by);
  }
  std::string remove(const std::string& topic, const std::string& group) {
    return code(protocol::DeleteGroup{the_admin, name(topic), group, true});
  }
  /// Returns the settings that the data plane has.
  GroupSettings settings_of(const std::string& topic, const std::string& group) {
    const TopicEntry* const entry = catalogue->state().find(topic);
    const auto found = data_plane.groups.find(std::to_string(entry->definition.id.value) + "/" + group);
    return found == data_plane.groups.end() ? GroupSettings() : found->second.settings;
  }
  /// Returns the topic that dead messages of the topic's group "g" go to.
  TopicId target_of(const std::string& topic) {
    const TopicId id = catalogue->state().find(topic)->definition.id;
    return data_plane.groups[std::to_string(id.value) + "/g"].dead_letter_topic;
  }
  TopicId id_of(const std::string& topic) { return catalogue->state().find(topic)->definition.id; }

  EventLoop loop;
  test::CatalogueRoom room;
  std::unique_ptr<Catalogue> catalogue = room.open();
  Authenticator authenticator{loop, the_admin.user_id, Secret(the_admin.password)};
  test::FakeDataPlane data_plane{loop};
  std::size_t groups_max = 3;
  std::unique_ptr<test::CommandsUnderTest> commands = make();
  std::string last_sentence;
};

TEST_F(GroupCommands, ChangeOnlyTheGivenSettingsAndSurviveARestart) {
  create("t");
  create("dead");
  EXPECT_EQ(set("t", "g", {.max_attempts = 5, .backoff_ms = {{1000, 60'000}}}), "ok");
  EXPECT_EQ(set("t", "g",
                {.dead_letter_topic = "dead",
                 .dead_waiting_max = 7,
                 .processing_timeout_ms = 0,
                 .pause_when_failing = true}),
            "ok");
  const GroupSettings all{.max_attempts = 5,
                          .backoff_ms = {1000, 60'000},
                          .dead_letter_topic = "dead",
                          .dead_waiting_max = 7,
                          .processing_timeout_ms = 0,
                          .pause_when_failing = true};
  EXPECT_EQ(settings_of("t", "g"), all);
  EXPECT_FALSE(catalogue->unflushed()) << "answered before it was durable";
  restart();
  EXPECT_EQ(settings_of("t", "g"), all);
  EXPECT_EQ(settings_of("t", "other"), GroupSettings());
  EXPECT_EQ(set("t", "g", {.default_processing_timeout = true}), "ok");
  EXPECT_EQ(settings_of("t", "g").processing_timeout_ms, std::nullopt);
  EXPECT_EQ(settings_of("t", "g").max_attempts, 5U);
}

TEST_F(GroupCommands, ExpiredMessagesBecomeLettersOnlyWithADeadLetterTopic) {
  create("t");
  create("dead");
  EXPECT_EQ(set("t", "g", {.dead_letter_expired = true}), "invalid_request");
  EXPECT_EQ(set("t", "g", {.dead_letter_topic = "dead", .dead_letter_expired = true}), "ok");
  EXPECT_TRUE(settings_of("t", "g").dead_letter_expired);
  EXPECT_EQ(set("t", "g", {.dead_letter_topic = ""}), "invalid_request");
  EXPECT_EQ(set("t", "g", {.dead_letter_topic = "", .dead_letter_expired = false}), "ok");
  EXPECT_FALSE(settings_of("t", "g").dead_letter_expired);
}

TEST_F(GroupCommands, DefaultSettingsLeaveNoRecord) {
  create("t");
  ASSERT_EQ(set("t", "g", {.max_attempts = 5}), "ok");
  EXPECT_EQ(catalogue->state().find("t")->definition.groups.size(), 1U);
  ASSERT_EQ(set("t", "g", {.max_attempts = 0}), "ok");
  EXPECT_TRUE(catalogue->state().find("t")->definition.groups.empty());
  EXPECT_EQ(settings_of("t", "g"), GroupSettings());
  restart();
  EXPECT_TRUE(data_plane.groups.empty());
}

TEST_F(GroupCommands, MovesAGroupOrOnlyLooks) {
  create("t");
  create("direct", protocol::BrokerType::direct);
  const auto seek = [&](const std::string& topic, const std::string& group, bool preview) {
    return ask(protocol::SeekGroup{
        the_admin, name(topic), group, {protocol::GroupPlace::From::offset, 9}, preview, true});
  };
  const auto looked = std::get<protocol::OkReply>(seek("t", "default", true));
  EXPECT_EQ(looked.moved, (protocol::GroupMove{7, 9, 3, 10}));
  EXPECT_TRUE(data_plane.group_places.empty());
  EXPECT_EQ(std::get<protocol::OkReply>(seek("t", "default", false)).moved, looked.moved);
  EXPECT_EQ(data_plane.group_places["default"],
            (protocol::GroupPlace{protocol::GroupPlace::From::offset, 9}));
  EXPECT_EQ(std::get<protocol::ErrorReply>(seek("t", "none", false)).code, ErrorCode::group_not_found);
  EXPECT_EQ(std::get<protocol::ErrorReply>(seek("direct", "default", false)).code, ErrorCode::not_supported);
  EXPECT_EQ(std::get<protocol::ErrorReply>(seek("none", "default", false)).code, ErrorCode::topic_not_found);
}

TEST_F(GroupCommands, DeletingAGroupDeletesItsSettings) {
  create("t");
  ASSERT_EQ(set("t", "default", {.max_attempts = 5}), "ok");
  ASSERT_EQ(set("t", "future", {.max_attempts = 6}), "ok");
  EXPECT_EQ(remove("t", "default"), "ok");
  EXPECT_EQ(remove("t", "future"), "ok") << "the group does not exist, but its settings do";
  EXPECT_EQ(remove("t", "future"), "group_not_found");
  EXPECT_TRUE(catalogue->state().find("t")->definition.groups.empty());
  EXPECT_EQ(settings_of("t", "default"), GroupSettings());
}

TEST_F(GroupCommands, DeletingATopicDeletesItsSettings) {
  create("t");
  ASSERT_EQ(set("t", "g", {.max_attempts = 5}), "ok");
  ASSERT_EQ(code(protocol::DeleteTopic{the_admin, name("t")}), "ok");
  create("t");
  EXPECT_TRUE(catalogue->state().find("t")->definition.groups.empty());
  restart();
  EXPECT_EQ(settings_of("t", "g"), GroupSettings());
}

TEST_F(GroupCommands, ADeadLetterTopicMustKeepMessages) {
  create("t");
  create("relay", protocol::BrokerType::direct);
  EXPECT_EQ(aim("t", "none"), "topic_not_found");
  EXPECT_THAT(last_sentence, testing::HasSubstr("'none'"));
  EXPECT_EQ(aim("t", "t"), "invalid_request");
  EXPECT_EQ(aim("t", "relay"), "invalid_request");
  EXPECT_THAT(last_sentence, testing::HasSubstr("direct"));
  EXPECT_EQ(settings_of("t", "g"), GroupSettings());
}

TEST_F(GroupCommands, DeadLettersNeverGoRound) {
  for (const auto* topic : {"a", "b", "c", "d"}) create(topic);
  ASSERT_EQ(aim("a", "b"), "ok");
  ASSERT_EQ(set("b", "one", {.dead_letter_topic = "d"}), "ok");
  ASSERT_EQ(set("b", "two", {.dead_letter_topic = "c"}), "ok");
  EXPECT_EQ(aim("b", "a"), "invalid_request");
  EXPECT_EQ(aim("c", "a"), "invalid_request") << "a → b → c by another group of b";
  EXPECT_EQ(aim("c", "d"), "ok");
  EXPECT_EQ(aim("d", "b"), "invalid_request");
  ASSERT_EQ(set("b", "two", {.dead_letter_topic = ""}), "ok");
  EXPECT_EQ(aim("c", "a"), "ok") << "the way back is gone";
}

TEST_F(GroupCommands, ADeletedDeadLetterTopicStaysNamed) {
  create("t");
  create("dead");
  ASSERT_EQ(aim("t", "dead"), "ok");
  ASSERT_EQ(code(protocol::DeleteTopic{the_admin, name("dead")}), "ok");
  EXPECT_EQ(settings_of("t", "g").dead_letter_topic, "dead") << "dead messages wait for it";
  EXPECT_EQ(set("t", "g", {.max_attempts = 3}), "ok") << "what is not changed is not checked again";
}

// Somebody else may create a topic of the name later.
TEST_F(GroupCommands, ADeadLetterTopicIsBoundByItsIdWhenItIsSet) {
  create("t");
  create("dead");
  ASSERT_EQ(aim("t", "dead"), "ok");
  const TopicId meant = id_of("dead");
  EXPECT_EQ(target_of("t"), meant);
  ASSERT_EQ(code(protocol::DeleteTopic{the_admin, name("dead")}), "ok");
  create("dead");
  ASSERT_NE(id_of("dead"), meant);
  ASSERT_EQ(set("t", "g", {.max_attempts = 3}), "ok");
  EXPECT_EQ(target_of("t"), meant) << "only a command that names the topic binds it";
  restart();
  EXPECT_EQ(target_of("t"), meant);
  ASSERT_EQ(aim("t", "dead"), "ok");
  EXPECT_EQ(target_of("t"), id_of("dead"));
  ASSERT_EQ(aim("t", ""), "ok");
  EXPECT_EQ(target_of("t"), TopicId{});
}

TEST_F(GroupCommands, RightsAreCheckedWheneverTheTopicIsNamed) {
  const protocol::Credentials ann{"ann", planted::user_password};
  create("t");
  create("dead");
  ASSERT_EQ(code(protocol::CreateUser{the_admin, ann, false, {{"t", {.manage = true}}}, std::nullopt}), "ok");
  ASSERT_EQ(aim("t", "dead"), "ok");
  ASSERT_EQ(code(protocol::DeleteTopic{the_admin, name("dead")}), "ok");
  create("dead");
  EXPECT_EQ(aim("t", "dead", ann), "unauthorized_access") << "the same name, but another topic";
  EXPECT_NE(target_of("t"), id_of("dead"));
}

TEST_F(GroupCommands, ADeletedTopicTakesItsWayWithIt) {
  for (const auto* topic : {"a", "b", "c"}) create(topic);
  ASSERT_EQ(aim("a", "b"), "ok");
  ASSERT_EQ(code(protocol::DeleteTopic{the_admin, name("b")}), "ok");
  create("b");
  EXPECT_EQ(aim("b", "a"), "ok") << "dead messages of a do not go to the new b";
  EXPECT_EQ(aim("a", "b"), "invalid_request");
}

TEST_F(GroupCommands, TheDataPlaneLearnsAllTopicsBeforeItStartsOne) {
  create("a");
  create("b");
  restart();
  const std::vector<std::pair<TopicId, std::string>> all{{id_of("a"), "a"}, {id_of("b"), "b"}};
  EXPECT_THAT(data_plane.expected, testing::UnorderedElementsAreArray(all));
}

TEST_F(GroupCommands, NeedTheRightsToManageAndToProduce) {
  const protocol::Credentials ann{"ann", planted::user_password};
  create("t");
  create("dead");
  create("secret");
  ASSERT_EQ(
      code(protocol::CreateUser{
          the_admin, ann, false, {{"t:g", {.manage = true}}, {"dead", {.produce = true}}}, std::nullopt}),
      "ok");
  EXPECT_EQ(set("t", "g", {.max_attempts = 1}, ann), "ok");
  EXPECT_EQ(set("t", "other", {.max_attempts = 1}, ann), "unauthorized_access");
  EXPECT_EQ(aim("t", "dead", ann), "ok");
  EXPECT_EQ(aim("t", "secret", ann), "unauthorized_access");
  const std::string sentence = last_sentence;
  EXPECT_EQ(aim("t", "absent", ann), "unauthorized_access") << "does not tell that the topic does not exist";
  EXPECT_EQ(last_sentence.substr(last_sentence.find("needs")).size(),
            sentence.substr(sentence.find("needs")).size());
  EXPECT_EQ(code(protocol::ListDead{ann, name("t"), "other"}), "unauthorized_access");
  EXPECT_EQ(code(protocol::PurgeDead{ann, name("t"), ""}), "unauthorized_access");
}

TEST_F(GroupCommands, LettersAreGivenBackToTopicsThatTheAskerManages) {
  const protocol::Credentials ann{"ann", planted::user_password};
  create("dead");
  data_plane.sources_of_letters = {"orders", "secret"};
  ASSERT_EQ(
      code(protocol::CreateUser{
          the_admin, ann, false, {{"dead", {.manage = true}}, {"orders", {.manage = true}}}, std::nullopt}),
      "ok");
  const auto returned = [&](const protocol::Credentials& by, bool as_admin) {
    return std::get<protocol::OkReply>(ask(protocol::RetryDead{by, name("dead"), "", {}, false, as_admin}))
        .returned.value_or(protocol::ReturnedLetters());
  };
  EXPECT_EQ(returned(ann, false), (protocol::ReturnedLetters{.given_back = 1, .not_allowed = 1}));
  EXPECT_EQ(returned(the_admin, true), (protocol::ReturnedLetters{.given_back = 2}));
  EXPECT_EQ(data_plane.dead_wishes.size(), 2U);
}

TEST_F(GroupCommands, ATopicsOwnUserAimsAtTopicsThatItOwns) {
  const protocol::Credentials own{"own", planted::owner_password};
  create("t", protocol::BrokerType::queue, own);
  create("dead", protocol::BrokerType::queue, own);
  create("foreign");
  EXPECT_EQ(aim("t", "dead", own), "ok");
  EXPECT_EQ(aim("t", "foreign", own), "unauthorized_access");
}

TEST_F(GroupCommands, AreLimited) {
  create("t");
  EXPECT_EQ(set("t", "g", {.backoff_ms = {{60'001}}}), "invalid_request");
  EXPECT_THAT(last_sentence, testing::HasSubstr("60000"));
  for (const auto* group : {"a", "b", "c"}) EXPECT_EQ(set("t", group, {.max_attempts = 1}), "ok");
  EXPECT_EQ(set("t", "d", {.max_attempts = 1}), "limit_reached");
  EXPECT_EQ(set("t", "c", {.max_attempts = 2}), "ok");
}

TEST_F(GroupCommands, ListAndActOnDeadMessages) {
  create("t");
  const auto page_behind = [&](std::optional<std::uint64_t> after) {
    return std::get<protocol::DeadPage>(
        ask(protocol::ListDead{the_admin, name("t"), "default", {}, after, 2, true}));
  };
  EXPECT_EQ(page_behind(std::nullopt).messages.size(), 2U);
  EXPECT_EQ(page_behind(std::nullopt).continue_after, 1U);
  EXPECT_EQ(page_behind(1).messages.size(), 1U);
  EXPECT_EQ(page_behind(1).continue_after, std::nullopt);
  EXPECT_EQ(code(protocol::ListDead{the_admin, name("t"), "none", {}, {}, 2, true}), "group_not_found");
  const protocol::DeadFilter filter{.cause = protocol::DeadCause::rejected, .ranges = {{{1}, {4}}}};
  const auto count_of = [&](const protocol::Request& request) {
    const auto reply = std::get<protocol::OkReply>(ask(request));
    EXPECT_EQ(reply.unreadable, 2U);
    return reply.messages;
  };
  EXPECT_EQ(count_of(protocol::RetryDead{the_admin, name("t"), "default", filter, true, true}), 3U);
  EXPECT_EQ(count_of(protocol::RetryDead{the_admin, name("t"), "default", filter, false, true}), 3U);
  EXPECT_EQ(count_of(protocol::PurgeDead{the_admin, name("t"), "default", {}, true, true}), 3U);
  EXPECT_EQ(count_of(protocol::PurgeDead{the_admin, name("t"), "default", {}, false, true}), 3U);
  using What = DeadWish::What;
  std::vector<What> asked;
  for (const DeadWish& wish : data_plane.dead_wishes) asked.push_back(wish.what);
  EXPECT_THAT(asked, testing::ElementsAre(What::count, What::retry, What::count, What::purge));
  EXPECT_EQ(data_plane.dead_wishes.front().filter, filter);
}

}  // namespace
}  // namespace lightq::broker
