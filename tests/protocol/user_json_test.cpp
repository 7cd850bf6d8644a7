/// Tests of requests and replies about users as JSON: impl/protocol/json_request.hpp,
/// impl/protocol/json_reply.hpp and protocol/json_rights.hpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <lightq/protocol/json.hpp>

namespace lightq::protocol {
namespace {

using testing::HasSubstr;

const std::string admin = R"("admin_user_id":"root","admin_password":"pw")";

template <typename T>
T good(const std::string& text) {
  auto parsed = parse_request(text);
  EXPECT_TRUE(parsed.request.ok()) << (parsed.request.ok() ? "" : parsed.request.error().message);
  return std::get<T>(parsed.request.value());
}

std::string fault(const std::string& text) {
  const auto parsed = parse_request(text);
  if (parsed.request.ok()) return "";
  return std::string(to_word(parsed.request.error().code)) + " " + parsed.request.error().message;
}

TEST(UserJson, ReadsAUserWithItsRights) {
  const auto asked = good<CreateUser>(R"({"cmd":"create_user",)" + admin +
                                      R"(,"user_id":"ann","password":"s","admin":true,"uid":1000,"rights":[)"
                                      R"({"topic":"a*","rights":["produce","manage"]},)"
                                      R"({"topic":"b","rights":["consume"]}]})");
  EXPECT_EQ(asked.admin.user_id, "root");
  EXPECT_EQ(asked.user.user_id, "ann");
  EXPECT_EQ(asked.user.password, "s");
  EXPECT_TRUE(asked.is_admin);
  EXPECT_EQ(asked.uid, 1000U);
  const std::vector<TopicRight> rights = {{"a*", {.produce = true, .manage = true}},
                                          {"b", {.consume = true}}};
  EXPECT_EQ(asked.rights, rights);
  const auto least =
      good<CreateUser>(R"({"cmd":"create_user",)" + admin + R"(,"user_id":"a","password":"s"})");
  EXPECT_TRUE(least.rights.empty());
  EXPECT_FALSE(least.is_admin);
  EXPECT_FALSE(least.uid.has_value());
}

TEST(UserJson, RefusesInvalidRights) {
  const auto with = [](const std::string& rights) {
    return fault(R"({"cmd":"create_user",)" + admin + R"(,"user_id":"a","password":"s","rights":)" + rights +
                 "}");
  };
  EXPECT_EQ(with(R"([])"), "");
  EXPECT_THAT(with(R"({})"), HasSubstr("invalid_request rights: must be a list"));
  EXPECT_THAT(with(R"(["produce"])"), HasSubstr("rights: must be a list of objects"));
  EXPECT_THAT(with(R"([{"rights":["produce"]}])"), HasSubstr("rights.topic: missing"));
  EXPECT_THAT(with(R"([{"topic":".a","rights":["produce"]}])"), HasSubstr("rights.topic: must be"));
  EXPECT_THAT(with(R"([{"topic":"a"}])"), HasSubstr("rights.rights: missing"));
  EXPECT_THAT(with(R"([{"topic":"a","rights":[]}])"), HasSubstr("rights.rights: must be"));
  EXPECT_THAT(with(R"([{"topic":"a","rights":["write"]}])"), HasSubstr("rights.rights: must be"));
  EXPECT_THAT(with(R"([{"topic":"a","rights":[1]}])"), HasSubstr("rights.rights: must be"));
}

TEST(UserJson, AUserWithoutAPasswordHasAUid) {
  const std::string begin = R"({"cmd":"create_user",)" + admin + R"(,"user_id":"a")";
  EXPECT_THAT(fault(begin + "}"), HasSubstr("password: missing"));
  EXPECT_EQ(fault(begin + R"(,"uid":0})"), "");
  EXPECT_THAT(fault(begin + R"(,"uid":4294967295})"), HasSubstr("uid: must be"));
  EXPECT_THAT(fault(begin + R"(,"uid":"me"})"), HasSubstr("uid: must be"));
}

TEST(UserJson, APasswordIsSetByAnAdministratorOrWithTheOldOne) {
  const auto own =
      good<SetPassword>(R"({"cmd":"set_password","user_id":"ann","password":"old","new_password":"new"})");
  EXPECT_FALSE(own.as_admin);
  EXPECT_EQ(own.asker.password, "old");
  EXPECT_EQ(own.user_id, "ann");
  EXPECT_EQ(own.new_password, "new");
  const auto other =
      good<SetPassword>(R"({"cmd":"set_password",)" + admin + R"(,"user_id":"ann","new_password":"new"})");
  EXPECT_TRUE(other.as_admin);
  EXPECT_EQ(other.asker.user_id, "root");
  EXPECT_EQ(other.user_id, "ann");
  EXPECT_THAT(fault(R"({"cmd":"set_password",)" + admin + R"(,"new_password":"new"})"),
              HasSubstr("user_id: missing"));
  EXPECT_EQ(fault(R"({"cmd":"set_password",)" + admin + R"(,"topic":"t","new_password":"new"})"), "");
  EXPECT_THAT(fault(R"({"cmd":"set_password",)" + admin + R"(,"user_id":"ann"})"),
              HasSubstr("new_password: missing"));
}

TEST(UserJson, DecodedRequestsEqualTheEncodedOnes) {
  const Credentials root{"root", "pw"};
  const TopicRight right{"t*", {.produce = true, .consume = true}};
  const std::vector<Request> requests = {CreateUser{root, {"ann", "s"}, true, {right}, 7},
                                         CreateUser{root, {"ann", ""}, false, {}, 7},
                                         DeleteUser{root, "ann"},
                                         SetPassword{{"ann", "old"}, false, "ann", {}, "new"},
                                         SetPassword{root, true, "ann", TopicName::parse("t"), "new"},
                                         GrantRights{root, "ann", right},
                                         RevokeRights{root, "ann", right},
                                         ListUsers{root},
                                         Reload{root}};
  for (const Request& request : requests) {
    const std::string text = to_json(request);
    const auto parsed = parse_request(text);
    ASSERT_TRUE(parsed.request.ok()) << text << ": " << parsed.request.error().message;
    EXPECT_EQ(parsed.request->index(), request.index());
    EXPECT_EQ(to_json(*parsed.request), text);
  }
}

TEST(UserJson, AListOfUsersContainsRightsAndNoSecrets) {
  const std::string text = to_json(Reply(UserListReply{
      {{"ann", false, std::nullopt, {{"t*", {.produce = true, .manage = true}}}}, {"root2", true, 0, {}}}}));
  EXPECT_EQ(text, R"({"cmd":"list_users","status":"ok","users":[{"user_id":"ann","admin":false,)"
                  R"("rights":[{"topic":"t*","rights":["produce","manage"]}]},)"
                  R"({"user_id":"root2","admin":true,"uid":0,"rights":[]}]})");
  const auto reply = parse_reply(ListUsers{}, text);
  ASSERT_TRUE(reply.ok());
  EXPECT_EQ(to_json(*reply), text);
}

TEST(UserJson, TheReplyToReloadNamesSettings) {
  const std::string text = to_json(Reply(ReloadReply{{"log_level"}, {"bind", "ports"}}));
  EXPECT_EQ(text,
            R"({"cmd":"reload","status":"ok","changed":["log_level"],"needs_restart":["bind","ports"]})");
  const auto reply = parse_reply(Reload{}, text);
  ASSERT_TRUE(reply.ok());
  EXPECT_EQ(to_json(*reply), text);
  const std::string long_name(ReloadReply::name_bytes_max + 1, 'x');
  EXPECT_FALSE(
      parse_reply(Reload{}, R"({"status":"ok","changed":[")" + long_name + R"("],"needs_restart":[]})").ok());
  EXPECT_FALSE(parse_reply(Reload{}, R"({"status":"ok","changed":["log_level"]})").ok());
}

}  // namespace
}  // namespace lightq::protocol
