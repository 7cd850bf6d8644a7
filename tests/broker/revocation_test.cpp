/// Tests of users in the client library, and of the errors that producers and consumers receive when a grant
/// is revoked.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <tuple>

#include "broker/embedded_broker.hpp"
#include "support/planted.hpp"

namespace lightq::testing {
namespace {

using namespace std::chrono_literals;

class Revocation : public ::testing::Test {
 protected:
  Revocation() {
    client.create_topic("orders", {.broker_type = BrokerType::file}).value_or_throw();
    client.create_user("ann", planted::user_password, {{"orders", {.produce = true, .consume = true}}})
        .value_or_throw();
  }
  [[nodiscard]] Client client_of(const std::string& user, const std::string& password) const {
    return Client::connect(broker.uri(), {.user = {user, password}, .discover_credentials = false})
        .value_or_throw();
  }
  /// Repeats `call` for at most 20 s, until it fails with another error than a timeout. Returns that error's
  /// code.
  template <typename Call>
  static ErrorCode code_in_the_end(Call&& call) {
    const auto deadline = std::chrono::steady_clock::now() + 20s;
    while (std::chrono::steady_clock::now() < deadline) {
      const auto result = call();
      if (!result && result.error().code != ErrorCode::timeout) return result.error().code;
      std::this_thread::yield();
    }
    return ErrorCode::timeout;
  }

  EmbeddedBroker broker;
  Client client = broker.client();
  Client ann = client_of("ann", planted::user_password);
};

TEST_F(Revocation, UsersAreMadeListedChangedAndDeleted) {
  const auto users = client.list_users().value_or_throw();
  ASSERT_EQ(users.size(), 1U);
  EXPECT_EQ(users[0].user_id, "ann");
  EXPECT_EQ(client.create_user("ann", "pw").error().code, ErrorCode::user_already_exists);
  client.grant("ann", {"*.eu", {.manage = true}}).value_or_throw();
  EXPECT_EQ(client.list_users().value_or_throw()[0].rights.size(), 2U);
  client.revoke("ann", {"*.eu", {.manage = true}}).value_or_throw();
  EXPECT_EQ(client.revoke("ann", {"*.eu", {.manage = true}}).error().code, ErrorCode::invalid_request);
  EXPECT_EQ(ann.list_topics().value_or_throw().size(), 1U) << "with its own credentials";
  EXPECT_EQ(ann.list_users().error().code, ErrorCode::unauthorized_access);
  ann.set_password("ann", planted::new_password).value_or_throw();
  EXPECT_EQ(ann.stats("orders").error().code, ErrorCode::unauthorized_access);
  EXPECT_TRUE(client_of("ann", planted::new_password).stats("orders").ok());
  client.set_topic_password("orders", planted::owner_password).value_or_throw();
  EXPECT_TRUE(client_of("alice", planted::owner_password).stats("orders").ok());
  client.delete_user("ann").value_or_throw();
  EXPECT_EQ(client.delete_user("ann").error().code, ErrorCode::user_not_found);
}

TEST_F(Revocation, AProducerLearnsOfItAndStopsTrying) {
  auto producer = ann.producer("orders").value_or_throw();
  producer.send("one").value_or_throw();
  producer.flush(20s).value_or_throw();
  client.revoke("ann", {"orders", {.produce = true}}).value_or_throw();
  const auto code = code_in_the_end([&] {
    const auto sent = producer.send("two");
    return sent ? producer.flush(1s) : Result<void>(sent.error());
  });
  EXPECT_EQ(code, ErrorCode::unauthorized_access);
  EXPECT_EQ(client.stats("orders").value_or_throw().messages_received, 1U);
}

TEST_F(Revocation, AConsumerIsToldAndItsMessagesGoToOthers) {
  auto consumer = ann.consumer("orders").value_or_throw();
  auto producer = client.producer("orders").value_or_throw();
  producer.send("one").value_or_throw();
  producer.flush(20s).value_or_throw();
  ASSERT_EQ(consumer.receive(20s).value_or_throw()->text(), "one");
  client.revoke("ann", {"orders", {.consume = true}}).value_or_throw();
  EXPECT_EQ(code_in_the_end([&] { return consumer.receive(100ms); }), ErrorCode::unauthorized_access);
  auto other = client.consumer("orders").value_or_throw();
  EXPECT_EQ(other.receive(20s).value_or_throw()->text(), "one");
}

/// The connections of a reader's session, unencrypted and encrypted.
class ReaderRevocation : public ::testing::TestWithParam<std::tuple<ConnectionType, Transport, bool>> {
 protected:
  ReaderRevocation() {
    client.create_topic("orders", {.broker_type = BrokerType::file}).value_or_throw();
    auto producer = client.producer("orders").value_or_throw();
    producer.send("one").value_or_throw();
    producer.flush(20s).value_or_throw();
    client.create_user("ann", planted::user_password, {{"orders", {.produce = true, .consume = true}}})
        .value_or_throw();
  }
  [[nodiscard]] Reader reader() const {
    auto ann = Client::connect(broker.uri(), {.user = {"ann", planted::user_password},
                                              .discover_credentials = false,
                                              .server_key = broker.server_key()})
                   .value_or_throw();
    const auto [connection, transport, encrypted] = GetParam();
    return ann.reader("orders", {.connection = connection}, transport).value_or_throw();
  }
  /// Returns the text of the first message, or the error of the read.
  static Result<std::string> read(Reader& reader) {
    std::string text;
    const auto next = reader.read({{0}, {1}}, [&](const Delivered& message) { text += message.text(); }, 20s);
    if (!next) return next.error();
    return text;
  }

