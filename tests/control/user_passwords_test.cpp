/// Tests of passwords that are stored: their users, the cost of hashing, and commands that arrive during the
/// computation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "control/user_operations_fixture.hpp"

#include "support/planted.hpp"

namespace lightq::broker {
namespace {

using protocol::Credentials;
using protocol::Reply;
using protocol::Request;
using test::name;
using test::run_until;
using testing::ElementsAre;

TEST_F(UserOperationsTest, AManagerCannotTellAKnownPasswordFromAnotherByItsWork) {
  create_topic("t");
  create_user({{"mine.*", {.manage = true}}});
  EXPECT_EQ(create_topic("mine.a", ann, {}), "ok");
  const auto work_of = [&](const std::string& topic, const Credentials& by, const Credentials& own) {
    const std::uint64_t before = authenticator.computations();
    EXPECT_EQ(create_topic(topic, by, own), "ok");
    return authenticator.computations() - before;
  };
  EXPECT_EQ(work_of("mine.guess", ann, {owner.user_id, "a guess"}), 1U);
  EXPECT_EQ(work_of("mine.right", ann, owner), 1U);
  EXPECT_EQ(work_of("quick", admin, owner), 0U) << "the administrator may know";
  const auto& state = catalogue->state();
  EXPECT_EQ(state.find("mine.right")->credential_id, state.find("t")->credential_id);
  EXPECT_NE(state.find("mine.guess")->credential_id, state.find("t")->credential_id);
}

TEST_F(UserOperationsTest, ATopicsOwnUserMayHaveTheNameAndPasswordOfADeletedUser) {
  create_user({{"*", {.produce = true}}});
  create_topic("first");
  EXPECT_EQ(join("first", ann), "ok") << "now the password is remembered";
  EXPECT_EQ(code(protocol::DeleteUser{admin, ann.user_id}), "ok");
  EXPECT_EQ(create_topic("t", admin, ann), "ok");
  EXPECT_EQ(join("t", ann), "ok");
  restart();
  EXPECT_EQ(join("t", ann), "ok");
}

TEST_F(UserOperationsTest, ACommandThatWaitsForAHashIsRefusedIfTheRightIsRevoked) {
  const Credentials eve{"eve", planted::other_password};
  ASSERT_EQ(code(protocol::CreateUser{admin, eve, true, {}, {}}), "ok");
  ASSERT_EQ(create_user({{"t*", {.manage = true}}}), "ok");
  // Her password is remembered from now on, and ann's after the next line.
  ASSERT_EQ(code(protocol::ListUsers{eve}), "ok");
  ASSERT_EQ(create_topic("t-first", ann, {}), "ok");
  std::vector<std::string> answers;
  const auto begin = [&](const Request& request) {
    handler->handle(request, [&](Reply got) {
      const auto* error = std::get_if<protocol::ErrorReply>(&got);
      answers.push_back(error == nullptr ? "ok" : std::string(to_word(error->code)));
    });
  };
  begin(protocol::CreateUser{eve, {"mallory", "mallory's"}, true, {}, {}});
  begin(protocol::SetPassword{eve, false, ann.user_id, {}, "eve's choice"});
  begin(protocol::CreateTopic{ann, name("t-second"), {}, {"own", planted::other_password}});
  EXPECT_EQ(code(protocol::DeleteUser{admin, eve.user_id}), "ok");
  EXPECT_EQ(revoke({"t*", {.manage = true}}), "ok");
  run_until(loop, [&] { return answers.size() == 3; });
  EXPECT_EQ(answers, std::vector<std::string>(3, "unauthorized_access"));
  EXPECT_EQ(catalogue->state().user("mallory"), nullptr);
  EXPECT_EQ(catalogue->state().find("t-second"), nullptr);
  EXPECT_EQ(code(protocol::Stats{ann, name("t-first")}), "unauthorized_access");
}

TEST_F(UserOperationsTest, OfTwoPasswordsThatACommandPermitsTheSecondIsTooLate) {
  ASSERT_EQ(create_user({{"t", {.produce = true}}}), "ok");
  create_topic("t");
  ASSERT_EQ(join("t", ann), "ok");
  std::vector<bool> good;
  for (const char* const next : {"one", "two"}) {
    handler->handle(protocol::SetPassword{ann, false, ann.user_id, {}, next},
                    [&](Reply got) { good.push_back(!std::holds_alternative<protocol::ErrorReply>(got)); });
  }
  run_until(loop, [&] { return good.size() == 2; });
  EXPECT_EQ(std::count(good.begin(), good.end(), true), 1);
}

TEST_F(UserOperationsTest, HashingForOneSourceIsBounded) {
  create_user({{"mine.*", {.manage = true}}});
  create_topic("mine.t", ann, owner);
  int busy = 0;
  std::size_t answered = 0;
  constexpr std::size_t each = limits::logins_waiting_slowed_max;
  for (std::size_t i = 0; i < each; ++i) {
    const std::string password = planted::new_password + std::to_string(i);
    const std::vector<Request> asked = {
        protocol::SetPassword{ann, false, ann.user_id, {}, password},
        protocol::SetPassword{ann, true, {}, name("mine.t"), password},
        protocol::CreateTopic{
            ann, name("mine." + std::to_string(i)), {}, {"o" + std::to_string(i), password}}};
    for (const Request& request : asked) {
      handler->handle(request, [&](const Reply& reply) {
        ++answered;
        const auto* error = std::get_if<protocol::ErrorReply>(&reply);
        if (error != nullptr && error->code == ErrorCode::busy) ++busy;
      });
    }
  }
  EXPECT_EQ(busy, 2 * static_cast<int>(each) - 1) << "beyond those that wait, and one that is computed";
  EXPECT_EQ(authenticator.throttled(), 2 * each - 1);
  run_until(loop, [&] { return answered == 3 * each; });
  EXPECT_EQ(answered, 3 * each);
  EXPECT_EQ(create_topic("later", admin, {"later", planted::other_password}), "ok")
      << "what is answered waits no more";
}

TEST_F(UserOperationsTest, ANewPasswordIsANewGeneration) {
  create_topic("t");
  create_user({{"t", {.produce = true}}});
  EXPECT_EQ(join("t", ann), "ok");
  EXPECT_EQ(set_password(ann, false, "ann", planted::new_password), "ok");
  EXPECT_EQ(user()->generation, 2U);
  EXPECT_EQ(data_plane.users.at(user()->id).generation, 2U);
  EXPECT_EQ(join("t", ann), "unauthorized_access") << "though it was remembered";
  EXPECT_EQ(join("t", {"ann", planted::new_password}), "ok");
  EXPECT_EQ(set_password(ann, false, "ann", "a third"), "unauthorized_access");
  EXPECT_EQ(set_password(admin, true, "ann", "a third"), "ok");
  EXPECT_EQ(join("t", {"ann", "a third"}), "ok");
  EXPECT_EQ(set_password(admin, true, "nobody", "pw"), "user_not_found");
  restart();
  EXPECT_EQ(user()->generation, 3U);
  EXPECT_EQ(join("t", {"ann", "a third"}), "ok");
  EXPECT_EQ(join("t", ann), "unauthorized_access");
}

TEST_F(UserOperationsTest, ATopicsOwnUserCanGetANewPassword) {
  create_topic("t");
  create_topic("other");
  const auto set = [&](const Credentials& by, bool as_admin, const std::string& user, const std::string& to) {
    return code(protocol::SetPassword{by, as_admin, user, name("t"), to});
  };
  EXPECT_EQ(join("t", owner), "ok");
  EXPECT_EQ(set({"owner", "wrong"}, false, "owner", "new"), "unauthorized_access");
  EXPECT_EQ(set(owner, false, "owner", "new"), "ok");
  EXPECT_EQ(join("t", owner), "unauthorized_access");
  EXPECT_EQ(join("t", {"owner", "new"}), "ok");
  EXPECT_EQ(join("other", owner), "ok") << "only of the one topic";
  const auto topic = catalogue->state().find("t");
  EXPECT_EQ(data_plane.owners.at(topic->definition.id.value), topic->credential_id);
  EXPECT_EQ(set(admin, true, "somebody", "newer"), "invalid_request");
  EXPECT_EQ(set(admin, true, "", "newer"), "ok");
  EXPECT_EQ(join("t", {"owner", "newer"}), "ok");
  create_topic("nobodys", admin, {});
  EXPECT_EQ(code(protocol::SetPassword{admin, true, "", name("nobodys"), "pw"}), "invalid_request");
}

TEST_F(UserOperationsTest, ATopicNeverGetsItsOldCredentialAgain) {
  create_topic("t");
  create_topic("other");
  std::set<std::uint64_t> had;
  const auto is_new = [&] { return had.insert(catalogue->state().find("t")->credential_id).second; };
  EXPECT_TRUE(is_new());
  EXPECT_EQ(*had.begin(), catalogue->state().find("other")->credential_id);
  const auto set = [&](const Credentials& by, bool as_admin, const Secret& to) {
    return code(protocol::SetPassword{by, as_admin, {}, name("t"), to});
  };
  const auto comes_back = [&] {
    EXPECT_EQ(set(admin, true, "the second"), "ok");
    EXPECT_TRUE(is_new());
    EXPECT_EQ(set(admin, true, owner.password), "ok") << "which the other topic has kept";
    EXPECT_TRUE(is_new());
    EXPECT_EQ(set({owner.user_id, owner.password}, false, owner.password), "ok") << "no other one";
    EXPECT_TRUE(is_new());
    EXPECT_EQ(data_plane.owners.at(catalogue->state().find("t")->definition.id.value),
              catalogue->state().find("t")->credential_id);
    EXPECT_EQ(join("t", owner), "ok");
    EXPECT_EQ(join("other", owner), "ok");
  };
  comes_back();
  restart();  // forgets the credentials that no topic uses
  comes_back();
  const auto compaction = catalogue->begin_compaction();
  compaction->run({});
  catalogue->finish_compaction(*compaction);
  restart();
  comes_back();
  EXPECT_EQ(had.size(), 10U);
}

}  // namespace
}  // namespace lightq::broker
