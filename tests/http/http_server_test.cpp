/// Tests of the HTTP listener over sockets.
#include "http/http_server.hpp"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lightq/base/limits.hpp>

#include "net/socket.hpp"

namespace lightq::broker {

namespace {

using namespace std::chrono_literals;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class QuietSink final : public LogSink {
 public:
  void write(LogLevel /*level*/, std::string_view /*line*/) override {}
};

/// A client's connection.
class HttpPeer {
 public:
  explicit HttpPeer(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  void say(std::string_view text) {
    EXPECT_EQ(::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  void ask(const std::string& path, const std::string& more = {}) {
    say("GET " + path + " HTTP/1.1\r\nHost: 127.0.0.1\r\n" + more + "\r\n");
  }
  /// Returns all that arrives until `end` has arrived, or until the connection ends.
  std::string hear(std::string_view end = {}) {
    while (end.empty() || heard_.find(end) == std::string::npos) {
      pollfd readable{socket_.get(), POLLIN, 0};
      if (::poll(&readable, 1, 20'000) != 1) {
        ADD_FAILURE() << "nothing arrives after: " << heard_;
        break;
      }
      char bytes[4096];
      const ssize_t count = ::recv(socket_.get(), bytes, sizeof bytes, 0);
      if (count <= 0) break;
      heard_.append(bytes, static_cast<std::size_t>(count));
    }
    const std::size_t at =
        end.empty() ? heard_.size() : std::min(heard_.find(end), heard_.size() - end.size()) + end.size();
    std::string text = heard_.substr(0, at);
    heard_.erase(0, at);
    return text;
  }

 private:
  UniqueFd socket_;
  std::string heard_;
};

class HttpServerTest : public ::testing::Test {
 protected:
  void start(HttpSettings settings = {}) {
    settings.limits_reached = &limits_;
    server_ = HttpServer::open("tcp://127.0.0.1:0", std::move(settings), sink_).value_or_throw();
    server_->router().add("GET", "/hello",
                          [](const HttpExchange& exchange) { exchange.reply({.body = "hello\n"}); });
    server_->router().add("GET", "/later", [this](HttpExchange exchange) {
      const std::lock_guard lock(mutex_);
      later_.push_back(std::move(exchange.reply));
      came_.notify_one();
    });
    server_->router().add("GET", "/parts", [this](HttpExchange exchange) {
      HttpResponse response{.body = "a", .not_sent = [this] { note_gone(); }, .is_stream = true};
      response.taken = [this, send = exchange.send_more, calls = std::make_shared<int>(0)] {
        if (++*calls == 1) send("b", false);
        if (*calls == 2) server_->after(100ms, [send] { send("c", true); });
      };
      exchange.reply(std::move(response));
    });
    server_->router().add("GET", "/endless", [this](HttpExchange exchange) {
      exchange.reply(
          {.body = std::string(endless_bytes_, 'x'), .not_sent = [this] { note_gone(); }, .is_stream = true});
    });
    server_->start();
    port_ = static_cast<std::uint16_t>(std::stoi(server_->uri().substr(server_->uri().rfind(':') + 1)));
  }
  [[nodiscard]] HttpPeer peer() const { return HttpPeer(port_); }
  /// Waits for the next request for /later.
  HttpReply later() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(came_.wait_for(lock, 20s, [this] { return !later_.empty(); }));
    HttpReply reply = std::move(later_.back());
    later_.pop_back();
    return reply;
  }

  void note_gone() {
    const std::lock_guard lock(mutex_);
    ++gone_;
    came_.notify_one();
  }
  /// Waits until the client of a stream has gone.
  void await_gone() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(came_.wait_for(lock, 20s, [this] { return gone_ == 1; }));
  }

  LimitCounts limits_;
  std::unique_ptr<HttpServer> server_;
  std::size_t endless_bytes_ = 1;

 private:
  int gone_ = 0;
  QuietSink sink_;
  std::uint16_t port_ = 0;
  std::mutex mutex_;
  std::condition_variable came_;
  std::vector<HttpReply> later_;
};

TEST_F(HttpServerTest, AnswersSeveralRequestsOnAConnection) {
  start();
  HttpPeer client = peer();
  for (int i = 0; i < 3; ++i) {
    client.ask("/hello");
    const std::string answer = client.hear("hello\n");
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
    EXPECT_THAT(answer, HasSubstr("Content-Length: 6\r\n"));
    EXPECT_THAT(answer, HasSubstr("Connection: keep-alive\r\n"));
  }
}

TEST_F(HttpServerTest, AnswersRequestsThatArriveTogetherInOrder) {
  start();
  HttpPeer client = peer();
  client.say(
      "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\nGET /later HTTP/1.1\r\nHost: localhost\r\n\r\nGET /none "
      "HTTP/1.1\r\n"
      "Host: localhost\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(client.hear("hello\n"), HasSubstr("200 OK"));
  const HttpReply reply = later();
  reply({.body = "now"});
  reply({.body = "twice"});  // is ignored
  const std::string rest = client.hear();
  EXPECT_THAT(rest, HasSubstr("\r\n\r\nnowHTTP/1.1 404 Not Found"));
  EXPECT_EQ(rest.find("twice"), std::string::npos);
}

TEST_F(HttpServerTest, HeadHasNoContent) {
  start();
  HttpPeer client = peer();
  client.say("HEAD /hello HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  const std::string answer = client.hear();
  EXPECT_THAT(answer, HasSubstr("Content-Length: 6\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\n"));
}

TEST_F(HttpServerTest, RefusalsEndTheConnection) {
  start();
  HttpPeer client = peer();
  client.say("GET / HTTP/9\r\n\r\nGET /hello HTTP/1.1\r\n");
  const std::string answer = client.hear();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 "));
  EXPECT_THAT(answer, HasSubstr("Connection: close"));
  EXPECT_EQ(answer.find("hello"), std::string::npos);
}

TEST_F(HttpServerTest, AHeadThatIsTooLongIsAnsweredAndCounted) {
  start();
  HttpPeer client = peer();
  client.ask("/hello", "A: " + std::string(2 * limits::http_head_bytes_max, 'a') + "\r\n");
  EXPECT_THAT(client.hear(), StartsWith("HTTP/1.1 431 "));
  EXPECT_EQ(limits_.of(Limit::http_head_bytes_max), 1U);
}

TEST_F(HttpServerTest, ConnectionsThatSayNothingEnd) {
  HttpSettings settings;
  settings.times.first_byte = 20ms;
  start(std::move(settings));
  EXPECT_EQ(peer().hear(), "");
}

TEST_F(HttpServerTest, AHeadThatTricklesInIsGivenUp) {
  HttpSettings settings;
  settings.times.head = 100ms;
  start(std::move(settings));
  HttpPeer client = peer();
  client.say("GET /hello HTTP/1.1\r\n");
  EXPECT_THAT(client.hear(), StartsWith("HTTP/1.1 408 "));
  EXPECT_EQ(limits_.of(Limit::http_head_ms), 1U);
}

TEST_F(HttpServerTest, ABodyThatTricklesInIsGivenUp) {
  HttpSettings settings;
  settings.times.body = 100ms;
  start(std::move(settings));
  HttpPeer client = peer();
  client.say("POST /hello HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nabc");
  EXPECT_THAT(client.hear(), StartsWith("HTTP/1.1 408 "));
}

TEST_F(HttpServerTest, IdleConnectionsEnd) {
  HttpSettings settings;
  settings.times.idle = 20ms;
  start(std::move(settings));
  HttpPeer client = peer();
  client.ask("/hello");
  EXPECT_THAT(client.hear(), EndsWith("hello\n"));
}

TEST_F(HttpServerTest, WorkThatTakesTooLongIsAnswered) {
  HttpSettings settings;
  settings.times.work = 20ms;
  start(std::move(settings));
  HttpPeer client = peer();
  client.ask("/later");
  EXPECT_THAT(client.hear(), StartsWith("HTTP/1.1 504 "));
  later()({.body = "too late"});
}

TEST_F(HttpServerTest, TheConnectionThatIsIdleLongestMakesRoom) {
  HttpSettings settings;
  settings.connections_max = 2;
  start(std::move(settings));
  HttpPeer first = peer();
  first.ask("/hello");
  first.hear("hello\n");
  HttpPeer second = peer();
  second.ask("/later");
  const HttpReply reply = later();
  HttpPeer third = peer();
  third.ask("/hello");
  third.hear("hello\n");
  EXPECT_EQ(first.hear(), "") << "it was idle";
  reply({.body = "still here"});
  EXPECT_THAT(second.hear("still here"), HasSubstr("200 OK"));
  EXPECT_EQ(server_->connections(), 2U);
  EXPECT_EQ(limits_.of(Limit::http_connections_max), 1U);
}

TEST_F(HttpServerTest, ASourceHasItsShareOfConnections) {
  HttpSettings settings;
  settings.connections_per_source_max = 1;
  start(std::move(settings));
  HttpPeer first = peer();
  HttpPeer second = peer();
  EXPECT_EQ(first.hear(), "");
  second.ask("/hello");
  second.hear("hello\n");
  EXPECT_EQ(limits_.of(Limit::http_connections_per_source_max), 1U);
}

TEST_F(HttpServerTest, ASourceThatAsksTooMuchIsRefused) {
  HttpSettings settings;
  settings.requests_per_second = 2;
  start(std::move(settings));
  HttpPeer client = peer();
  std::string heard;
  for (int i = 0; i < 4; ++i) {
    client.ask("/hello");
    heard += client.hear("\r\n\r\n") + "\n";
  }
  EXPECT_THAT(heard, HasSubstr("429 Too Many Requests"));
  EXPECT_GE(server_->throttled(), 1U);
}

TEST_F(HttpServerTest, ForeignNamesAndOriginsAreRefused) {
  start();
  HttpPeer client = peer();
  client.say("GET /hello HTTP/1.1\r\nHost: evil.example\r\n\r\n");
  EXPECT_THAT(client.hear("\r\n"), HasSubstr("421"));
  client.ask("/hello", "Origin: http://evil.example\r\nConnection: close\r\n");
  EXPECT_THAT(client.hear(), HasSubstr("403 Forbidden"));
}

TEST_F(HttpServerTest, SaysContinueToAClientThatWaits) {
  start();
  HttpPeer client = peer();
  client.say("POST /hello HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_EQ(client.hear("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.say("ab");
  EXPECT_THAT(client.hear("\r\n\r\n"), HasSubstr("405 Method Not Allowed"));
}

TEST_F(HttpServerTest, SendsLongResponsesToAClientThatReadsLate) {
  start();
  HttpPeer client = peer();
  client.ask("/later", "Connection: close\r\n");
  later()({.body = std::string(8 * limits::MiB, 'x') + "end"});
  EXPECT_THAT(client.hear(), EndsWith("xend"));
}

TEST_F(HttpServerTest, ResponsesThatNobodyReadsAreBounded) {
  HttpSettings settings;
  settings.responses_bytes_total = 10 * limits::MiB;
  settings.requests_per_second = limits::requests_per_second_max;
  start(std::move(settings));
  const std::string text(8 * limits::MiB, 'x');  // more than the system keeps
  HttpPeer first = peer();
  first.ask("/later");
  later()({.body = text});
  HttpPeer second = peer();
  second.ask("/later");
  std::promise<void> not_sent;
  later()({.body = text, .not_sent = [&] { not_sent.set_value(); }});
  EXPECT_THAT(second.hear("try again"), HasSubstr("429 Too Many Requests"));
  EXPECT_EQ(not_sent.get_future().wait_for(20s), std::future_status::ready);
  EXPECT_EQ(limits_.of(Limit::http_responses_bytes_total), 1U);
  second.ask("/hello");
  EXPECT_THAT(second.hear("hello\n"), HasSubstr("200 OK")) << "short responses do not count";
  EXPECT_EQ(first.hear(text).size() > text.size(), true);
  first.ask("/later");
  later()({.body = text});
  EXPECT_THAT(first.hear("xxx"), HasSubstr("200 OK")) << "what was read does not count any more";
}

TEST_F(HttpServerTest, ASourceLeavesSpaceForTheContentsOfOthers) {
  HttpSettings settings;
  settings.bodies_bytes_total = 1'000;
  start(std::move(settings));
  HttpPeer client = peer();
  client.say("POST /hello HTTP/1.1\r\nHost: localhost\r\nContent-Length: 950\r\n\r\n" +
             std::string(900, 'x'));
  EXPECT_THAT(client.hear(), StartsWith("HTTP/1.1 429 "));
  EXPECT_EQ(limits_.of(Limit::http_bodies_bytes_total), 1U);
}

TEST_F(HttpServerTest, AResponseThatHasNoContentHasNoLength) {
  start();
  HttpPeer client = peer();
  client.ask("/later", "Connection: close\r\n");
  later()({.status = 204});
  const std::string answer = client.hear();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 204 No Content\r\n"));
  EXPECT_EQ(answer.find("\r\nContent-"), std::string::npos) << answer;
}

TEST_F(HttpServerTest, AStreamIsSentInPartsUntilTheConnectionEnds) {
  HttpSettings settings;
  settings.times.send = 50ms;  // a stream may be silent for longer
  start(std::move(settings));
  HttpPeer client = peer();
  client.ask("/parts");
  const std::string answer = client.hear();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, HasSubstr("Connection: close\r\n"));
  EXPECT_EQ(answer.find("Content-Length"), std::string::npos);
  EXPECT_THAT(answer, EndsWith("\r\n\r\nabc"));
}

TEST_F(HttpServerTest, AStreamLearnsThatItsClientHasGone) {
  start();
  {
    HttpPeer client = peer();
    client.ask("/endless");
    client.hear("\r\n\r\nx");
    client.say("bytes that nobody reads");
  }
  await_gone();
}

TEST_F(HttpServerTest, AStreamEndsIfItsClientTakesNothing) {
  HttpSettings settings;
  settings.times.send = 100ms;
  endless_bytes_ = 64 * limits::MiB;
  start(std::move(settings));
  HttpPeer client = peer();
  client.ask("/endless");
  await_gone();
}

TEST_F(HttpServerTest, EndsWhileRequestsAreUnderWay) {
  start();
  HttpPeer client = peer();
  client.ask("/later");
  const HttpReply reply = later();
  server_->stop();
  reply({.body = "dropped"});
  EXPECT_EQ(client.hear(), "");
}

TEST_F(HttpServerTest, ATakenAddressIsAnError) {
  start();
  QuietSink sink;
  const auto second = HttpServer::open("tcp://" + server_->uri().substr(7), {}, sink);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, ErrorCode::address_in_use);
  for (const char* wrong :
       {"tcp://127.0.0.1", "tcp://127.0.0.1:x", "tcp://:1", "ipc://a", "tcp://127.0.0.1:70000"})
    EXPECT_EQ(HttpServer::open(wrong, {}, sink).error().code, ErrorCode::invalid_argument) << wrong;
}

}  // namespace

}  // namespace lightq::broker
