/// Tests of control/commands/command_handler: the effect of each control command.
#include "control/commands/command_handler.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>

#include "control/catalogue_room.hpp"
#include "control/commands_under_test.hpp"
#include "control/fake_data_plane.hpp"
#include "control/loop_thread.hpp"
#include "support/faulty_storage.hpp"
#include "support/planted.hpp"

namespace lightq::broker {
namespace {

using protocol::Credentials;
using protocol::JoinType;
using protocol::Reply;
using protocol::Request;
using test::name;
using test::run_until;

const Credentials admin{"lightq_admin", planted::admin_password};
const Credentials user{"user", planted::user_password};

/// A handler with all its parts. `restart` makes new ones on the same catalogue.
struct Broker {
  EventLoop loop;
  test::CatalogueRoom room;
  std::unique_ptr<Catalogue> catalogue = room.open();
  Authenticator authenticator{loop, admin.user_id, Secret(admin.password)};
  test::FakeDataPlane data_plane{loop};
  std::size_t topics_max = limits::topics_max;
  std::unique_ptr<test::CommandsUnderTest> handler = make();

  std::unique_ptr<test::CommandsUnderTest> make() {
    return std::make_unique<test::CommandsUnderTest>(
        loop, *catalogue, authenticator, data_plane, room.sink,
        OperationSettings{"/data", [this] { return room.now(); }, topics_max});
  }
  void restart() {
    handler.reset();
    catalogue.reset();
    data_plane.topics.clear();
    catalogue = room.open();
    handler = make();
    bool up = false;
    handler->bring_up([&] { up = true; });
    run_until(loop, [&] { return up; });
  }

