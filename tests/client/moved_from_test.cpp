/// Tests of clients, and of plain producers and consumers, that were moved from: they are closed.
#include <gmock/gmock.h>

#include <optional>
#include <string>
#include <utility>

#include <lightq/client.hpp>

#include "client/fake_broker.hpp"

#include "support/planted.hpp"

// Most lines use objects that were moved from.
// NOLINTBEGIN(bugprone-use-after-move,hicpp-invalid-access-moved,clang-analyzer-cplusplus.Move)
namespace lightq::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

template <typename T>
void expect_moved_from(const Result<T>& result) {
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::closed) << result.error().text();
}

Client client_beside(const FakeBroker& broker) {
  return Client::connect(broker.uri(),
                         {.user = {"alice", planted::user_password}, .discover_credentials = false})
      .value_or_throw();
}

TEST(MovedFrom, AClientIsClosed) {
  FakeEndpoint endpoint(zmq::socket_type::pull);
  const FakeBroker broker(answers_with(endpoint.uri()));
  Client from = client_beside(broker);
  const auto check = [](Client& moved) {
    expect_moved_from(moved.create_topic("orders"));
    expect_moved_from(moved.delete_topic("orders"));
    expect_moved_from(moved.list_topics());
    expect_moved_from(moved.create_user("bob", "secret"));
    expect_moved_from(moved.delete_user("bob"));
    expect_moved_from(moved.grant("bob", {}));
    expect_moved_from(moved.revoke("bob", {}));
    expect_moved_from(moved.set_password("bob", "secret"));
    expect_moved_from(moved.set_topic_password("orders", "secret"));
    expect_moved_from(moved.list_users());
    expect_moved_from(moved.delete_group("orders", "group"));
    expect_moved_from(moved.pause("orders"));
    expect_moved_from(moved.resume("orders"));
    expect_moved_from(moved.purge("orders"));
    expect_moved_from(moved.stats("orders"));
    expect_moved_from(moved.stats());
    expect_moved_from(moved.version());
    expect_moved_from(moved.producer("orders"));
    expect_moved_from(moved.consumer("orders"));
    expect_moved_from(moved.reader("orders"));
    expect_moved_from(moved.plain_producer("orders"));
    expect_moved_from(moved.plain_consumer("orders"));
    expect_moved_from(moved.join("orders", protocol::JoinType::push));
    expect_moved_from(moved.leave("orders", "tcp://127.0.0.1:1"));
    EXPECT_EQ(moved.uri(), "");
    EXPECT_EQ(moved.options().user.user_id, "");
    EXPECT_FALSE(moved.exposed());
    const Result<void> ping = moved.ping();
    ASSERT_FALSE(ping.ok());
    EXPECT_THAT(ping.error().message, HasSubstr("was moved from"));
  };
  {
    Client to = std::move(from);
    check(from);
    EXPECT_TRUE(to.plain_producer("orders").ok());
  }
  check(from);
  from = client_beside(broker);
  EXPECT_TRUE(from.plain_producer("orders").ok());
}

TEST(MovedFrom, APlainProducerIsClosed) {
  FakeEndpoint endpoint(zmq::socket_type::pull);
  const FakeBroker broker(answers_with(endpoint.uri()));
  Client client = client_beside(broker);
  auto from = client.plain_producer("orders").value_or_throw();
  from.send(std::string(limits::counted_message_bytes_min, 'x')).value_or_throw();
  ASSERT_TRUE(from.connected());
  const auto check = [](PlainProducer& moved) {
    EXPECT_FALSE(moved.connected());
    EXPECT_FALSE(moved.wait_connected(10s));
    EXPECT_FALSE(moved.refused());
    expect_moved_from(moved.send("x"));
    expect_moved_from(moved.send("x", 10s));
    EXPECT_EQ(moved.try_send("x"), SendOutcome::closed);
    expect_moved_from(moved.rejoin());
    EXPECT_TRUE(moved.close(10s).ok()) << "as a second close";
    EXPECT_EQ(moved.unsent_bytes(), 0U);
    EXPECT_EQ(moved.topic() + moved.bind_uri(), "");
  };
  {
    auto to = std::move(from);
    check(from);
    EXPECT_TRUE(to.send("second").ok());
    EXPECT_EQ(endpoint.receive().size(), limits::counted_message_bytes_min);
    EXPECT_EQ(endpoint.receive(), "second");
  }
  check(from);
}

TEST(MovedFrom, APlainConsumerIsClosed) {
  FakeEndpoint endpoint(zmq::socket_type::push);
  const FakeBroker broker(answers_with(endpoint.uri()));
  Client client = client_beside(broker);
  auto from = client.plain_consumer("orders").value_or_throw();
  ASSERT_TRUE(from.connected());
  const auto check = [](PlainConsumer& moved) {
    EXPECT_FALSE(moved.connected());
    EXPECT_FALSE(moved.wait_connected(10s));
    EXPECT_FALSE(moved.refused());
    expect_moved_from(moved.receive(10s));
    for (const Message& message : moved.messages(10s)) FAIL() << message.text();
    expect_moved_from(moved.leave());
    expect_moved_from(moved.rejoin());
    EXPECT_FALSE(moved.finished());
    EXPECT_EQ(moved.outstanding(), 0U);
    EXPECT_EQ(moved.descriptor(), -1);
    EXPECT_EQ(moved.topic() + moved.bind_uri(), "");
    moved.close();
  };
  {
    auto to = std::move(from);
    check(from);
    EXPECT_TRUE(to.connected());
  }
  check(from);
}

}  // namespace
}  // namespace lightq::testing
// NOLINTEND(bugprone-use-after-move,hicpp-invalid-access-moved,clang-analyzer-cplusplus.Move)
