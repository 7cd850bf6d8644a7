/// Tests of Client: requests, deadlines, credentials, threads.
#include <lightq/client.hpp>
#include <lightq/impl/request_credentials.hpp>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "client/fake_broker.hpp"

#include "support/no_descriptors.hpp"
#include "support/planted.hpp"

namespace lightq::testing {
namespace {

using namespace std::chrono_literals;

ClientOptions quick() {
  return {.user = {"alice", planted::user_password},
          .admin = {"root", planted::admin_password},
          .discover_credentials = false,
          .request_timeout = 5s};
}

/// Remembers the last request that a fake broker received.
struct Seen {
  std::mutex mutex;
  std::optional<protocol::Request> last;
  FakeBroker::Answer then(FakeBroker::Answer answer) {
    return [this, answer = std::move(answer)](const protocol::Request& request) {
      const std::scoped_lock lock(mutex);
      last = request;
      return answer(request);
    };
  }
  template <typename T>
  T get() {
    const std::scoped_lock lock(mutex);
    return std::get<T>(*last);
  }
};

/// Returns the error of connecting to `uri`. The long timeout shows that the error comes immediately.
Error cannot_connect(const std::string& uri) {
  ClientOptions options{.discover_credentials = false};
  options.request_timeout = 1h;
  const auto client = Client::connect(uri, options);
  if (client.ok()) return {ErrorCode::internal, "it can"};
  EXPECT_NE(client.error().message.find(uri), std::string::npos) << client.error().text();
  return client.error();
}

TEST(Client, FailsWithTooFewDescriptors) {
  ClientOptions options{.discover_credentials = false};
  options.request_timeout = 100ms;
  for (rlim_t few = 0; few < 24; ++few) {
    zmq::context_t own;  // a context of the program, not in use yet
    const test::NoDescriptors limited(few);
    for (zmq::context_t* const context : {static_cast<zmq::context_t*>(nullptr), &own}) {
      options.context = context;
      const auto client = Client::connect("tcp://127.0.0.1:1", options);
      ASSERT_FALSE(client.ok());
      if (few < 8) {
        EXPECT_EQ(client.error().code, ErrorCode::limit_reached) << few << client.error().text();
      }
    }
  }
}

TEST(Client, FailsImmediatelyWhenNoBrokerListens) {
  const Error refused = cannot_connect("tcp://127.0.0.1:1");
  EXPECT_EQ(refused.code, ErrorCode::io_error);
  EXPECT_EQ(refused.system_error, ECONNREFUSED);
  const Error missing = cannot_connect("ipc:///nowhere/lightq.sock");
  EXPECT_EQ(missing.code, ErrorCode::io_error);
  EXPECT_EQ(missing.system_error, ENOENT);
}

TEST(Client, DistinguishesAnUnknownHostFromAnInvalidPort) {
  const Error unknown = cannot_connect("tcp://no-such-host.invalid:5000");
  // Without a name server the client cannot know that the host does not exist.
  EXPECT_TRUE(unknown.code == ErrorCode::invalid_argument || unknown.code == ErrorCode::io_error);
  EXPECT_NE(unknown.message.find("'no-such-host.invalid'"), std::string::npos) << unknown.text();
  for (const char* port : {"0", "65536", "99999", "99999999999"}) {
    const Error none = cannot_connect(std::string("tcp://127.0.0.1:") + port);
    EXPECT_EQ(none.code, ErrorCode::invalid_argument);
    EXPECT_NE(none.message.find("is not 1 to 65535"), std::string::npos) << none.text();
  }
}

TEST(Client, WaitsForABrokerThatListensButDoesNotReplyYet) {
  FakeBroker broker([](const protocol::Request&) -> std::optional<protocol::Reply> { return std::nullopt; });
  ClientOptions options = quick();
  options.request_timeout = 300ms;
  const auto client = Client::connect(broker.uri(), options);
  ASSERT_FALSE(client.ok());
  EXPECT_EQ(client.error().code, ErrorCode::timeout) << client.error().text();
}

TEST(Client, NamesTheUserOfRefusedCredentials) {
  FakeBroker broker([](const protocol::Request& request) -> std::optional<protocol::Reply> {
    if (std::holds_alternative<protocol::Ping>(request)) return protocol::OkReply{"ping", "", std::nullopt};
    if (std::holds_alternative<protocol::Stats>(request))
      return protocol::ErrorReply{"", ErrorCode::unauthorized_access, "its own words"};
    return protocol::ErrorReply{"", ErrorCode::unauthorized_access, "unauthorized_access"};
  });
  auto client = Client::connect(broker.uri(), quick()).value_or_throw();
  EXPECT_EQ(client.delete_topic("orders").error().message,
            "user 'root' is refused: the user does not exist, or the password is wrong (topic 'orders', "
            "broker " +
                broker.uri() + ")");
  EXPECT_EQ(client.plain_producer("orders").error().message,
            "user 'alice' is refused: the user does not exist, or the password is wrong (topic 'orders', "
            "broker " +
                broker.uri() + ")");
  EXPECT_EQ(client.stats("orders").error().message,
            "its own words (topic 'orders', user 'alice', broker " + broker.uri() + ")");
}

TEST(Client, NamesATopicOnceInAnError) {
  EXPECT_TRUE(detail::names_topic("topic t has no group", "t"));
  EXPECT_TRUE(detail::names_topic("there is no topic t", "t"));
  EXPECT_TRUE(detail::names_topic("topic 't': full", "t"));
  EXPECT_FALSE(detail::names_topic("topic tea is full", "t"));
  EXPECT_FALSE(detail::names_topic("topic not found", "t"));
}

TEST(Client, AsksNothingThatNeedsAUserWithoutOne) {
  std::atomic<int> asked{0};
  FakeBroker broker([&](const protocol::Request& request) -> std::optional<protocol::Reply> {
    ++asked;
    if (std::holds_alternative<protocol::Ping>(request)) return protocol::OkReply{"ping", "", std::nullopt};
    return protocol::ErrorReply{"", ErrorCode::unauthorized_access, "unauthorized_access"};
  });
  auto client = Client::connect(broker.uri(), {.discover_credentials = false}).value_or_throw();
  const auto is_missing = [](const Error& error) {
    return error.code == ErrorCode::unauthorized_access &&
           error.message.find("needs a user, and no credentials were given or found") != std::string::npos;
  };
  EXPECT_TRUE(is_missing(client.list_topics().error()));
  EXPECT_TRUE(is_missing(client.create_topic("orders").error()));
  EXPECT_TRUE(is_missing(client.stats().error()));
  EXPECT_EQ(asked, 1) << "connect's ping";
  EXPECT_TRUE(is_missing(client.stats("orders").error()));
  EXPECT_EQ(asked, 2) << "the topic may be open";
}

TEST(Client, AUserWithTheRightCreatesTopicsWithoutAnAdministrator) {
  Seen seen;
  FakeBroker broker(seen.then(answers_with("")));
  ClientOptions options = quick();
  options.admin = {};
  auto client = Client::connect(broker.uri(), options).value_or_throw();
  client.create_topic("orders").value_or_throw();
  EXPECT_EQ(seen.get<protocol::CreateTopic>().admin.user_id, "alice");
  EXPECT_TRUE(seen.get<protocol::CreateTopic>().user.user_id.empty());
}

TEST(Client, RefusesAnInvalidUri) {
  const auto client = Client::connect("nonsense", quick());
  ASSERT_FALSE(client.ok());
  EXPECT_EQ(client.error().code, ErrorCode::invalid_argument);
}

TEST(Client, CreatesATopicAsAdminForTheUser) {
  Seen seen;
  FakeBroker broker(seen.then(answers_with("")));
  auto client = Client::connect(broker.uri(), quick()).value_or_throw();
  client.create_topic("orders", {.broker_type = BrokerType::file}).value_or_throw();
  const auto asked = seen.get<protocol::CreateTopic>();
  EXPECT_EQ(asked.admin.user_id, "root");
  EXPECT_EQ(asked.user.user_id, "alice");
  EXPECT_EQ(asked.settings.broker_type, BrokerType::file);
  EXPECT_EQ(asked.topic.text(), "orders");
}

TEST(Client, UsesTheAdministratorIfNoUserIsGiven) {
  Seen seen;
  FakeBroker broker(seen.then([](const protocol::Request& request) -> std::optional<protocol::Reply> {
    if (std::holds_alternative<protocol::Stats>(request)) {
      TopicStats stats;
      stats.topic = "orders";
      return stats;
    }
    return protocol::OkReply{std::string(protocol::command_of(request)), "", std::nullopt};
  }));
  ClientOptions options = quick();
  options.user = {};
  auto client = Client::connect(broker.uri(), options).value_or_throw();
  EXPECT_EQ(client.stats("orders").value_or_throw().topic, "orders");
  EXPECT_TRUE(seen.get<protocol::Stats>().as_admin);
  EXPECT_EQ(seen.get<protocol::Stats>().user.user_id, "root");
}

TEST(Client, PassesTheBrokersErrorsOn) {
  FakeBroker broker([](const protocol::Request& request) -> std::optional<protocol::Reply> {
    if (std::holds_alternative<protocol::Ping>(request)) return protocol::OkReply{"ping", "", std::nullopt};
    return protocol::ErrorReply{"", ErrorCode::topic_not_found, "topic not found"};
  });
  auto client = Client::connect(broker.uri(), quick()).value_or_throw();
  const auto producer = client.plain_producer("orders");
  ASSERT_FALSE(producer.ok());
  EXPECT_EQ(producer.error().code, ErrorCode::topic_not_found);
  EXPECT_EQ(producer.error().message,
            "topic not found (topic 'orders', user 'alice', broker " + broker.uri() + ")");
}

TEST(Client, AsksABusyBrokerAgainUntilItsTimeIsUp) {
  std::atomic<int> asked{0};
  std::atomic<int> busy{3};
  FakeBroker broker([&](const protocol::Request& request) -> std::optional<protocol::Reply> {
    if (std::holds_alternative<protocol::Ping>(request)) return answers_with("")(request);
    ++asked;
    if (busy-- > 0) return protocol::ErrorReply{"delete_topic", ErrorCode::busy, "try again"};
    return answers_with("")(request);
  });
  auto client = Client::connect(broker.uri(), quick()).value_or_throw();
  EXPECT_TRUE(client.delete_topic("orders").ok());
  EXPECT_EQ(asked, 4);

  busy = 1'000'000;
  ClientOptions options = quick();
  options.request_timeout = 300ms;
  auto hasty = Client::connect(broker.uri(), options).value_or_throw();
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(hasty.delete_topic("orders").error().code, ErrorCode::busy);
  EXPECT_LT(std::chrono::steady_clock::now() - began, 5s) << "it gives up when its time is over";
  EXPECT_GT(asked, 5);
  EXPECT_LT(asked, 40) << "it asks more and more seldom";
}

TEST(Client, RefusesABadTopicNameWithoutAsking) {
  std::atomic<int> asked{0};
  FakeBroker broker([&](const protocol::Request& request) {
    ++asked;
    return answers_with("")(request);
  });
  auto client = Client::connect(broker.uri(), quick()).value_or_throw();
  EXPECT_EQ(client.create_topic("../x").error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(client.stats("").error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(asked, 1);  // the ping of connect
}

TEST(Client, NeverTakesALateReplyForThatOfTheNextRequest) {
  std::atomic<bool> silent{false};
  FakeBroker broker([&](const protocol::Request& request) -> std::optional<protocol::Reply> {
    if (silent.exchange(false)) return std::nullopt;
    if (std::holds_alternative<protocol::Version>(request)) return protocol::VersionReply{"9.9.9", 1};
    return answers_with("")(request);
  });
  ClientOptions options = quick();
  options.request_timeout = 300ms;
  auto client = Client::connect(broker.uri(), options).value_or_throw();
  silent = true;
  EXPECT_EQ(client.ping().error().code, ErrorCode::timeout);
  options.request_timeout = 5s;
  EXPECT_EQ(client.version().value_or_throw(), "9.9.9");
}

TEST(Client, SurvivesARestartOfTheBroker) {
  std::string uri;
  std::optional<Client> client;
  {
    FakeBroker broker(answers_with(""));
    uri = broker.uri();
    client = Client::connect(uri, quick()).value_or_throw();
  }
  FakeBroker again(answers_with(""), uri);
  const auto deadline = std::chrono::steady_clock::now() + 10s;
  bool answered = false;
  while (!answered && std::chrono::steady_clock::now() < deadline) answered = client->ping().ok();
  EXPECT_TRUE(answered);
}

TEST(Client, IsSharedByThreads) {
  FakeBroker broker(answers_with(""));
  auto client = Client::connect(broker.uri(), quick()).value_or_throw();
  std::atomic<int> answered{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (int k = 0; k < 25; ++k) answered += client.ping().ok() ? 1 : 0;
      });
    }
  }
  EXPECT_EQ(answered, 100);
}

TEST(Client, ReportsAnUnreachableEndpoint) {
  FakeBroker broker(answers_with("tcp://127.0.0.1:1"));
  ClientOptions options = quick();
  options.connect_timeout = 100ms;
  auto client = Client::connect(broker.uri(), options).value_or_throw();
  const auto producer = client.plain_producer("orders");
  ASSERT_FALSE(producer.ok());
  EXPECT_EQ(producer.error().code, ErrorCode::timeout);
  EXPECT_NE(producer.error().message.find("tcp://127.0.0.1:1"), std::string::npos);
}

TEST(Client, UsesTheContextItIsGiven) {
  zmq::context_t context;
  FakeBroker broker(answers_with(""));
  ClientOptions options = quick();
  options.context = &context;
  EXPECT_TRUE(Client::connect(broker.uri(), options).ok());
  EXPECT_NE(context.handle(), nullptr);
}

}  // namespace
}  // namespace lightq::testing