  Reply ask(const Request& request) {
    std::optional<Reply> reply;
    handler->handle(request, [&](Reply got) { reply = std::move(got); });
    run_until(loop, [&] { return reply.has_value(); });
    return reply.value_or(protocol::ErrorReply{});
  }
  std::string code(const Request& request) {
    const auto reply = ask(request);
    const auto* error = std::get_if<protocol::ErrorReply>(&reply);
    return error == nullptr ? "ok" : std::string(to_word(error->code));
  }
  std::string create(const std::string& topic, const Credentials& by = admin,
                     const Credentials& for_whom = user, const protocol::TopicSettings& settings = {}) {
    return code(protocol::CreateTopic{by, name(topic), settings, for_whom});
  }
  std::string join(const std::string& topic, const Credentials& by, bool as_admin = false) {
    return code(protocol::Join{by, name(topic), JoinType::pull, protocol::ConnectionType::zmq,
                               protocol::Transport::tcp, as_admin});
  }
};

TEST(CommandHandler, CreatesATopicInCatalogueAndDataPlane) {
  Broker broker;
  const auto reply = broker.ask(protocol::CreateTopic{admin, name("t"), {}, user});
  const auto& ok = std::get<protocol::OkReply>(reply);
  EXPECT_EQ(ok.cmd, "create_topic");
  EXPECT_EQ(ok.description, "topic created successfully");
  EXPECT_NE(broker.catalogue->state().find("t"), nullptr);
  EXPECT_FALSE(broker.catalogue->unflushed()) << "answered before it was durable";
  EXPECT_EQ(broker.data_plane.topics.size(), 1U);
}

TEST(CommandHandler, CreatesANameOnceForConcurrentRequests) {
  Broker broker;
  int created = 0;
  int existed = 0;
  for (int i = 0; i < 10; ++i) {
    broker.handler->handle(protocol::CreateTopic{admin, name("t"), {}, {"user" + std::to_string(i), "pw"}},
                           [&](const Reply& reply) {
                             const auto* error = std::get_if<protocol::ErrorReply>(&reply);
                             if (error == nullptr) return void(++created);
                             EXPECT_EQ(error->code, ErrorCode::topic_already_exists);
                             EXPECT_EQ(error->description, "topic already exists");
                             ++existed;
                           });
  }
  run_until(broker.loop, [&] { return created + existed == 10; });
  EXPECT_EQ(created, 1);
}

TEST(CommandHandler, RemovesATopicThatTheDataPlaneRefuses) {
  Broker broker;
  broker.data_plane.refuse_add = Error{ErrorCode::no_space, "the disk is full"};
  EXPECT_EQ(broker.create("t"), "no_space");
  EXPECT_EQ(broker.catalogue->state().find("t"), nullptr);
  broker.data_plane.refuse_add.reset();
  EXPECT_EQ(broker.create("t"), "ok");
}

TEST(CommandHandler, KeepsATopicIfItsRemovalIsNotOnDisk) {
  lightq::test::FaultyStorage disk;
  log::SegmentPool pool{{"/pool"}, disk};
  Broker broker;
  broker.handler.reset();
  auto options = broker.room.options();
  options.open_log = [&](const std::filesystem::path& at) -> Result<std::unique_ptr<log::Log>> {
    log::SegmentLogOptions of_log;
    of_log.directory = at.string();
    auto opened = log::SegmentLog::open(of_log, disk, pool, broker.room.now());
    if (!opened) return opened.error();
    return std::unique_ptr<log::Log>(std::move(*opened));
  };
  broker.catalogue = Catalogue::open(broker.room.path() + "2", options, broker.room.sink).value_or_throw();
  broker.handler = broker.make();
  ASSERT_EQ(broker.create("t"), "ok");
  disk.on_call = [](lightq::test::FaultyStorage::Call call, const std::string&) {
    const bool sync = call == lightq::test::FaultyStorage::Call::sync;
    return lightq::test::FaultyStorage::Fault{sync ? EIO : 0};
  };
  EXPECT_EQ(broker.code(protocol::DeleteTopic{admin, name("t")}), "io_error");
  EXPECT_EQ(broker.data_plane.topics.size(), 1U) << "a later start may find it in the catalogue";
  broker.handler.reset();
  broker.catalogue.reset();
}

TEST(CommandHandler, AsksForTheAdminsCredentials) {
  Broker broker;
  EXPECT_EQ(broker.create("t", {admin.user_id, "wrong"}), "unauthorized_access");
  EXPECT_EQ(broker.create("t", user), "unauthorized_access");
  EXPECT_EQ(broker.create("t"), "ok");
  EXPECT_EQ(broker.create("t", user), "unauthorized_access") << "existence is not for everybody";
  EXPECT_EQ(broker.code(protocol::DeleteTopic{user, name("t")}), "unauthorized_access");
  EXPECT_EQ(broker.code(protocol::ListTopics{user}), "unauthorized_access");
  EXPECT_EQ(broker.code(protocol::Stats{user, std::nullopt, true}), "unauthorized_access");
  EXPECT_EQ(broker.authenticator.failures(), 6U);
}

TEST(CommandHandler, ChecksCredentialsBeforeItRevealsWhetherATopicExists) {
  Broker broker;
  broker.create("t");
  EXPECT_EQ(broker.join("t", user), "ok");
  EXPECT_EQ(broker.join("t", {"user", "wrong"}), "unauthorized_access");
  EXPECT_EQ(broker.join("t", {"stranger", planted::user_password}), "unauthorized_access");
  EXPECT_EQ(broker.join("t", {}), "unauthorized_access");
  EXPECT_EQ(broker.join("none", {"user", "wrong"}), "unauthorized_access");
  EXPECT_EQ(broker.join("none", {"stranger", planted::user_password}), "unauthorized_access");
  EXPECT_EQ(broker.join("none", {}), "unauthorized_access");
  EXPECT_EQ(broker.join("none", user), "topic_not_found");
  EXPECT_EQ(broker.join("none", admin, true), "topic_not_found");
  EXPECT_EQ(broker.join("t", admin, true), "ok");
  EXPECT_EQ(broker.join("t", admin), "ok") << "the admin's name in the user's fields";
}

TEST(CommandHandler, ATopicsUserHasNoAccessToOtherTopics) {
  Broker broker;
  broker.create("mine");
  broker.create("theirs", admin, {"other", "pw"});
  broker.create("same-name", admin, {"user", planted::other_password});
  broker.create("admins-only", admin, {});
  for (const char* topic : {"theirs", "admins-only", "none"})
    EXPECT_EQ(broker.join(topic, user), "topic_not_found") << topic << ": as if it were not there";
  EXPECT_EQ(broker.join("same-name", user), "unauthorized_access");
  EXPECT_EQ(broker.join("admins-only", admin, true), "ok");
  EXPECT_EQ(broker.join("same-name", {"user", planted::other_password}), "ok");
  EXPECT_EQ(broker.join("none", {"user", planted::other_password}), "topic_not_found");
}

TEST(CommandHandler, AnOpenTopicWithoutAUserPermitsAllClients) {
  Broker broker;
  protocol::TopicSettings open;
  open.open = true;
  broker.create("open", admin, {}, open);
  broker.create("open-with-user", admin, user, open);
  EXPECT_EQ(broker.join("open", {}), "ok");
  EXPECT_EQ(broker.join("open", {"any", "thing"}), "ok");
  EXPECT_EQ(broker.join("open-with-user", {}), "unauthorized_access");
  EXPECT_EQ(broker.join("open-with-user", user), "ok");
}

TEST(CommandHandler, RefusesTheAdminsNameForATopicsUser) {
  Broker broker;
  EXPECT_EQ(broker.create("t", admin, {"lightq_admin", "pw"}), "invalid_request");
}

TEST(CommandHandler, ForgetsAUserWithTheLastTopic) {
  Broker broker;
  broker.create("t");
  EXPECT_EQ(broker.join("none", user), "topic_not_found");
  EXPECT_EQ(broker.code(protocol::DeleteTopic{admin, name("t")}), "ok");
  EXPECT_TRUE(broker.data_plane.topics.empty());
  EXPECT_EQ(broker.join("none", user), "unauthorized_access");
  EXPECT_EQ(broker.code(protocol::DeleteTopic{admin, name("t")}), "topic_not_found");
  EXPECT_EQ(broker.create("t"), "ok") << "the same credentials again";
  EXPECT_EQ(broker.join("t", user), "ok");
}

TEST(CommandHandler, HashesTheSameCredentialsOnceForManyTopics) {
  Broker broker;
  int created = 0;
  for (int i = 0; i < 200; ++i) {
    broker.handler->handle(
        protocol::CreateTopic{admin, name("t" + std::to_string(i)), {}, user},
        [&](const Reply& reply) { created += std::holds_alternative<protocol::OkReply>(reply); });
  }
  run_until(broker.loop, [&] { return created == 200; });
  EXPECT_EQ(broker.authenticator.computations(), 2U) << "one for the admin, one for the user";
  const auto& topics = broker.catalogue->state().topics();
  for (const auto& [topic, entry] : topics) {
    EXPECT_EQ(entry.credential_id, topics.begin()->second.credential_id);
  }
}

TEST(CommandHandler, ReloadsForAdministratorsAndRepliesWithTheNames) {
  Broker broker;
  EXPECT_EQ(broker.code(protocol::Reload{admin}), "not_supported");
  int reloads = 0;
  broker.handler->set_reload([&]() -> Result<protocol::ReloadReply> {
    if (++reloads > 1) return Error{ErrorCode::invalid_argument, "f.toml:1:1: no"};
    return protocol::ReloadReply{{"log_level"}, {"bind"}};
  });
  EXPECT_EQ(broker.code(protocol::Reload{user}), "unauthorized_access");
  const Reply reply = broker.ask(protocol::Reload{admin});
  ASSERT_TRUE(std::holds_alternative<protocol::ReloadReply>(reply));
  EXPECT_EQ(std::get<protocol::ReloadReply>(reply).changed, std::vector<std::string>{"log_level"});
  EXPECT_EQ(broker.code(protocol::Reload{admin}), "invalid_argument");
  EXPECT_EQ(reloads, 2);
}

TEST(CommandHandler, AChangedLimitBoundsTheNextTopic) {
  Broker broker;
  EXPECT_EQ(broker.create("a"), "ok");
  EXPECT_EQ(broker.create("b"), "ok");
  broker.handler->change_limits({.topics_max = 1});
  EXPECT_EQ(broker.create("c"), "limit_reached");
  broker.handler->change_limits({.topics_max = 3});
  EXPECT_EQ(broker.create("c"), "ok");
}

TEST(CommandHandler, LimitsTheNumberOfTopics) {
  Broker broker;
  broker.topics_max = 3;
  broker.restart();
  // All requests run together, so topics that are still being created count too.
  int created = 0;
  int refused = 0;
  for (const char* topic : {"a", "b", "c", "d", "e"}) {
    broker.handler->handle(protocol::CreateTopic{admin, name(topic), {}, user}, [&](const Reply& reply) {
      const auto* error = std::get_if<protocol::ErrorReply>(&reply);
      if (error == nullptr) return void(++created);
      EXPECT_EQ(error->code, ErrorCode::limit_reached);
      EXPECT_THAT(error->description, testing::HasSubstr("3 topics"));
      ++refused;
    });
  }
  run_until(broker.loop, [&] { return created + refused == 5; });
  EXPECT_EQ(created, 3);
  EXPECT_EQ(broker.create("f"), "limit_reached");
  EXPECT_EQ(broker.create("a"), "topic_already_exists");
  EXPECT_EQ(broker.code(protocol::DeleteTopic{admin, name("a")}), "ok");
  EXPECT_EQ(broker.create("f"), "ok");
}

TEST(CommandHandler, ListsTopicsByName) {
  Broker broker;
  for (const char* topic : {"c", "a", "b"}) broker.create(topic);
  const auto reply = broker.ask(protocol::ListTopics{admin});
  std::vector<std::string> names;
  for (const auto& listing : std::get<protocol::ListReply>(reply).topics) names.push_back(listing.topic);
  EXPECT_EQ(names, (std::vector<std::string>{"a", "b", "c"}));
}

TEST(CommandHandler, KeepsTopicsAndEndpointsOverARestart) {
  Broker broker;
  broker.create("t");
  EXPECT_EQ(broker.join("t", user), "ok");
  EXPECT_FALSE(broker.catalogue->unflushed());
  broker.restart();
  ASSERT_EQ(broker.data_plane.topics.size(), 1U);
  const auto id = broker.data_plane.topics.begin()->first;
  ASSERT_EQ(broker.data_plane.endpoints_[id].size(), 1U);
  EXPECT_EQ(broker.data_plane.endpoints_[id][0].role, EndpointRole::pull);
  EXPECT_EQ(broker.join("t", user), "ok");
}

TEST(CommandHandler, BringsUpMoreTopicsThanFitAtOnce) {
  Broker broker;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(broker.catalogue->add_topic(name("t" + std::to_string(i)), {}, 0).ok());
  }
  broker.restart();
  EXPECT_EQ(broker.data_plane.topics.size(), 1000U);
}

TEST(CommandHandler, ContinuesWithoutATopicThatCannotBeOpened) {
  Broker broker;
  broker.create("good");
  broker.create("bad");
  broker.data_plane.refuse_add = Error{ErrorCode::corrupt, "segment 5 is damaged"};
  broker.data_plane.refuse_name = "bad";
  broker.restart();
  EXPECT_EQ(broker.join("good", user), "ok");
  EXPECT_EQ(broker.join("bad", user), "corrupt");
  EXPECT_EQ(broker.code(protocol::DeleteTopic{admin, name("bad")}), "ok");
  EXPECT_EQ(broker.join("bad", user), "topic_not_found");
}

TEST(CommandHandler, FollowsTheEndpointsThatCloseAndMove) {
  Broker broker;
  broker.create("t");
  broker.join("t", user);
  const auto topic = broker.catalogue->state().find("t")->definition.id;
  auto endpoint = broker.catalogue->state().endpoints_of(topic).at(0);
  endpoint.port = 7777;
  broker.handler->endpoint_changed(endpoint);
  EXPECT_EQ(broker.catalogue->state().endpoint(endpoint.id)->port, 7777);
  broker.handler->endpoint_closed(endpoint);
  EXPECT_EQ(broker.catalogue->state().endpoint(endpoint.id), nullptr);
  EXPECT_TRUE(broker.catalogue->state().released_ports().contains(7777));
}

TEST(CommandHandler, RecordsTheOwnerOfATopicsFilesUnlessTheyBelongToAnotherTopic) {
  Broker broker;
  broker.create("a");
  broker.create("b");
  const auto definition_of = [&](const char* topic) {
    return broker.catalogue->state().find(topic)->definition;
  };
  broker.handler->log_found(definition_of("a").id, 4711);
  EXPECT_EQ(definition_of("a").log_id, 4711U);
  broker.handler->log_found(definition_of("b").id, 4711);
  EXPECT_EQ(definition_of("b").log_id, 0U);
  EXPECT_EQ(broker.room.sink.lines.back(), "topic b: its files are those of topic a, or a copy of them");
  broker.handler->log_found(TopicId{99}, 4712);
  EXPECT_EQ(broker.catalogue->state().topic_of_log(4712), nullptr);
}

TEST(CommandHandler, PassesOnTheRepliesOfTheDataPlane) {
  Broker broker;
  broker.create("t");
  broker.data_plane.refuse_join = Error{ErrorCode::limit_reached, "no descriptors"};
  EXPECT_EQ(broker.join("t", user), "limit_reached");
  EXPECT_TRUE(
      broker.catalogue->state().endpoints_of(broker.catalogue->state().find("t")->definition.id).empty());
  EXPECT_EQ(broker.code(protocol::Leave{user, name("t"), "tcp://unknown:1"}), "endpoint_not_found");
  const auto left = broker.ask(protocol::Leave{user, name("t"), "tcp://h:1"});
  EXPECT_EQ(std::get<protocol::OkReply>(left).messages_handed, 42U);
  EXPECT_EQ(broker.code(protocol::DeleteGroup{user, name("t"), "default"}), "ok");
  EXPECT_EQ(broker.code(protocol::DeleteGroup{user, name("t"), "none"}), "group_not_found");
  EXPECT_EQ(std::get<protocol::TopicStats>(broker.ask(protocol::Stats{user, name("t")})).topic, "t");
}

TEST(CommandHandler, PausesATopicAlsoForTheNextBroker) {
  using protocol::Pause, protocol::Resume;
  Broker broker;
  broker.create("t");
  const std::string id = std::to_string(broker.catalogue->state().find("t")->definition.id.value);
  const auto& paused = broker.data_plane.paused;
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(broker.code(Pause{user, name("t"), {}}), "ok");
    EXPECT_TRUE(paused.contains(id + "/"));
    EXPECT_FALSE(broker.catalogue->unflushed()) << "answered before it was durable";
  }
  broker.data_plane.paused.clear();
  broker.restart();
  EXPECT_TRUE(paused.contains(id + "/")) << "it begins so";
  EXPECT_EQ(broker.code(Resume{user, name("t"), {}}), "ok");
  EXPECT_FALSE(paused.contains(id + "/"));
  broker.restart();
  EXPECT_TRUE(paused.empty());
}

