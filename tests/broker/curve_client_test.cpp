/// Tests of the client library with a broker that encrypts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <lightq/client.hpp>
#include <lightq/client_key_file.hpp>
#include <lightq/protocol/json.hpp>

#include "broker/embedded_broker.hpp"
#include "support/temp_dir.hpp"

#include "support/planted.hpp"

namespace lightq {
namespace {

using namespace std::chrono_literals;
using testing::EmbeddedBroker;
using ::testing::HasSubstr;

class Encrypted : public ::testing::Test {
 protected:
  [[nodiscard]] static std::string key_of(const EmbeddedBroker& broker) {
    std::ostringstream text;
    text << std::ifstream(broker.data_dir() / "broker.json").rdbuf();
    const auto file = protocol::parse_broker_file(text.str());
    return file ? file->server_key : std::string();
  }
  [[nodiscard]] static ClientOptions options(std::string server_key) {
    return {.user = {"alice", planted::user_password},
            .admin = {"lightq_admin", planted::admin_password},
            .discover_credentials = false,
            .server_key = std::move(server_key),
            .request_timeout = 60s};
  }
  [[nodiscard]] Client client() const {
    return Client::connect(broker.uri(), options(key_of(broker))).value_or_throw();
  }
  /// Polls `condition` until it holds, for at most 20 s.
  template <typename Condition>
  static ::testing::AssertionResult comes(Condition&& condition) {
    const auto deadline = std::chrono::steady_clock::now() + 20s;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) return ::testing::AssertionFailure() << "not in time";
      std::this_thread::yield();
    }
    return ::testing::AssertionSuccess();
  }

  std::chrono::milliseconds ticket_lifetime{60'000};
  EmbeddedBroker broker{"tcp://127.0.0.1:0", [this](broker::Config& config) {
                          config.encrypt = true;
                          config.ticket_lifetime = ticket_lifetime;
                        }};
};

TEST_F(Encrypted, PlainProducersAndConsumersPassMessages) {
  Client made = client();
  made.create_topic("orders", {.broker_type = BrokerType::file}).value_or_throw();
  for (const Transport transport : {Transport::tcp, Transport::ipc}) {
    auto subscriber =
        made.plain_consumer("orders", {.mode = Mode::sub, .transport = transport}).value_or_throw();
    auto producer = made.plain_producer("orders", {.transport = transport}).value_or_throw();
    ASSERT_TRUE(comes([&] { return made.stats("orders").value_or_throw().subscribers_count == 1; }));
    const std::string large(1 << 20, 'x');
    for (const std::string& text : {std::string("one"), large, std::string()})
      producer.send(text).value_or_throw();
    auto puller = made.plain_consumer("orders", {.transport = transport}).value_or_throw();
    for (const std::string& text : {std::string("one"), large, std::string()}) {
      EXPECT_EQ(subscriber.receive(20s).value_or_throw()->text(), text);
      EXPECT_EQ(puller.receive(20s).value_or_throw()->text(), text);
    }
    puller.leave().value_or_throw();
    subscriber.leave().value_or_throw();
    subscriber.close();
    ASSERT_TRUE(comes([&] { return made.stats("orders").value_or_throw().subscribers_count <= 1; }));
  }
  EXPECT_EQ(made.stats("orders").value_or_throw().refused_connections, 0U);
  EXPECT_TRUE(made.stats().value_or_throw().encrypted);
}

TEST_F(Encrypted, SessionsOverZeromqPassMessages) {
  Client made = client();
  made.create_topic("orders").value_or_throw();
  ProducerOptions producing;
  producing.connection = ConnectionType::zmq;
  ConsumerOptions consuming;
  consuming.connection = ConnectionType::zmq;
  auto producer = made.producer("orders", producing).value_or_throw();
  for (const std::size_t bytes : {5U, 1U << 20U, 8U << 20U})
    producer.send(std::string(bytes, 's')).value_or_throw();
  producer.flush(20s).value_or_throw();
  auto consumer = made.consumer("orders", consuming).value_or_throw();
  for (const std::size_t bytes : {5U, 1U << 20U, 8U << 20U}) {
    const auto message = consumer.receive(20s).value_or_throw();
    ASSERT_TRUE(message.has_value());
    EXPECT_EQ(message->payload.size(), bytes);
    consumer.acknowledge(*message);
  }
}

TEST_F(Encrypted, AClientWithoutTheRightKeyFailsImmediately) {
  const auto began = std::chrono::steady_clock::now();
  const auto none = Client::connect(broker.uri(), options(""));
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, ErrorCode::unauthorized_access);
  EXPECT_THAT(none.error().text(), HasSubstr("requires encryption"));

