/// Tests of clients' keys: the records in the catalogue, and the requests and replies of joins to a broker
/// that encrypts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/catalogue_room.hpp"
#include "control/commands_under_test.hpp"
#include "control/fake_data_plane.hpp"
#include "control/loop_thread.hpp"
#include "support/planted.hpp"

namespace lightq::broker {
namespace {

using protocol::JoinType;
using test::CatalogueRoom;
using test::name;
using test::run_until;
using testing::HasSubstr;

constexpr std::uint64_t now_ms = 1'800'000'000'000;

CurvePublicKey key_of(std::uint8_t seed) {
  CurvePublicKey key{};
  key.fill(std::byte{seed});
  return key;
}

TEST(ClientKeyCatalogue, RemembersKeysOverARestartAndForgetsThoseThatHaveExpired) {
  CatalogueRoom room;
  TopicId topic, other;
  const auto of = [&](std::uint8_t seed, EndpointRole role, std::uint64_t expires_ms) {
    return ClientKeyRecord{key_of(seed), {topic, role}, expires_ms, 7, 9};
  };
  {
    const auto catalogue = room.open();
    topic = catalogue->add_topic(name("a"), {}, 0)->id;
    other = catalogue->add_topic(name("b"), {}, 0)->id;
    ASSERT_TRUE(catalogue->put_client_key(of(1, EndpointRole::produce, now_ms + 1000)).ok());
    ASSERT_TRUE(catalogue->put_client_key(of(1, EndpointRole::sub, now_ms + 1000)).ok());
    ASSERT_TRUE(catalogue->put_client_key(of(2, EndpointRole::produce, now_ms + 10)).ok());
    ASSERT_TRUE(catalogue->put_client_key(of(3, EndpointRole::produce, now_ms + 10)).ok());
    ASSERT_TRUE(catalogue->put_client_key(of(3, EndpointRole::produce, now_ms + 5000)).ok()) << "renewed";
    ASSERT_TRUE(
        catalogue->put_client_key({key_of(1), {other, EndpointRole::pull}, now_ms + 5000, 0, 0}).ok());
    EXPECT_EQ(catalogue->state().client_key_count(topic), 4U);
    ASSERT_TRUE(catalogue->remove_topic(other).ok());
  }
  room.now_ms += 10;
  const auto catalogue = room.open();
  EXPECT_EQ(catalogue->state().client_keys_of(topic),
            (std::vector{of(1, EndpointRole::produce, now_ms + 1000), of(1, EndpointRole::sub, now_ms + 1000),
                         of(3, EndpointRole::produce, now_ms + 5000)}));
  EXPECT_TRUE(catalogue->state().client_keys_of(other).empty());
  // A compacted log has the same records.
  CatalogueState again;
  for (const auto& change : catalogue->state().snapshot()) again.apply(decode_change(encode(change)).value());
  EXPECT_EQ(again.client_keys_of(topic), catalogue->state().client_keys_of(topic));
  EXPECT_TRUE(room.sink.lines.empty());
}

TEST(ClientKeyCatalogue, OnlyExpiredKeysAreEvicted) {
  CatalogueRoom room;
  auto options = room.options();
  options.client_keys_per_topic_max = 3;
  const auto catalogue = Catalogue::open(room.path(), options, room.sink).value_or_throw();
  const TopicId topic = catalogue->add_topic(name("a"), {}, 0)->id;
  const auto put = [&](std::uint8_t seed, std::uint64_t expires_ms) {
    return catalogue->put_client_key({key_of(seed), {topic, EndpointRole::pull}, expires_ms, 0, 0});
  };
  ASSERT_TRUE(put(1, now_ms + 10).ok());
  ASSERT_TRUE(put(2, now_ms + 10).ok());
  ASSERT_TRUE(put(3, now_ms + 1000).ok());
  const auto refused = put(4, now_ms + 1000);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::limit_reached);
  EXPECT_THAT(refused.error().text(), HasSubstr("3 keys"));
  EXPECT_TRUE(put(3, now_ms + 2000).ok()) << "renewed";
  room.now_ms += 10;
  ASSERT_TRUE(put(4, now_ms + 1000).ok());
  EXPECT_EQ(catalogue->state().client_key_count(topic), 2U);
  EXPECT_EQ(catalogue->state().client_key(key_of(1), {topic, EndpointRole::pull}), nullptr);
}

TEST(ClientKeyCatalogue, ARecordThatMakesNoSenseIsReported) {
  const std::string good = encode(ClientKeyPut{{key_of(1), {TopicId{1}, EndpointRole::sub}, 5, 0, 0}});
  EXPECT_TRUE(decode_change(good).ok());
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  for (const auto& bad : {with("\"sub\"", "\"push\""), with("\"topic_id\":1", "\"topic_id\":0"),
                          with(to_z85(key_of(1)), "short"), with("\"expires_ms\":5", "\"expires_ms\":-5")})
    EXPECT_FALSE(decode_change(bad).ok()) << bad;
}

/// A handler of a broker that encrypts.
constexpr std::size_t keys_max = 64;  // of a topic

class Encrypting : public ::testing::Test {
 protected:
  Encrypting() {
    data_plane_.ticket = protocol::Ticket{"id", planted::ticket_secret, now_ms + 1'000'000};
    handler_.bring_up([] {});
  }
  protocol::Reply ask(const protocol::Request& request) {
    std::optional<protocol::Reply> reply;
    handler_.handle(request, [&](protocol::Reply got) { reply = std::move(got); });
    run_until(loop_, [&] { return reply.has_value(); });
    return reply.value_or(protocol::ErrorReply{});
  }
  protocol::Join join(const std::optional<CurvePublicKey>& key) {
    protocol::Join request{{"lightq_admin", planted::admin_password}, name("t"), JoinType::pull};
    request.as_admin = true;
    request.client_key = key;
    return request;
  }
  std::unique_ptr<Catalogue> open_for_few_keys() {
    auto options = room_.options();
    options.client_keys_per_topic_max = keys_max;
    return Catalogue::open(room_.path(), options, room_.sink).value_or_throw();
  }
  void create(bool open) {
    protocol::TopicSettings settings;
    settings.open = open;
    ask(protocol::CreateTopic{{"lightq_admin", planted::admin_password}, name("t"), settings, {}});
    topic_ = catalogue_->state().find("t")->definition.id;
  }

