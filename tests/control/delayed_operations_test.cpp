/// Tests of control/commands/delayed_operations: commands on delayed messages and their permissions.
#include "control/commands/delayed_operations.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/catalogue_room.hpp"
#include "control/commands_under_test.hpp"
#include "control/fake_data_plane.hpp"
#include "control/loop_thread.hpp"
#include "support/planted.hpp"

namespace lightq::broker {
namespace {

using protocol::DelayedFilter;
using test::name;

const protocol::Credentials the_administrator{"lightq_admin", planted::admin_password};

/// Commands on a catalogue, with a data plane that only records them. It says that 3 messages wait.
class DelayedCommands : public ::testing::Test {
 protected:
  protocol::Reply ask(const protocol::Request& request) {
    std::optional<protocol::Reply> reply;
    commands.handle(request, [&](protocol::Reply got) { reply = std::move(got); });
    test::run_until(loop, [&] { return reply.has_value(); });
    return reply.value_or(protocol::ErrorReply{});
  }
  std::string code(const protocol::Request& request) {
    const auto reply = ask(request);
    const auto* error = std::get_if<protocol::ErrorReply>(&reply);
    return error == nullptr ? "ok" : std::string(to_word(error->code));
  }
  void create(const std::string& topic, protocol::BrokerType type = protocol::BrokerType::queue) {
    protocol::TopicSettings settings;
    settings.broker_type = type;
    settings.open = true;
    ASSERT_EQ(code(protocol::CreateTopic{the_administrator, name(topic), settings, {}}), "ok");
  }
  template <typename Asked>
  Asked asked(const std::string& topic, DelayedFilter filter = {}) {
    Asked made{the_administrator, name(topic), std::move(filter)};
    made.as_admin = true;
    return made;
  }

  EventLoop loop;
  test::CatalogueRoom room;
  std::unique_ptr<Catalogue> catalogue = room.open();
  Authenticator authenticator{loop, the_administrator.user_id, Secret(the_administrator.password)};
  test::FakeDataPlane data_plane{loop};
  test::CommandsUnderTest commands{loop,       *catalogue, authenticator,
                                   data_plane, room.sink,  {"/data", [this] { return room.now(); }}};
};

TEST_F(DelayedCommands, PassAFilterAndReturnWhatWasDone) {
  create("t");
  const DelayedFilter filter{.id = "order 7", .numbers = {{{1}, {5}}}};
  const auto reply = ask(asked<protocol::CancelDelayed>("t", filter));
  const auto* ok = std::get_if<protocol::OkReply>(&reply);
  ASSERT_NE(ok, nullptr);
  EXPECT_EQ(ok->cmd, "cancel_delayed");
  EXPECT_EQ(ok->messages, 3U);
  ASSERT_TRUE(ok->delayed.has_value());
  EXPECT_EQ(ok->delayed->too_late, 1U);
  EXPECT_EQ(code(asked<protocol::HurryDelayed>("t")), "ok");
  auto move = asked<protocol::RescheduleDelayed>("t");
  move.due = -5;
  EXPECT_EQ(code(move), "ok");
  move.preview = true;
  EXPECT_EQ(code(move), "ok");
  ASSERT_EQ(data_plane.delayed_wishes.size(), 4U);
  EXPECT_EQ(data_plane.delayed_wishes[0].what, DelayedWish::What::cancel);
  EXPECT_EQ(data_plane.delayed_wishes[0].filter, filter);
  EXPECT_EQ(data_plane.delayed_wishes[1].what, DelayedWish::What::hurry);
  EXPECT_EQ(data_plane.delayed_wishes[2].what, DelayedWish::What::reschedule);
  EXPECT_EQ(data_plane.delayed_wishes[2].due, -5);
  EXPECT_EQ(data_plane.delayed_wishes[3].what, DelayedWish::What::count) << "a preview changes nothing";
}

TEST_F(DelayedCommands, ListPageByPage) {
  create("t");
  auto list = asked<protocol::ListDelayed>("t");
  list.limit = 2;
  const auto first = std::get<protocol::DelayedPage>(ask(list));
  ASSERT_EQ(first.messages.size(), 2U);
  ASSERT_TRUE(first.continue_after.has_value());
  list.after = first.continue_after;
  const auto second = std::get<protocol::DelayedPage>(ask(list));
  ASSERT_EQ(second.messages.size(), 1U);
  EXPECT_EQ(second.messages.front().number, 2U);
  EXPECT_FALSE(second.continue_after.has_value());
}

TEST_F(DelayedCommands, NeedTheRightToManageTheTopic) {
  create("t");
  const protocol::Credentials ann{"ann", "secret of ann"};
  ASSERT_EQ(code(protocol::CreateUser{
                the_administrator, ann, false, {{"t", {.produce = true, .consume = true}}}, {}}),
            "ok");
  EXPECT_EQ(code(protocol::ListDelayed{ann, name("t")}), "unauthorized_access");
  EXPECT_EQ(code(protocol::CancelDelayed{ann, name("t")}), "unauthorized_access");
  EXPECT_EQ(code(protocol::ListDelayed{{}, name("t")}), "unauthorized_access") << "although it is open";
  ASSERT_EQ(code(protocol::GrantRights{the_administrator, "ann", {"t", {.manage = true}}}), "ok");
  EXPECT_EQ(code(protocol::ListDelayed{ann, name("t")}), "ok");
  EXPECT_EQ(code(protocol::CancelDelayed{ann, name("t")}), "ok");
}

TEST_F(DelayedCommands, PayloadsAlsoNeedTheRightToConsume) {
  create("t");
  const protocol::Credentials ann{"ann", "secret of ann"};
  ASSERT_EQ(code(protocol::CreateUser{the_administrator, ann, false, {{"t", {.manage = true}}}, {}}), "ok");
  protocol::ListDelayed list{ann, name("t")};
  EXPECT_EQ(code(list), "ok");
  list.payload_bytes = 10;
  EXPECT_EQ(code(list), "unauthorized_access");
  ASSERT_EQ(code(protocol::GrantRights{the_administrator, "ann", {"t", {.consume = true}}}), "ok");
  EXPECT_EQ(code(list), "ok");
}

TEST_F(DelayedCommands, AreRefusedForTopicsThatKeepNoMessages) {
  create("d", protocol::BrokerType::direct);
  EXPECT_EQ(code(asked<protocol::ListDelayed>("d")), "not_supported");
  EXPECT_EQ(code(asked<protocol::HurryDelayed>("d")), "not_supported");
  EXPECT_EQ(code(asked<protocol::ListDelayed>("none")), "topic_not_found");
  EXPECT_TRUE(data_plane.delayed_wishes.empty());
}

TEST_F(DelayedCommands, APurgeCancelsDelayedMessagesOnlyIfAsked) {
  create("t");
  protocol::Purge purge{the_administrator, name("t"), "", true};
  EXPECT_EQ(std::get<protocol::OkReply>(ask(purge)).messages, 7U);
  EXPECT_TRUE(data_plane.delayed_wishes.empty());
  purge.delayed = true;
  EXPECT_EQ(std::get<protocol::OkReply>(ask(purge)).messages, 7U + 3U);
  ASSERT_EQ(data_plane.delayed_wishes.size(), 1U);
  EXPECT_EQ(data_plane.delayed_wishes[0].what, DelayedWish::What::cancel);
  EXPECT_EQ(data_plane.delayed_wishes[0].filter, DelayedFilter());
}

}  // namespace
}  // namespace lightq::broker