  const auto other = CurveIdentity::make(key_of(broker)).value_or_throw()->public_key();
  const auto wrong = Client::connect(broker.uri(), options(other));
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().code, ErrorCode::unauthorized_access);
  EXPECT_THAT(wrong.error().text(), HasSubstr("refuses the connection. Its key may differ"));

  const auto nonsense = Client::connect(broker.uri(), options("no key"));
  ASSERT_FALSE(nonsense.ok());
  EXPECT_EQ(nonsense.error().code, ErrorCode::invalid_argument);
  EXPECT_LT(std::chrono::steady_clock::now() - began, 30s) << "no waiting for the timeout";
}

TEST_F(Encrypted, AClientWithAKeySendsNothingToABrokerWithoutEncryption) {
  const EmbeddedBroker clear;
  const auto refused = Client::connect(clear.uri(), options(key_of(broker)));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::unauthorized_access);
  EXPECT_THAT(refused.error().text(), HasSubstr("does not encrypt"));
}

TEST_F(Encrypted, OnTheSameMachineTheKeyIsFound) {
  ClientOptions found = options("");
  found.discover_credentials = true;
  found.data_dir = broker.data_dir();
  EXPECT_TRUE(Client::connect(broker.uri(), found).ok());
  EXPECT_EQ(Client::connect(broker.uri(), found).value_or_throw().options().server_key, key_of(broker));
}

TEST_F(Encrypted, AProducerRegistersItsKeyAgainWhenTheOldRegistrationHasExpired) {
  ticket_lifetime = 100ms;
  broker.stop();
  broker.start();
  Client made = client();
  made.create_topic("orders", {.broker_type = BrokerType::file}).value_or_throw();
  auto producer = made.plain_producer("orders").value_or_throw();
  producer.send("before").value_or_throw();
  ASSERT_TRUE(comes([&] { return made.stats("orders").value_or_throw().messages_received == 1; }));
  const auto expired = std::chrono::steady_clock::now() + 150ms;
  broker.stop();
  ticket_lifetime = 60s;
  ASSERT_TRUE(comes([&] { return std::chrono::steady_clock::now() > expired; }));
  broker.start();
  ASSERT_TRUE(comes([&] {
    (void)producer.connected();
    return producer.refused();
  }));
  producer.send("after").value_or_throw();
  ASSERT_TRUE(comes([&] { return made.stats("orders").value_or_throw().messages_received == 1; }));
  auto consumer = made.plain_consumer("orders").value_or_throw();
  EXPECT_EQ(consumer.receive(20s).value_or_throw()->text(), "before");
  EXPECT_EQ(consumer.receive(20s).value_or_throw()->text(), "after");
}

TEST_F(Encrypted, AnAddressForOtherSocketsContainsTheKeys) {
  Client made = client();
  made.create_topic("orders").value_or_throw();
  const auto address = made.join("orders", protocol::JoinType::push).value_or_throw();
  ASSERT_NE(address.identity, nullptr);
  EXPECT_EQ(address.identity->server_key(), key_of(broker));
  zmq::context_t context;
  zmq::socket_t socket(context, zmq::socket_type::push);
  address.identity->show(socket);
  socket.connect(address.uri);
  socket.send(zmq::str_buffer("mine"), zmq::send_flags::none);
  EXPECT_TRUE(comes([&] { return made.stats("orders").value_or_throw().messages_received == 1; }));
}

/// A broker that admits only the clients with a key on its list.
class Listed : public ::testing::Test {
 protected:
  [[nodiscard]] std::string path(const std::string& name) const { return directory / name; }
  [[nodiscard]] std::string make_key(const std::string& name) const {
    return make_client_key(path(name)).value_or_throw();
  }
  [[nodiscard]] Result<Client> connect(const std::string& key_file) const {
    return Client::connect(broker.uri(), {.user = {"alice", planted::user_password},
                                          .admin = {"lightq_admin", planted::admin_password},
                                          .discover_credentials = false,
                                          .server_key = broker.server_key(),
                                          .client_key_file = key_file,
                                          .request_timeout = 60s});
  }

