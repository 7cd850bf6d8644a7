/// Tests of the parts of a client's session: addresses, sockets, waits.
#include <gmock/gmock.h>

#include <lightq/detail/session_backoff.hpp>
#include <lightq/detail/session_clock.hpp>
#include <lightq/detail/session_failure.hpp>
#include <lightq/detail/session_socket.hpp>

#include "session_fake_broker.hpp"

namespace lightq::test {
namespace {

ErrorCode code_of(const std::string& uri) {
  const auto resolved = resolve_session_uri(uri);
  return resolved.ok() ? ErrorCode::internal : resolved.error().code;
}

TEST(SessionAddress, IsAUriOfTcpOrIpc) {
  EXPECT_EQ(resolve_session_uri("ipc:///tmp/x.sock")->storage.ss_family, AF_UNIX);
  EXPECT_EQ(resolve_session_uri("tcp://127.0.0.1:5000")->storage.ss_family, AF_INET);
  EXPECT_EQ(resolve_session_uri("tcp://[::1]:5000")->storage.ss_family, AF_INET6);
  for (const char* uri : {"", "udp://127.0.0.1:1", "tcp://", "tcp://127.0.0.1", "tcp://:5000",
                          "tcp://127.0.0.1:", "tcp://127.0.0.1:http", "tcp://127.0.0.1:99x", "ipc://"})
    EXPECT_EQ(code_of(uri), ErrorCode::invalid_argument) << uri;
  EXPECT_EQ(code_of("ipc://" + std::string(200, 'p')), ErrorCode::invalid_argument);
}

TEST(SessionSocket, ReportsWhyItCannotConnect) {
  EXPECT_EQ(SessionSocket::connect("ipc:///nobody/is/here").error().system_error, ENOENT);
  FakeSessionListener listener(FakeSessionListener::Kind::tcp);
  listener.close();
  auto socket = SessionSocket::connect(listener.uri());
  int refused = socket.ok() ? 0 : socket.error().system_error;
  for (int step = 0; step < 10'000 && socket.ok() && refused == 0; ++step) {
    const auto connected = socket->connected();
    if (!connected.ok()) refused = connected.error().system_error;
  }
  EXPECT_EQ(refused, ECONNREFUSED);
}

TEST(SessionSocket, DistinguishesNoDataFromTheEnd) {
  FakeSessionListener listener(FakeSessionListener::Kind::tcp);
  auto socket = SessionSocket::connect(listener.uri());
  ASSERT_TRUE(socket.ok());
  SessionClock().wait(socket->fd(), POLLOUT, SessionClock().now() + std::chrono::seconds(10));
  ASSERT_TRUE(socket->connected().value_or_throw());
  int on = 0;
  socklen_t bytes = sizeof on;
  ::getsockopt(socket->fd(), IPPROTO_TCP, TCP_NODELAY, &on, &bytes);
  EXPECT_NE(on, 0);
  std::array<std::byte, 16> room{};
  EXPECT_EQ(*socket->read(room), 0U);
  FakeSession peer = listener.accept();
  ASSERT_TRUE(peer.is_open());
  peer.put_bytes(as_byte_view("abc"));
  peer.write();
  SessionClock().wait(socket->fd(), POLLIN, SessionClock().now() + std::chrono::seconds(10));
  EXPECT_EQ(*socket->read(room), 3U);
  peer.close();
  SessionClock().wait(socket->fd(), POLLIN, SessionClock().now() + std::chrono::seconds(10));
  EXPECT_EQ(socket->read(room).error().code, ErrorCode::closed);
  const int fd = socket->fd();
  SessionSocket moved = std::move(*socket);
  EXPECT_EQ(socket->fd(), -1);
  EXPECT_EQ(moved.fd(), fd);
}

TEST(SessionBackoff, DoublesUpToItsMaximumAndRestarts) {
  SessionBackoff backoff(Timeout(50), Timeout(2000), 1);
  for (int turn = 0; turn < 2; ++turn) {
    for (const int most : {50, 100, 200, 400, 800, 1600, 2000, 2000}) {
      const auto wait = backoff.next();
      EXPECT_GE(wait, Timeout(most) / 2);
      EXPECT_LE(wait, Timeout(most));
    }
    backoff.reset();
  }
  SessionBackoff one(Timeout(1), Timeout(1), 7);
  EXPECT_LE(one.next(), Timeout(1));
}

TEST(SessionBackoff, BearsAnyTimeout) {
  const Timeout year = std::chrono::hours(24 * 365);
  SessionBackoff endless(Timeout::max(), Timeout::max(), 1);
  SessionBackoff growing(Timeout(1), Timeout::max(), 1);
  EXPECT_EQ(growing.longest(), year);
  for (int turn = 0; turn < 80; ++turn) {
    for (SessionBackoff* each : {&endless, &growing}) {
      const auto wait = each->next();
      EXPECT_GT(wait.count(), 0) << turn;
      EXPECT_LE(wait, year) << turn;
    }
  }
  EXPECT_GE(growing.next(), year / 2);
}

TEST(SessionClock, BearsAnyTimeout) {
  const SessionClock clock;
  EXPECT_EQ(session_deadline(clock.now(), Timeout::max()), session_never);
  EXPECT_GT(session_deadline(clock.now(), Timeout::min()), SessionTime::min());
  clock.wait(-1, POLLIN, SessionTime::min());
}

TEST(SessionFailure, DerivesTheConsequenceOfUnknownCodes) {
  const auto later = static_cast<session::Code>(999);
  EXPECT_EQ(error_code_of(later), ErrorCode::internal);
  EXPECT_EQ(consequence_of(later), Consequence::again);
  EXPECT_EQ(refusal_of(later, true), Refusal::again_later);
  EXPECT_EQ(refusal_of(later, false), Refusal::give_up);
}

}  // namespace
}  // namespace lightq::test