  EmbeddedBroker broker{"tcp://127.0.0.1:0",
                        [](broker::Config& config) { config.encrypt = std::get<2>(GetParam()); }};
  Client client = broker.client();
};

TEST_P(ReaderRevocation, AReaderEndsWhenItsRightIsRevoked) {
  auto ours = reader();
  ASSERT_EQ(read(ours).value_or_throw(), "one");
  client.revoke("ann", {"orders", {.produce = true}}).value_or_throw();
  EXPECT_EQ(read(ours).value_or_throw(), "one") << "that was for something else";
  client.revoke("ann", {"orders", {.consume = true}}).value_or_throw();
  const auto refused = read(ours);
  ASSERT_FALSE(refused.ok()) << *refused;
  EXPECT_EQ(refused.error().code, ErrorCode::unauthorized_access);
  client.grant("ann", {"orders", {.consume = true}}).value_or_throw();
  auto another = reader();
  EXPECT_EQ(read(another).value_or_throw(), "one");
}

TEST_P(ReaderRevocation, AReaderEndsWhenItsPasswordChanges) {
  auto ours = reader();
  ASSERT_EQ(read(ours).value_or_throw(), "one");
  client.set_password("ann", planted::new_password).value_or_throw();
  EXPECT_EQ(read(ours).error().code, ErrorCode::unauthorized_access);
}

TEST_P(ReaderRevocation, AReaderEndsWhenItsUserIsDeleted) {
  auto ours = reader();
  ASSERT_EQ(read(ours).value_or_throw(), "one");
  client.delete_user("ann").value_or_throw();
  EXPECT_EQ(read(ours).error().code, ErrorCode::unauthorized_access);
  client.create_user("ann", planted::user_password, {{"orders", {.consume = true}}}).value_or_throw();
  EXPECT_EQ(read(ours).error().code, ErrorCode::unauthorized_access) << "it is somebody else";
}

INSTANTIATE_TEST_SUITE_P(Ways, ReaderRevocation,
                         ::testing::Combine(::testing::Values(ConnectionType::socket, ConnectionType::zmq),
                                            ::testing::Values(Transport::tcp, Transport::ipc),
                                            ::testing::Bool()),
                         [](const auto& tested) {
                           return std::string(protocol::to_word(std::get<0>(tested.param))) + "_" +
                                  std::string(protocol::to_word(std::get<1>(tested.param))) +
                                  (std::get<2>(tested.param) ? "_encrypted" : "_clear");
                         });

TEST_F(Revocation, PlainProducersAndConsumersLearnOfItToo) {
  auto producer = ann.plain_producer("orders").value_or_throw();
  auto consumer = ann.plain_consumer("orders").value_or_throw();
  producer.send("one").value_or_throw();
  ASSERT_EQ(consumer.receive(20s).value_or_throw()->text(), "one");
  client.delete_user("ann").value_or_throw();
  EXPECT_EQ(code_in_the_end([&] { return producer.send("two"); }), ErrorCode::unauthorized_access);
  EXPECT_EQ(code_in_the_end([&] { return consumer.receive(100ms); }), ErrorCode::unauthorized_access);
}

}  // namespace
}  // namespace lightq::testing
