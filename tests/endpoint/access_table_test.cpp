/// Tests of access/access_table: which tickets permit which actions.
#include "access/access_table.hpp"

#include <gtest/gtest.h>

namespace lightq::broker {
namespace {

class AccessTableTest : public testing::Test {
 protected:
  [[nodiscard]] bool permits(const TicketHolder& holder, EndpointRole role = EndpointRole::produce) const {
    return table.permits(holder, {topic, role}, name, GroupScope::of_plain(role));
  }
  [[nodiscard]] bool may_consume(const GroupScope& scope) const {
    return table.permits({7, 1}, {topic, EndpointRole::pull}, name, scope);
  }
  const TopicId topic{3};
  const TopicName name = *TopicName::parse("orders.eu");
  AccessTable table;
};

TEST_F(AccessTableTest, AsksForTheRightThatTheRoleNeeds) {
  table.put_user({7, 1, false, {{"orders.*", {.produce = true}}}});
  EXPECT_TRUE(permits({7, 1}));
  EXPECT_FALSE(permits({7, 1}, EndpointRole::pull));
  EXPECT_FALSE(permits({7, 1}, EndpointRole::sub));
  table.put_user({7, 1, false, {{"orders.*", {.consume = true}}}});
  EXPECT_FALSE(permits({7, 1}));
  EXPECT_TRUE(permits({7, 1}, EndpointRole::pull));
  EXPECT_TRUE(permits({7, 1}, EndpointRole::sub));
  table.put_user({7, 1, false, {{"orders.*", {.manage = true}}}});
  EXPECT_FALSE(permits({7, 1}));
  EXPECT_FALSE(permits({7, 1}, EndpointRole::sub));
  table.put_user(
      {7, 1, false, {{"other*", {.produce = true, .consume = true}}, {"orders.us", {.produce = true}}}});
  EXPECT_FALSE(permits({7, 1}));
  table.put_user({7, 1, true, {}});
  EXPECT_TRUE(permits({7, 1})) << "an administrator";
}

TEST_F(AccessTableTest, ARightOnGroupsIsNoneOnTheTopic) {
  table.put_user({7, 1, false, {{"orders.*:work*", {.consume = true}}}});
  EXPECT_TRUE(may_consume(GroupScope::of("workers")));
  EXPECT_TRUE(may_consume(GroupScope::some_group())) << "which one is said later";
  EXPECT_FALSE(may_consume(GroupScope::of("audit")));
  EXPECT_FALSE(may_consume(GroupScope::of(""))) << "a cursor without a name, and a read by offset";
  EXPECT_FALSE(may_consume(GroupScope::whole_topic()));
  EXPECT_FALSE(permits({7, 1}, EndpointRole::pull)) << "a plain endpoint is the default group's";
  EXPECT_FALSE(permits({7, 1}, EndpointRole::sub));
  table.put_user({7, 1, false, {{"orders.*:*", {.consume = true}}}});
  EXPECT_TRUE(permits({7, 1}, EndpointRole::pull));
  EXPECT_TRUE(permits({7, 1}, EndpointRole::sub)) << "a star stands for no name, too";
  table.put_user({7, 1, false, {{"payments:workers", {.consume = true}}}});
  EXPECT_FALSE(may_consume(GroupScope::of("workers"))) << "another topic's";
}

TEST_F(AccessTableTest, MayManageTheGroupsOfItsRightAlone) {
  const auto may_manage = [&](const GroupScope& scope) {
    return table.may_manage({7, 1}, topic, name, scope);
  };
  table.put_user({7, 1, false, {{"orders.eu:workers", {.manage = true}}}});
  EXPECT_TRUE(may_manage(GroupScope::of("workers")));
  EXPECT_FALSE(may_manage(GroupScope::of("audit")));
  EXPECT_FALSE(may_manage(GroupScope::whole_topic()));
  table.put_user({7, 1, false, {{"orders.eu", {.manage = true}}}});
  EXPECT_TRUE(may_manage(GroupScope::of("audit")));
  EXPECT_TRUE(may_manage(GroupScope::whole_topic()));
}

TEST_F(AccessTableTest, AnotherGenerationOrUserIsNotPermitted) {
  EXPECT_FALSE(table.put_user({7, 2, false, {{"*", {.produce = true}}}})) << "it is new";
  EXPECT_TRUE(permits({7, 2}));
  EXPECT_FALSE(permits({7, 1}));
  EXPECT_FALSE(permits({7, 3}));
  EXPECT_FALSE(permits({8, 2}));
  EXPECT_TRUE(table.put_user({7, 3, false, {{"*", {.produce = true}}}}));
  EXPECT_FALSE(permits({7, 2}));
  EXPECT_TRUE(table.remove_user(7));
  EXPECT_FALSE(permits({7, 3}));
  EXPECT_FALSE(table.remove_user(7));
}

TEST_F(AccessTableTest, ATopicsOwnUserMayEverythingThereAndNothingElsewhere) {
  EXPECT_FALSE(permits({5, 0}));
  table.set_owner(topic, 5);
  EXPECT_TRUE(permits({5, 0}));
  EXPECT_TRUE(permits({5, 0}, EndpointRole::sub));
  EXPECT_FALSE(table.permits({5, 0}, {TopicId{4}, EndpointRole::produce}, name, GroupScope::whole_topic()));
  table.set_owner(topic, 6);
  EXPECT_FALSE(permits({5, 0})) << "its password is another one";
  table.forget_topic(topic);
  EXPECT_FALSE(permits({6, 0}));
}

TEST_F(AccessTableTest, TheAdministratorsTicketsArePermittedUntilThePasswordChanges) {
  EXPECT_TRUE(permits({}));
  EXPECT_FALSE(permits({0, 1}));
  table.set_admin_generation(1);
  EXPECT_TRUE(permits({0, 1}));
  EXPECT_TRUE(permits({0, 1}, EndpointRole::sub));
  EXPECT_FALSE(permits({0, 2}));
  EXPECT_FALSE(permits({})) << "nobody's";
}

}  // namespace
}  // namespace lightq::broker