TEST(CommandHandler, PausesAndPurgesGroups) {
  using protocol::Pause, protocol::Resume, protocol::Purge;
  Broker broker;
  broker.create("t");
  const auto is_paused = [&] { return broker.data_plane.paused.size() == 1; };
  EXPECT_EQ(broker.code(Pause{user, name("t"), "default"}), "ok");
  EXPECT_TRUE(is_paused());
  EXPECT_FALSE(broker.catalogue->state().find("t")->definition.paused) << "the topic is not";
  EXPECT_EQ(broker.code(Resume{admin, name("t"), "default", true}), "ok");
  EXPECT_FALSE(is_paused());
  EXPECT_EQ(std::get<protocol::OkReply>(broker.ask(Purge{user, name("t"), "default"})).messages, 5U);
  EXPECT_EQ(std::get<protocol::OkReply>(broker.ask(Purge{user, name("t"), {}})).messages, 7U);
  for (const std::string group : {"", "default"}) {
    EXPECT_EQ(broker.code(Pause{{"user", "wrong"}, name("t"), group}), "unauthorized_access");
    EXPECT_EQ(broker.code(Resume{{}, name("t"), group}), "unauthorized_access");
    EXPECT_EQ(broker.code(Purge{{"user", "wrong"}, name("t"), group}), "unauthorized_access");
    EXPECT_EQ(broker.code(Purge{admin, name("absent"), group, true}), "topic_not_found");
  }
  for (const Request& request :
       {Request(Pause{user, name("t"), "none"}), Request(Resume{user, name("t"), "none"}),
        Request(Purge{user, name("t"), "none"})})
    EXPECT_EQ(broker.code(request), "group_not_found");
}

