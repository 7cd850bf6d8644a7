/// A fixture for tests of operations on users and rights, which it requests from a command handler. The
/// handler has a catalogue, and a data plane that only records calls.
#pragma once

#include <gtest/gtest.h>

#include <lightq/protocol/json.hpp>

#include "control/catalogue_room.hpp"
#include "control/commands_under_test.hpp"
#include "control/fake_data_plane.hpp"
#include "control/loop_thread.hpp"
#include "support/planted.hpp"

namespace lightq::broker {

class UserOperationsTest : public testing::Test {
 protected:
  using Credentials = protocol::Credentials;
  using JoinType = protocol::JoinType;
  using Reply = protocol::Reply;
  using Request = protocol::Request;
  using TopicRight = protocol::TopicRight;
  static inline const Credentials admin{"lightq_admin", planted::admin_password};
  static inline const Credentials ann{"ann", planted::user_password};
  static inline const Credentials owner{"owner", planted::owner_password};

  Reply ask(const Request& request) {
    std::optional<Reply> reply;
    handler->handle(request, [&](Reply got) { reply = std::move(got); });
    test::run_until(loop, [&] { return reply.has_value(); });
    return reply.value_or(protocol::ErrorReply{});
  }
  std::string code(const Request& request) {
    const auto reply = ask(request);
    const auto* error = std::get_if<protocol::ErrorReply>(&reply);
    return error == nullptr ? "ok" : std::string(to_word(error->code));
  }
  std::string create_topic(const std::string& topic, const Credentials& by = admin,
                           const Credentials& for_whom = owner) {
    return code(protocol::CreateTopic{by, test::name(topic), {}, for_whom});
  }
  std::string create_user(const std::vector<TopicRight>& rights, const Credentials& user = ann,
                          const Credentials& by = admin) {
    return code(protocol::CreateUser{by, user, false, rights, {}});
  }
  std::string join(const std::string& topic, const Credentials& by, JoinType type = JoinType::push,
                   bool as_admin = false) {
    return code(protocol::Join{by, test::name(topic), type, protocol::ConnectionType::zmq,
                               protocol::Transport::tcp, as_admin});
  }
  std::string grant(const TopicRight& right) {
    return code(protocol::GrantRights{admin, ann.user_id, right});
  }
  std::string revoke(const TopicRight& right) {
    return code(protocol::RevokeRights{admin, ann.user_id, right});
  }
  std::string set_password(const Credentials& by, bool as_admin, const std::string& user,
                           const std::string& to) {
    return code(protocol::SetPassword{by, as_admin, user, {}, to});
  }
  void restart() {
    handler.reset();
    catalogue.reset();
    data_plane.users.clear();
    data_plane.owners.clear();
    catalogue = room.open();
    handler = make();
    bool up = false;
    handler->bring_up([&] { up = true; });
    test::run_until(loop, [&] { return up; });
  }
  std::unique_ptr<test::CommandsUnderTest> make() {
    return std::make_unique<test::CommandsUnderTest>(
        loop, *catalogue, authenticator, data_plane, room.sink,
        OperationSettings{"/data", [this] { return room.now(); }});
  }
  const UserRecord* user() { return catalogue->state().user(ann.user_id); }

  EventLoop loop;
  test::CatalogueRoom room;
  std::unique_ptr<Catalogue> catalogue = room.open();
  Authenticator authenticator{loop, admin.user_id, Secret(admin.password)};
  test::FakeDataPlane data_plane{loop};
  std::unique_ptr<test::CommandsUnderTest> handler = make();
};

}  // namespace lightq::broker
