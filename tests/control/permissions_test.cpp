/// Tests of control/rights/permissions: the asker that each kind of credentials leads to.
#include "control/rights/permissions.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "control/user_operations_fixture.hpp"

namespace lightq::broker {
namespace {

using protocol::Right;
using test::name;

/// The course of a request from an asker that has too many requests.
class TooMany final : public RequestCourse {
 public:
  void stand_aside(bool) override {}
  std::optional<Error> asked_by(const AskerId& asker) override {
    asked = asker;
    return Error{ErrorCode::busy, "too many"};
  }
  void worked(std::uint64_t) override {}

  std::optional<AskerId> asked;
};

class PermissionsTest : public UserOperationsTest {
 protected:
  static constexpr std::uint32_t generation_of_admin = 7;

  /// Calls a check, and returns its result.
  template <typename Check>
  Result<Asker> result_of(Check check) {
    std::optional<Result<Asker>> result;
    check([&](const Result<Asker>& asker) { result = asker; });
    test::run_until(loop, [&] { return result.has_value(); });
    return result.value_or(Error{ErrorCode::internal, "no result"});
  }
  Result<Asker> on_topic(const std::string& topic, Right right, const Credentials& given,
                         const RequestContext& request = RequestContext(RequestSource{"source", {}})) {
    return result_of([&](const Permissions::Then& then) {
      permissions.permit_topic(name(topic), {right}, given, false, request, then);
    });
  }
  void create_open_topic(const std::string& topic) {
    protocol::TopicSettings settings;
    settings.open = true;
    ASSERT_EQ(code(protocol::CreateTopic{admin, name(topic), settings, {}}), "ok");
  }
  static std::string code_of(const Result<Asker>& result) {
    return result ? "ok" : std::string(to_word(result.error().code));
  }

  Permissions permissions{*catalogue, authenticator, generation_of_admin};
};

TEST_F(PermissionsTest, TheAdministratorIsAnAskerWithTheGenerationOfItsTickets) {
  const auto asker = on_topic("none", Right::manage, admin);
  ASSERT_TRUE(asker) << asker.error().text();
  EXPECT_TRUE(asker->is_administrator());
  EXPECT_EQ(asker->holder, (TicketHolder{0, generation_of_admin}));
  EXPECT_EQ(asker->source, "source");
  EXPECT_EQ(asker->id(), AskerId(0));
  EXPECT_TRUE(permissions.rights().is_admin(*asker));
}

TEST_F(PermissionsTest, AUserIsAnAskerUntilItsPasswordChanges) {
  ASSERT_EQ(create_user({{"t", {.manage = true}}}), "ok");
  const auto asker = on_topic("t", Right::manage, ann);
  ASSERT_TRUE(asker) << asker.error().text();
  EXPECT_EQ(asker->kind, Asker::Kind::user);
  EXPECT_EQ(asker->holder, (TicketHolder{user()->id, user()->generation}));
  EXPECT_TRUE(permissions.rights().manages(*asker, "t"));
  EXPECT_FALSE(permissions.rights().manages(*asker, "other"));
  EXPECT_FALSE(permissions.rights().is_admin(*asker));
  EXPECT_EQ(set_password(admin, true, ann.user_id, planted::other_password), "ok");
  EXPECT_EQ(permissions.rights().user_of(*asker), nullptr);
  EXPECT_FALSE(permissions.rights().manages(*asker, "t"));
}

TEST_F(PermissionsTest, ATopicsOwnUserIsAnAskerWithoutRightsOfAUser) {
  ASSERT_EQ(create_topic("t"), "ok");
  const auto asker = on_topic("t", Right::consume, owner);
  ASSERT_TRUE(asker) << asker.error().text();
  EXPECT_EQ(asker->kind, Asker::Kind::topic_user);
  EXPECT_EQ(asker->holder, (TicketHolder{catalogue->state().find("t")->credential_id, 0}));
  EXPECT_EQ(permissions.rights().user_of(*asker), nullptr);
  EXPECT_FALSE(permissions.rights().manages(*asker, "t")) << "only Permissions knows that it may";
}

TEST_F(PermissionsTest, AClientOfAnOpenTopicIsAnonymousAndMayNotManageIt) {
  create_open_topic("t");
  const auto asker = on_topic("t", Right::consume, {});
  ASSERT_TRUE(asker) << asker.error().text();
  EXPECT_EQ(asker->kind, Asker::Kind::anonymous);
  EXPECT_EQ(asker->id(), std::nullopt);
  EXPECT_FALSE(permissions.rights().is_admin(*asker));
  EXPECT_FALSE(permissions.rights().manages(*asker, "t"));
  EXPECT_EQ(code_of(on_topic("t", Right::manage, {})), "unauthorized_access");
}

TEST_F(PermissionsTest, AUserThatIsDeletedDuringTheCheckIsRefused) {
  ASSERT_EQ(create_user({{"t", {.manage = true}}}), "ok");
  const auto refusals = authenticator.failures();
  const auto asker = result_of([&](const Permissions::Then& then) {
    permissions.permit_manager(name("t"), ann, RequestContext(), then);
    ASSERT_TRUE(catalogue->remove_user(user()->id));
  });
  EXPECT_EQ(code_of(asker), "unauthorized_access");
  EXPECT_EQ(authenticator.failures(), refusals + 1);
}

TEST_F(PermissionsTest, AnAskerWithTooManyRequestsReceivesThatError) {
  ASSERT_EQ(create_user({{"*", {.consume = true}}}), "ok");
  create_open_topic("t");
  const auto course = std::make_shared<TooMany>();
  const RequestContext request({}, course);
  EXPECT_EQ(code_of(on_topic("other", Right::consume, ann, request)), "busy");
  ASSERT_TRUE(course->asked);
  EXPECT_EQ(*course->asked, AskerId(user()->id));
  EXPECT_EQ(code_of(on_topic("t", Right::consume, {}, request)), "busy");
  EXPECT_EQ(*course->asked, AskerId());
}

TEST_F(PermissionsTest, AnAskerMayActForItselfAndAnAdministratorForEveryUser) {
  ASSERT_EQ(create_user({}), "ok");
  const auto acts_for = [&](const std::string& user_id, const Credentials& given) {
    return code_of(result_of([&](const Permissions::Then& then) {
      permissions.permit_admin_or(user_id, given, RequestContext(), then);
    }));
  };
  EXPECT_EQ(acts_for(ann.user_id, ann), "ok");
  EXPECT_EQ(acts_for("eve", ann), "unauthorized_access");
  EXPECT_EQ(acts_for("eve", admin), "ok");
}

}  // namespace
}  // namespace lightq::broker