TEST(CommandHandler, ATopicWithoutStoredMessagesIsNeitherPausedNorPurged) {
  Broker broker;
  broker.create("d", admin, user, {.broker_type = protocol::BrokerType::direct});
  for (const std::string group : {"", "default"}) {
    EXPECT_EQ(broker.code(protocol::Pause{user, name("d"), group}), "not_supported");
    EXPECT_EQ(broker.code(protocol::Resume{user, name("d"), group}), "not_supported");
    EXPECT_EQ(broker.code(protocol::Purge{user, name("d"), group}), "not_supported");
  }
}

TEST(CommandHandler, OpensSocketsToPullersOfOpenTopicsOnly) {
  Broker broker;
  broker.create("closed");
  broker.create("open", admin, {}, {.open = true});
  broker.create("open-with-user", admin, user, {.open = true});
  const auto join = [&](const std::string& topic, const Credentials& by, JoinType type) {
    return broker.code(protocol::Join{by, name(topic), type, protocol::ConnectionType::socket});
  };
  EXPECT_EQ(join("open", {}, JoinType::pull), "ok");
  EXPECT_EQ(join("open-with-user", user, JoinType::pull), "ok");
  EXPECT_EQ(join("open-with-user", {}, JoinType::pull), "unauthorized_access");
  EXPECT_EQ(join("closed", user, JoinType::pull), "not_supported");
  EXPECT_EQ(join("closed", {}, JoinType::pull), "unauthorized_access");
  for (const JoinType type : {JoinType::pub, JoinType::push, JoinType::sub}) {
    EXPECT_EQ(join("open", {}, type), "invalid_request");
    EXPECT_EQ(join("closed", user, type), "invalid_request");
  }
}