  test::TempDir directory;
  const std::string listed_key = make_key("listed.key");
  EmbeddedBroker broker{"tcp://127.0.0.1:0", [this](broker::Config& config) {
                          config.encrypt = true;
                          config.allowed_client_keys = path("allowed");
                          std::ofstream(path("allowed")) << listed_key << " # the operator\n";
                        }};
};

TEST_F(Listed, AClientWithAListedKeyCanDoEverything) {
  Client made = connect(path("listed.key")).value_or_throw();
  made.create_topic("orders").value_or_throw();
  made.create_user("ann", planted::other_password).value_or_throw();
  auto producer = made.plain_producer("orders").value_or_throw();
  producer.send("one").value_or_throw();
  auto consumer = made.plain_consumer("orders").value_or_throw();
  EXPECT_EQ(consumer.receive(20s).value_or_throw()->text(), "one");
  ProducerOptions over_zmq;
  over_zmq.connection = ConnectionType::zmq;
  EXPECT_TRUE(made.producer("orders", over_zmq).ok());
  EXPECT_TRUE(made.producer("orders").ok());
}

TEST_F(Listed, DataSocketsHaveTheirOwnKeys) {
  Client made = connect(path("listed.key")).value_or_throw();
  made.create_topic("orders").value_or_throw();
  const auto address = made.join("orders", protocol::JoinType::push).value_or_throw();
  ASSERT_NE(address.identity, nullptr);
  EXPECT_NE(address.identity->public_key(), listed_key);
  EXPECT_EQ(address.identity->file(), "");
}

TEST_F(Listed, AClientThatIsNotListedIsToldTheReason) {
  const auto none = connect("");
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, ErrorCode::unauthorized_access);
  EXPECT_THAT(none.error().text(), HasSubstr("allowed_client_keys"));
  EXPECT_THAT(none.error().text(), HasSubstr("--client-key-file"));
  const std::string other = make_key("other.key");
  const auto unlisted = connect(path("other.key"));
  ASSERT_FALSE(unlisted.ok());
  EXPECT_EQ(unlisted.error().code, ErrorCode::unauthorized_access);
  EXPECT_THAT(unlisted.error().text(), HasSubstr("the key of " + path("other.key") + " is " + other));
}

TEST_F(Listed, AKeyFileIsForItsOwnerOnly) {
  namespace fs = std::filesystem;
  EXPECT_EQ(fs::status(path("listed.key")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  fs::permissions(path("listed.key"), fs::perms::group_read, fs::perm_options::add);
  const auto open_to_others = connect(path("listed.key"));
  ASSERT_FALSE(open_to_others.ok());
  EXPECT_EQ(open_to_others.error().code, ErrorCode::invalid_argument);
  EXPECT_THAT(open_to_others.error().text(),
              HasSubstr("listed.key contains a client's secret key and is open"));
  EXPECT_EQ(connect(path("none.key")).error().code, ErrorCode::io_error);
  std::ofstream(path("bad.key")) << "no key\n";
  fs::permissions(path("bad.key"), fs::perms::owner_read);
  const auto bad = connect(path("bad.key"));
  EXPECT_EQ(bad.error().code, ErrorCode::invalid_argument);
  EXPECT_THAT(bad.error().text(), HasSubstr("contains no secret key"));
}

TEST_F(Listed, AnExistingFileIsNotOverwritten) {
  const auto again = make_client_key(path("listed.key"));
  ASSERT_FALSE(again.ok());
  EXPECT_THAT(again.error().text(), HasSubstr("exists already"));
  EXPECT_EQ(read_client_key(path("listed.key")).value_or_throw().public_key, listed_key);
}

TEST(ClientKeyFile, IsNotReadWithoutEncryption) {
  const EmbeddedBroker clear;
  EXPECT_TRUE(
      Client::connect(clear.uri(), {.discover_credentials = false, .client_key_file = "none.key"}).ok());
}

}  // namespace
}  // namespace lightq
