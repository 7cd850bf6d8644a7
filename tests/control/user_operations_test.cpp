/// Tests of operations on users and their rights, and of the rights that each command needs, through the
/// command handler.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <lightq/protocol/json.hpp>

#include "control/user_operations_fixture.hpp"

#include "support/planted.hpp"

namespace lightq::broker {
namespace {

using protocol::Credentials;
using protocol::JoinType;
using protocol::Reply;
using protocol::Request;
using protocol::Rights;
using protocol::TopicRight;
using test::name;
using test::run_until;
using testing::ElementsAre;

/// Sums the work that a request is charged for.
class WorkCount final : public RequestCourse {
 public:
  void stand_aside(bool) override {}
  std::optional<Error> asked_by(const AskerId&) override { return std::nullopt; }
  void worked(std::uint64_t bytes) override { work += bytes; }

  std::uint64_t work = 0;
};

TEST_F(UserOperationsTest, AListWithoutVisibleTopicsIsChargedForTheExaminedOnes) {
  constexpr std::uint64_t topics = 20;
  constexpr std::uint64_t patterns = 10;
  for (std::uint64_t i = 0; i < topics; ++i) ASSERT_EQ(create_topic("t" + std::to_string(i)), "ok");
  std::vector<TopicRight> rights;
  for (std::uint64_t i = 0; i < patterns; ++i) {
    TopicRight right;
    right.topic = "none" + std::to_string(i) + "*";
    right.rights.consume = true;
    rights.push_back(right);
  }
  ASSERT_EQ(create_user(rights), "ok");
  const auto course = std::make_shared<WorkCount>();
  std::optional<Reply> reply;
  handler->handle(protocol::ListTopics{ann}, Answer([&](Reply got) { reply = std::move(got); }, {}, course));
  test::run_until(loop, [&] { return reply.has_value(); });
  ASSERT_TRUE(reply && std::holds_alternative<protocol::ListReply>(*reply));
  EXPECT_TRUE(std::get<protocol::ListReply>(*reply).topics.empty());
  EXPECT_GE(course->work, topics * patterns);
}

TEST_F(UserOperationsTest, AUserIsDurableAndEverywhereWhenItIsAnswered) {
  EXPECT_EQ(create_user({{"t*", {.produce = true}}}), "ok");
  EXPECT_FALSE(catalogue->unflushed());
  ASSERT_EQ(data_plane.users.size(), 1U);
  EXPECT_EQ(data_plane.users.begin()->second.rights, user()->rights);
  EXPECT_EQ(create_user({}), "user_already_exists");
  restart();
  ASSERT_EQ(data_plane.users.size(), 1U) << "before the topics are there";
  create_topic("t");
  EXPECT_EQ(join("t", ann), "ok");
}

TEST_F(UserOperationsTest, ATicketIsItsUsers) {
  create_topic("t");
  create_user({{"t", {.produce = true}}});
  EXPECT_EQ(join("t", ann), "ok");
  EXPECT_EQ(join("t", owner), "ok");
  EXPECT_EQ(join("t", admin), "ok");
  const auto own = catalogue->state().find("t")->credential_id;
  EXPECT_THAT(data_plane.holders,
              ElementsAre(TicketHolder{user()->id, 1}, TicketHolder{own, 0}, TicketHolder{}));
  EXPECT_EQ(data_plane.owners.at(catalogue->state().find("t")->definition.id.value), own);
}

TEST_F(UserOperationsTest, EachCommandNeedsItsRight) {
  create_topic("t");
  create_user({});
  const TopicName t = name("t");
  const std::vector<std::pair<Request, Rights>> table = {
      {protocol::Join{ann, t, JoinType::push}, {.produce = true}},
      {protocol::Join{ann, t, JoinType::pub}, {.produce = true}},
      {protocol::Join{ann, t, JoinType::pull}, {.consume = true}},
      {protocol::Join{ann, t, JoinType::sub}, {.consume = true}},
      {protocol::Stats{ann, t}, {.produce = true, .consume = true, .manage = true}},
      {protocol::DeleteGroup{ann, t, "default"}, {.manage = true}},
      {protocol::Pause{ann, t, {}}, {.manage = true}},
      {protocol::Resume{ann, t, {}}, {.manage = true}},
      {protocol::Purge{ann, t, {}}, {.manage = true}},
      {protocol::SetPassword{ann, true, {}, t, "another"}, {.manage = true}},
      {protocol::CreateTopic{ann, t, {}, {}}, {.manage = true}},  // second to last, because the topic exists
      {protocol::DeleteTopic{ann, name("none")}, {.manage = true}}};
  for (const Rights has :
       {Rights{}, Rights{.produce = true}, Rights{.consume = true}, Rights{.manage = true}}) {
    const TopicRight right{"*", has};
    if (has.any()) {
      ASSERT_EQ(grant(right), "ok");
    }
    for (const auto& [request, needed] : table) {
      const bool may =
          (has.produce && needed.produce) || (has.consume && needed.consume) || (has.manage && needed.manage);
      EXPECT_EQ(code(request) != "unauthorized_access", may) << protocol::to_json(request);
    }
    if (has.any()) {
      ASSERT_EQ(revoke(right), "ok");
    }
  }
}

TEST_F(UserOperationsTest, OnlyAnAdministratorAsksOfUsersAndOfTheBroker) {
  create_user({{"*", {.produce = true, .consume = true, .manage = true}}});
  const std::vector<Request> requests = {protocol::CreateUser{ann, {"eve", "pw"}, false, {}, {}},
                                         protocol::DeleteUser{ann, "ann"},
                                         protocol::SetPassword{ann, true, "bob", {}, "pw"},
                                         protocol::GrantRights{ann, "ann", {"*", {.produce = true}}},
                                         protocol::RevokeRights{ann, "ann", {"*", {.produce = true}}},
                                         protocol::ListUsers{ann},
                                         protocol::Stats{ann, std::nullopt, true}};
  for (const Request& request : requests) EXPECT_EQ(code(request), "unauthorized_access");
  const Credentials chief{"chief", planted::other_password};
  EXPECT_EQ(code(protocol::CreateUser{admin, chief, true, {}, {}}), "ok");
  EXPECT_EQ(code(protocol::ListUsers{chief}), "ok");
  EXPECT_EQ(code(protocol::Stats{chief, std::nullopt, true}), "ok");
  EXPECT_EQ(create_topic("t", chief), "ok");
  EXPECT_EQ(join("t", chief, JoinType::pull), "ok");
  EXPECT_EQ(join("t", chief, JoinType::pull, true), "ok") << "in the administrator's fields";
  EXPECT_EQ(code(protocol::DeleteUser{chief, "ann"}), "ok");
  EXPECT_EQ(code(protocol::DeleteUser{chief, "ann"}), "user_not_found");
}

TEST_F(UserOperationsTest, AUserGetsTheStatisticsOfItsTopics) {
  for (const auto* topic : {"a1", "a2", "b"}) create_topic(topic, admin, {});
  create_user({{"a*", {.produce = true}}});
  const auto names = [&](const Credentials& by) {
    std::vector<std::string> all;
    const auto reply = ask(protocol::StatsAll{by});
    for (const auto& stats : std::get<protocol::StatsAllReply>(reply).topics) all.push_back(stats.topic);
    return all;
  };
  EXPECT_THAT(names(ann), ElementsAre("a1", "a2"));
  EXPECT_THAT(names(admin), ElementsAre("a1", "a2", "b"));
  const auto page = ask(protocol::StatsAll{admin, name("a1"), 1});
  EXPECT_EQ(std::get<protocol::StatsAllReply>(page).continue_after, "a2");
  for (const Credentials& wrong : {Credentials{"ann", "guess"}, Credentials{"nobody", "guess"}})
    EXPECT_EQ(code(protocol::StatsAll{wrong}), "unauthorized_access");
}

TEST_F(UserOperationsTest, NamesMeanOnePersonEach) {
  create_topic("t");
  EXPECT_EQ(create_user({}, admin), "user_already_exists");
  EXPECT_EQ(create_user({}, owner), "user_already_exists") << "the topic's own user";
  const auto refused = ask(protocol::CreateUser{admin, owner, false, {}, {}});
  EXPECT_THAT(std::get<protocol::ErrorReply>(refused).description,
              testing::HasSubstr("topic t has its own user"));
  EXPECT_EQ(create_user({}), "ok");
  EXPECT_EQ(create_topic("other", admin, ann), "user_already_exists");
  EXPECT_EQ(catalogue->state().find("other"), nullptr);
  EXPECT_EQ(code(protocol::DeleteTopic{admin, name("t")}), "ok");
  EXPECT_EQ(create_user({}, owner), "ok");
}

TEST_F(UserOperationsTest, AUserSeesTheTopicsItHasARightOn) {
  create_topic("mine.a");
  create_topic("theirs");
  create_topic("mine.b");
  create_user({{"mine.*", {.consume = true}}});
  const auto reply = ask(protocol::ListTopics{ann});
  std::vector<std::string> topics;
  for (const auto& listing : std::get<protocol::ListReply>(reply).topics) topics.push_back(listing.topic);
  EXPECT_THAT(topics, ElementsAre("mine.a", "mine.b"));
}

TEST_F(UserOperationsTest, AManagerOfAPatternCreatesMatchingTopics) {
  create_user({{"mine.*", {.manage = true}}});
  EXPECT_EQ(create_topic("mine.a", ann, {}), "ok");
  EXPECT_EQ(create_topic("mine", ann, {}), "unauthorized_access");
  EXPECT_EQ(code(protocol::DeleteTopic{ann, name("mine.a")}), "ok");
  EXPECT_EQ(code(protocol::DeleteTopic{ann, name("mine.a")}), "topic_not_found");
}

TEST_F(UserOperationsTest, ALeaveReachesTheDataPlaneWithTheRightsOnTheTopic) {
  create_topic("t");
  create_user({{"t", {.produce = true}}});
  const auto leaver = [&](const Credentials& by, bool as_admin = false) {
    EXPECT_EQ(code(protocol::Leave{by, name("t"), "tcp://h:1", as_admin}), "ok");
    return data_plane.leavers.back();
  };
  EXPECT_EQ(leaver(ann), (Leaver{.user = user()->id, .manages = false, .produces = true}));
  grant({"*", {.manage = true}});
  revoke({"t", {.produce = true}});
  EXPECT_EQ(leaver(ann), (Leaver{.user = user()->id, .manages = true, .produces = false}));
  const auto own = catalogue->state().find("t")->credential_id;
  EXPECT_EQ(leaver(owner), (Leaver{.user = own, .manages = true, .produces = true}));
  EXPECT_EQ(leaver(admin, true), (Leaver{.user = 0, .manages = true, .produces = true}));
  revoke({"*", {.manage = true}});
  EXPECT_EQ(code(protocol::Leave{ann, name("t"), "tcp://h:1"}), "unauthorized_access") << "no right at all";
  const std::uint64_t computed = authenticator.computations();
  for (const char* topic : {"t", "none"}) {
    for (const char* uri : {"tcp://h:1", "tcp://unknown:1"}) {
      const Credentials wrong{"owner", std::string("guess ") + topic + uri};
      EXPECT_EQ(code(protocol::Leave{wrong, name(topic), uri}), "unauthorized_access");
    }
  }
  EXPECT_EQ(authenticator.computations() - computed, 4U) << "the same work for each";
}

TEST_F(UserOperationsTest, AnOpenTopicsMessagesArePublicButItsManagementIsNot) {
  protocol::TopicSettings settings;
  settings.open = true;
  const TopicName t = name("t");
  ASSERT_EQ(code(protocol::CreateTopic{admin, t, settings, {}}), "ok");
  EXPECT_EQ(join("t", {}), "ok");
  EXPECT_EQ(code(protocol::Stats{{}, t}), "ok");
  for (const Request& request :
       std::vector<Request>{protocol::Purge{{}, t, {}}, protocol::Pause{{}, t, {}},
                            protocol::Resume{{}, t, {}}, protocol::DeleteGroup{{}, t, "default"}})
    EXPECT_EQ(code(request), "unauthorized_access") << protocol::to_json(request);
  EXPECT_EQ(code(protocol::Purge{admin, t, {}, true}), "ok");
}

TEST_F(UserOperationsTest, RightsComeAndGoByTheirPattern) {
  create_user({{"t", {.produce = true}}, {"t", {.consume = true}}});
  EXPECT_THAT(user()->rights, ElementsAre(TopicRight{"t", {.produce = true, .consume = true}}));
  EXPECT_EQ(grant({"u*", {.manage = true}}), "ok");
  EXPECT_EQ(revoke({"u", {.manage = true}}), "invalid_request") << "another pattern";
  EXPECT_EQ(revoke({"u*", {.produce = true}}), "invalid_request") << "it has not got that";
  EXPECT_EQ(revoke({"t", {.produce = true, .manage = true}}), "ok");
  EXPECT_EQ(revoke({"u*", {.manage = true}}), "ok");
  EXPECT_THAT(user()->rights, ElementsAre(TopicRight{"t", {.consume = true}}));
  EXPECT_EQ(data_plane.users.at(user()->id).rights, user()->rights);
  EXPECT_EQ(code(protocol::GrantRights{admin, "nobody", {"t", {.produce = true}}}), "user_not_found");
  EXPECT_EQ(code(protocol::RevokeRights{admin, "nobody", {"t", {.produce = true}}}), "user_not_found");
}

TEST_F(UserOperationsTest, AUserHasSoManyPatternsAtMost) {
  std::vector<TopicRight> rights;
  for (std::size_t i = 0; i < limits::rights_per_user_max; ++i)
    rights.push_back({"t" + std::to_string(i), {.produce = true}});
  EXPECT_EQ(create_user(rights), "ok");
  EXPECT_EQ(grant({"one-more", {.produce = true}}), "limit_reached");
  EXPECT_EQ(grant({"t7", {.consume = true}}), "ok");
}

TEST_F(UserOperationsTest, AUserWithoutTheRightLearnsNothingAndCostsOneComputationEach) {
  create_topic("t");
  create_user({{"mine", {.produce = true}}});
  const auto cost = [&](const std::string& topic, const Credentials& by) {
    const auto before = authenticator.computations();
    EXPECT_EQ(join(topic, by), "unauthorized_access");
    return authenticator.computations() - before;
  };
  EXPECT_EQ(cost("t", {"ann", "wrong"}), 1U) << "a wrong password";
  EXPECT_EQ(cost("none", {"ann", "wrong"}), 1U) << "and no such topic";
  EXPECT_EQ(cost("t", {"eve", "pw"}), 1U) << "nobody";
  EXPECT_EQ(cost("none", {"eve", "pw"}), 1U);
  EXPECT_EQ(cost("t", {"owner", "wrong"}), 1U) << "the topic's own user";
  EXPECT_EQ(cost("none", {"owner", "wrong"}), 1U);
  EXPECT_EQ(cost("t", ann), 1U) << "no right";
  EXPECT_EQ(cost("none", ann), 0U) << "by now it is remembered; that there is no such topic is not told";
  EXPECT_EQ(join("mine", ann), "topic_not_found") << "who has a right on the name may know";
}

TEST_F(UserOperationsTest, TwoConcurrentGuessesRevealNothing) {
  create_topic("t");
  create_topic("theirs", admin, {"another owner", "pw"});
  create_topic("nobodys", admin, {});
  create_user({{"t", {.produce = true}}});
  int guesses = 0;
  // Each pair of requests comes from its own source and guesses the same password. The cost may depend only
  // on the content of the requests.
  const auto cost = [&](const std::string& who, std::size_t first, std::size_t second) {
    const Credentials guess{who, "guess " + std::to_string(++guesses)};
    const std::vector<Request> requests = {
        protocol::Stats{guess, name("t")},        protocol::Stats{guess, name("theirs")},
        protocol::Stats{guess, name("nobodys")},  protocol::Stats{guess, name("none")},
        protocol::Stats{guess, name("none.too")}, protocol::ListUsers{guess}};
    const auto before = authenticator.computations();
    for (const std::size_t each : {first, second})
      handler->handle(requests[each], {[](const Reply&) {}, RequestSource{std::to_string(guesses), {}}});
    // The replies are delayed for much longer.
    run_until(loop, [&] { return !authenticator.is_computing(); });
    return authenticator.computations() - before;
  };
  for (const std::string& who :
       {owner.user_id, std::string("another owner"), ann.user_id, admin.user_id, std::string("nobody")}) {
    for (std::size_t first = 0; first < 6; ++first) {
      for (std::size_t second = first; second < 6; ++second)
        EXPECT_EQ(cost(who, first, second), first == second ? 1U : 2U)
            << who << ": " << first << ", " << second;
    }
  }
}

TEST_F(UserOperationsTest, AUserThatIsChangedDuringItsPasswordCheckIsRefused) {
  create_topic("t");
  create_user({{"t", {.produce = true}}});
  std::optional<Reply> joined;
  handler->handle(protocol::Join{ann, name("t"), JoinType::push},
                  [&](Reply got) { joined = std::move(got); });
  ASSERT_FALSE(joined.has_value()) << "it was not remembered yet";
  ASSERT_TRUE(catalogue->remove_user(user()->id).ok());
  run_until(loop, [&] { return joined.has_value(); });
  const auto* const error = std::get_if<protocol::ErrorReply>(&*joined);
  ASSERT_NE(error, nullptr);
  EXPECT_EQ(error->code, ErrorCode::unauthorized_access);
}

TEST_F(UserOperationsTest, AProcessOfAUsersUidNeedsNoPassword) {
  create_topic("t");
  const Credentials by_uid{"robot", ""};
  EXPECT_EQ(code(protocol::CreateUser{admin, by_uid, false, {{"t", {.produce = true}}}, 1000}), "ok");
  EXPECT_EQ(code(protocol::CreateUser{admin, {"other", "pw"}, false, {}, 1000}), "user_already_exists");
  const auto asked_by = [&](std::optional<std::uint32_t> uid, const Credentials& given, JoinType type) {
    std::optional<Reply> reply;
    handler->handle(protocol::Join{given, name("t"), type},
                    Answer([&](Reply got) { reply = std::move(got); }, {.key = "u", .uid = uid}));
    run_until(loop, [&] { return reply.has_value(); });
    const auto* error = std::get_if<protocol::ErrorReply>(&*reply);
    return error == nullptr ? "ok" : std::string(to_word(error->code));
  };
  EXPECT_EQ(asked_by(1000, {}, JoinType::push), "ok");
  EXPECT_EQ(data_plane.holders.back(), (TicketHolder{catalogue->state().user("robot")->id, 1}));
  EXPECT_EQ(asked_by(1000, {}, JoinType::pull), "unauthorized_access") << "no right";
  EXPECT_EQ(asked_by(1001, {}, JoinType::push), "unauthorized_access");
  EXPECT_EQ(asked_by({}, {}, JoinType::push), "unauthorized_access") << "over TCP";
  EXPECT_EQ(asked_by(1000, {"robot", "guess"}, JoinType::push), "unauthorized_access")
      << "it has no password";
  EXPECT_EQ(asked_by(1000, {"owner", "wrong"}, JoinType::push), "unauthorized_access") << "credentials count";
  EXPECT_EQ(set_password(admin, true, "robot", planted::new_password), "ok");
  EXPECT_EQ(join("t", {"robot", planted::new_password}), "ok");
  restart();
  EXPECT_EQ(asked_by(1000, {}, JoinType::push), "ok");
  EXPECT_EQ(code(protocol::DeleteUser{admin, "robot"}), "ok");
  EXPECT_EQ(asked_by(1000, {}, JoinType::push), "unauthorized_access");
}

TEST_F(UserOperationsTest, TheListContainsRightsAndNoHashes) {
  create_user({{"t", {.produce = true}}});
  const Reply reply = ask(protocol::ListUsers{admin});
  const auto& users = std::get<protocol::UserListReply>(reply).users;
  ASSERT_EQ(users.size(), 1U);
  EXPECT_EQ(users[0].user_id, "ann");
  EXPECT_EQ(users[0].rights, user()->rights);
  EXPECT_EQ(protocol::to_json(reply).find("argon2"), std::string::npos);
}

/// Returns every command with credentials, asked by `by` about a topic and a user.
std::vector<Request> all_commands(const Credentials& by, const std::string& of_topic,
                                  const std::string& of_user) {
  const TopicName t = name(of_topic);
  const TopicRight right{"*", {.produce = true}};
  return {
      protocol::CreateTopic{by, t, {}, {of_user, planted::new_password}},
      protocol::DeleteTopic{by, t},
      protocol::Join{by, t, JoinType::push},
      protocol::Join{by, t, JoinType::pull, protocol::ConnectionType::zmq, protocol::Transport::tcp, true},
      protocol::Leave{by, t, "tcp://h:1"},
      protocol::Leave{by, t, "tcp://unknown:1", true},
      protocol::Stats{by, t},
      protocol::Stats{by, {}, true},
      protocol::DeleteGroup{by, t, "default"},
      protocol::Pause{by, t, {}},
      protocol::Resume{by, t, "default"},
      protocol::Purge{by, t, {}},
      protocol::CreateUser{by, {of_user, planted::new_password}, false, {}, {}},
      protocol::DeleteUser{by, of_user},
      protocol::SetPassword{by, true, of_user, {}, "another"},
      protocol::SetPassword{by, true, {}, t, "another"},
      protocol::GrantRights{by, of_user, right},
      protocol::RevokeRights{by, of_user, right},
      protocol::ListUsers{by},
      protocol::Reload{by}};
}

TEST_F(UserOperationsTest, EveryCommandChecksCredentialsFirst) {
  create_topic("t");
  create_user({{"other", {.produce = true}}});
  EXPECT_EQ(join("other", ann), "topic_not_found") << "the password is remembered";
  create_user({}, {"eve", planted::other_password});
  std::size_t asked = 0;
  std::vector<std::string> answers;
  const auto keep = [&](const Reply& reply) { answers.push_back(protocol::to_json(reply)); };
  const auto ask_all = [&](const std::string& who, const Secret& password, std::uint64_t work) {
    for (const auto& [topic, user] : {std::pair("t", "eve"), std::pair("none", "nobody")}) {
      for (std::size_t i = 0; i < all_commands({}, topic, user).size(); ++i) {
        // Uses another source for each request, because a source with many failures is slowed down.
        const std::string number = std::to_string(++asked);
        const Request request =
            all_commands({who, work == 0 ? password : Secret(password.expose() + number)}, topic, user)[i];
        const std::uint64_t before = authenticator.computations();
        handler->handle(request, {keep, RequestSource{number, {}}});
        run_until(loop, [&] { return !authenticator.is_computing(); });
        EXPECT_EQ(authenticator.computations() - before, work)
            << protocol::command_of(request) << " of " << topic << " and " << user << " by " << who;
      }
    }
    run_until(loop, [&] { return answers.size() == asked; });
  };
  for (const std::string& who : {admin.user_id, owner.user_id, ann.user_id, std::string("nobody")})
    ask_all(who, "a guess", 1);
  for (const std::string& answer : answers)
    EXPECT_THAT(answer,
                testing::HasSubstr(R"("code":"unauthorized_access","description":"unauthorized_access")"));
  // A user with the right password learns which grant is missing. The text is the same for topics and users
  // that do not exist.
  answers.clear();
  asked = 0;
  ask_all(ann.user_id, ann.password, 0);
  for (const std::string& answer : answers) {
    EXPECT_THAT(answer, testing::HasSubstr(R"("code":"unauthorized_access","description":"user 'ann' )"));
    EXPECT_THAT(answer, testing::AnyOf(testing::HasSubstr("is not an administrator"),
                                       testing::HasSubstr("lightq user grant ann --")));
  }
  for (std::size_t i = 0; i < answers.size() / 2; ++i) {
    std::string of_none = answers[answers.size() / 2 + i];
    for (auto at = of_none.find("none"); at != std::string::npos; at = of_none.find("none", at))
      of_none.replace(at, 4, "t");
    EXPECT_EQ(answers[i], of_none);
  }
}

TEST_F(UserOperationsTest, ARefusedUserHearsWhichRightIsMissingAndHowToGetIt) {
  create_topic("orders");
  create_user({{"orders", {.consume = true}}});
  const auto told = [&](const Request& request) {
    return std::get<protocol::ErrorReply>(ask(request)).description;
  };
  EXPECT_EQ(told(protocol::Join{ann, name("orders"), JoinType::push}),
            "user 'ann' lacks the right 'produce' on topic 'orders'; an administrator can grant it:  "
            "lightq user grant ann --produce orders");
  EXPECT_EQ(told(protocol::Purge{ann, name("orders"), {}}),
            "user 'ann' lacks the right 'manage' on topic 'orders'; an administrator can grant it:  "
            "lightq user grant ann --manage orders");
  EXPECT_EQ(told(protocol::Purge{ann, name("orders"), "billing"}),
            "user 'ann' lacks the right 'manage' on group 'billing' of topic 'orders'; an administrator can "
            "grant it:  lightq user grant ann --manage orders:billing");
  EXPECT_EQ(told(protocol::Stats{ann, name("other")}),
            "user 'ann' has no right on topic 'other'; an administrator can grant it:  "
            "lightq user grant ann --consume other");
  EXPECT_EQ(told(protocol::Stats{ann, {}, true}),
            "user 'ann' is not an administrator, and this command needs one");
  const Credentials odd{"$(reboot) :x", planted::other_password};
  create_user({}, odd);
  EXPECT_EQ(
      told(protocol::Join{odd, name("orders"), JoinType::push}),
      "user '$(reboot) :...' lacks the right 'produce' on topic 'orders'; an administrator can grant it:  "
      "lightq user grant NAME --produce orders");
}

}  // namespace
}  // namespace lightq::broker