  EventLoop loop_;
  CatalogueRoom room_;
  std::unique_ptr<Catalogue> catalogue_ = open_for_few_keys();
  Authenticator authenticator_{loop_, "lightq_admin", Secret(planted::admin_password)};
  test::FakeDataPlane data_plane_{loop_};
  ClientKeys keys_;
  const std::string server_key_ = to_z85(key_of(77));
  test::CommandsUnderTest handler_{loop_,
                                   *catalogue_,
                                   authenticator_,
                                   data_plane_,
                                   room_.sink,
                                   OperationSettings{.data_dir = "/data",
                                                     .now = [this] { return room_.now(); },
                                                     .server_key = server_key_,
                                                     .client_keys = &keys_}};
  TopicId topic_;
};

TEST_F(Encrypting, APlainJoinRegistersItsKeyDurablyBeforeItIsAnswered) {
  create(false);
  const auto reply = ask(join(key_of(1)));
  ASSERT_TRUE(std::holds_alternative<protocol::JoinReply>(reply));
  EXPECT_EQ(std::get<protocol::JoinReply>(reply).server_key, server_key_);
  EXPECT_FALSE(catalogue_->unflushed());
  EXPECT_NE(catalogue_->state().client_key(key_of(1), {topic_, EndpointRole::pull}), nullptr);
  EXPECT_EQ(keys_.size(), 1U);
  ask(protocol::DeleteTopic{{"lightq_admin", planted::admin_password}, name("t")});
  EXPECT_EQ(keys_.size(), 0U);
}

TEST_F(Encrypting, APlainJoinWithoutAKeyIsRefusedAndOpensNothing) {
  create(false);
  const auto reply = ask(join(std::nullopt));
  ASSERT_TRUE(std::holds_alternative<protocol::ErrorReply>(reply));
  EXPECT_EQ(std::get<protocol::ErrorReply>(reply).code, ErrorCode::invalid_request);
  EXPECT_THAT(std::get<protocol::ErrorReply>(reply).description, HasSubstr("client_key"));
  EXPECT_TRUE(catalogue_->state().endpoints_of(topic_).empty());
}

TEST_F(Encrypting, OpenTopicsAndSessionsRegisterNothing) {
  create(true);
  EXPECT_TRUE(std::holds_alternative<protocol::JoinReply>(ask(join(std::nullopt))));
  EXPECT_TRUE(std::holds_alternative<protocol::JoinReply>(ask(join(key_of(1)))));
  auto session = join(std::nullopt);
  session.delivery = protocol::Delivery::session;
  EXPECT_EQ(std::get<protocol::JoinReply>(ask(session)).server_key, server_key_);
  session.connection_type = protocol::ConnectionType::socket;
  EXPECT_EQ(std::get<protocol::JoinReply>(ask(session)).server_key, "") << "CURVE is of ZeroMQ";
  EXPECT_EQ(keys_.size(), 0U);
}

TEST_F(Encrypting, AnEndpointIsClosedAgainIfTheKeyHasNoPlace) {
  create(false);
  for (std::size_t i = 0; i < keys_max; ++i) {
    CurvePublicKey key{};
    key[0] = static_cast<std::byte>(i & 0xFFU);
    key[1] = static_cast<std::byte>(i >> 8U);
    key[2] = std::byte{1};
    ASSERT_TRUE(catalogue_->put_client_key({key, {topic_, EndpointRole::pull}, now_ms + 1000, {}}).ok());
  }
  // The present keys belong to no user, so no user is over its quota.
  const auto reply = ask(join(key_of(1)));
  ASSERT_TRUE(std::holds_alternative<protocol::ErrorReply>(reply));
  EXPECT_EQ(std::get<protocol::ErrorReply>(reply).code, ErrorCode::limit_reached);
  EXPECT_EQ(data_plane_.left.size(), 1U);
  EXPECT_EQ(keys_.size(), 0U);
}

TEST_F(Encrypting, OneUserTakesNoMoreThanHalfOfATopicsKeys) {
  create(false);
  constexpr std::uint64_t greedy = 4711;
  const auto put = [&](std::size_t i, std::uint64_t user) {
    CurvePublicKey key{};
    key[0] = static_cast<std::byte>(i & 0xFFU);
    key[1] = static_cast<std::byte>(i >> 8U);
    key[2] = static_cast<std::byte>(user & 0xFFU);
    return catalogue_->put_client_key({key, {topic_, EndpointRole::pull}, now_ms + 1000 + i, {user, 1}});
  };
  const std::size_t half = keys_max / 2;
  for (std::size_t i = 0; i < half + 50; ++i) ASSERT_TRUE(put(i, greedy).ok());
  EXPECT_EQ(catalogue_->state().client_key_count(topic_), half) << "its own that ended first made room";
  EXPECT_TRUE(put(0, 2).ok());
  EXPECT_TRUE(std::holds_alternative<protocol::JoinReply>(ask(join(key_of(1)))));
}

TEST_F(Encrypting, AnEvictedKeyAdmitsNoClientAnyMore) {
  create(false);
  const Grant grant{topic_, EndpointRole::pull};
  const auto record = [&](std::size_t i) {
    const std::uint64_t user = 4711 + i % 2;  // both users are unknown, as after their deletion
    CurvePublicKey key{};
    key[0] = static_cast<std::byte>(i & 0xFFU);
    key[1] = static_cast<std::byte>(i >> 8U);
    return ClientKeyRecord{key, grant, now_ms + 1000 + i, {user, 1}};
  };
  for (std::size_t i = 0; i < keys_max; ++i) ASSERT_TRUE(catalogue_->put_client_key(record(i)).ok());
  keys_.put(record(0));
  keys_.put(record(1));
  ASSERT_TRUE(std::holds_alternative<protocol::JoinReply>(ask(join(key_of(1)))));
  EXPECT_EQ(keys_.size(), 1U) << "the new one";
  EXPECT_NE(keys_.check(record(0).key, grant, Timestamp{now_ms * 1000}).fault, "");
  EXPECT_EQ(catalogue_->state().client_key_count(topic_), 1U);
}

}  // namespace
}  // namespace lightq::broker