TEST(CommandHandler, RemembersWhichEndpointsAreRaw) {
  Broker broker;
  broker.create("open", admin, {}, {.open = true});
  const auto topic = broker.catalogue->state().find("open")->definition.id;
  broker.code(protocol::Join{{}, name("open"), JoinType::pull, protocol::ConnectionType::socket});
  broker.code(protocol::Join{{}, name("open"), JoinType::pull});
  broker.restart();
  const auto& endpoints = broker.data_plane.endpoints_.at(topic.value);
  ASSERT_EQ(endpoints.size(), 2U);
  EXPECT_EQ(endpoints[0].connection_type, protocol::ConnectionType::socket);
  EXPECT_EQ(endpoints[1].connection_type, protocol::ConnectionType::zmq);
}

TEST(CommandHandler, OffersSessionsOverZeroMq) {
  Broker broker;
  broker.create("open", admin, {}, {.open = true});
  for (const auto type : {JoinType::push, JoinType::pull, JoinType::sub}) {
    EXPECT_EQ(broker.code(protocol::Join{{},
                                         name("open"),
                                         type,
                                         protocol::ConnectionType::zmq,
                                         protocol::Transport::tcp,
                                         false,
                                         protocol::Delivery::session}),
              "ok");
  }
}

TEST(CommandHandler, FillsInTheBrokersOwnFields) {
  Broker broker;
  broker.create("t");
  broker.join("t", {"user", "wrong"});
  broker.room.now_ms += 5000;
  const auto stats = std::get<protocol::BrokerStats>(broker.ask(protocol::Stats{admin, std::nullopt, true}));
  EXPECT_EQ(stats.topics, 1U);
  EXPECT_EQ(stats.auth_failures, 1U);
  EXPECT_EQ(stats.uptime_ms, 5000U);
  EXPECT_EQ(stats.messages_received, 77U);
  EXPECT_EQ(stats.data_dir, "/data");
  EXPECT_GT(stats.pid, 0U);
  EXPECT_FALSE(stats.version.empty());
}

TEST(CommandHandler, AnswersPingAndVersionToAllClientsUntilItStops) {
  Broker broker;
  EXPECT_EQ(broker.code(protocol::Ping{}), "ok");
  EXPECT_EQ(broker.code(protocol::Version{}), "ok");
  broker.handler->stop_accepting();
  EXPECT_EQ(broker.code(protocol::Ping{}), "shutting_down");
}

}  // namespace
}  // namespace lightq::broker
