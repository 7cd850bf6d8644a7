/// Tests of a session's encrypted ZeroMQ socket against a ROUTER of libzmq: bytes in both directions, ends,
/// and a descriptor that never misses an event.
#include <lightq/detail/session_zmq_socket.hpp>

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <lightq/base/types.hpp>

#include "libzmq_router.hpp"
#include "session_fake_broker.hpp"

namespace lightq::test {
namespace {

using Context = std::shared_ptr<zmq::context_t>;
using Clock = std::chrono::steady_clock;
constexpr int patience_ms = 10'000;
constexpr auto linger_most = std::chrono::seconds(6);  // the socket's linger is 1 s

/// The broker's end of the connection, with encryption.
class Router : public LibzmqRouter {
 public:
  explicit Router(int messages_max = 1000, int receive_buffer = 0)
      : LibzmqRouter({.messages_max = messages_max,
                      .receive_buffer = receive_buffer,
                      .secret_key = keys().secret_key}) {}
  static std::shared_ptr<const CurveIdentity> identity() {
    return CurveIdentity::make(keys().public_key).value_or_throw();
  }

 private:
  struct Keys {
    Keys() { EXPECT_EQ(zmq_curve_keypair(public_key, secret_key), 0); }
    char public_key[41] = {};
    char secret_key[41] = {};
  };
  static const Keys& keys() {
    static const Keys made;
    return made;
  }
};

Result<std::size_t> write(SessionZmqSocket& socket, std::vector<std::string> texts) {
  std::vector<iovec> parts;
  parts.reserve(texts.size());
  for (std::string& text : texts) parts.push_back({text.data(), text.size()});
  return socket.write(parts);
}

/// Works as an event loop does: waits only for the descriptor, and only if nothing is pending. Returns false
/// if the descriptor did not become readable in time.
bool loop(SessionZmqSocket& socket, short events, const std::function<bool()>& done) {
  while (!done()) {
    if (socket.pending(events)) continue;
    pollfd entry{socket.fd(), POLLIN, 0};
    if (::poll(&entry, 1, patience_ms) <= 0) return false;
  }
  return true;
}

class SessionZmqSocketTest : public ::testing::Test {
 protected:
  std::unique_ptr<SessionZmqSocket> begin(const std::string& uri) {
    return SessionZmqSocket::connect(uri, context, identity).value_or_throw();
  }
  std::unique_ptr<SessionZmqSocket> connect(const std::string& uri) {
    auto socket = begin(uri);
    EXPECT_TRUE(loop(*socket, POLLIN, [&] { return socket->connected().value_or_throw(); }));
    return socket;
  }
  /// Returns a connected socket that the router can send to.
  std::unique_ptr<SessionZmqSocket> connect(Router& router) {
    auto socket = connect(router.uri());
    EXPECT_EQ(*write(*socket, {"hello"}), 5U);
    EXPECT_EQ(router.receive(), "hello");
    return socket;
  }
  /// Returns the error of connecting, or nothing on success.
  static std::optional<Error> refusal(SessionZmqSocket& socket) {
    std::optional<Error> error;
    EXPECT_TRUE(loop(socket, POLLIN, [&] {
      const Result<bool> connected = socket.connected();
      if (!connected) error = connected.error();
      return error || *connected;
    }));
    return error;
  }
  /// Reads up to `bytes`, or until an error, at most `at_once` in a call.
  static std::string read(SessionZmqSocket& socket, std::size_t bytes, std::size_t at_once = 4096,
                          std::optional<Error>* error = nullptr) {
    std::string all;
    std::vector<std::byte> room(at_once);
    EXPECT_TRUE(loop(socket, POLLIN,
                     [&] {
                       const Result<std::size_t> got =
                           socket.read(std::span(room).first(std::min(at_once, bytes - all.size())));
                       if (got) all += as_text(ByteView(room).first(*got));
                       if (!got && error != nullptr) *error = got.error();
                       return !got || all.size() == bytes;
                     }))
        << "only " << all.size();
    return all;
  }
  /// Returns the time that the context takes to end.
  Clock::duration end_context() {
    const auto begin = Clock::now();
    context.reset();
    return Clock::now() - begin;
  }

  Context context = std::make_shared<zmq::context_t>();
  const std::shared_ptr<const CurveIdentity> identity = Router::identity();
};

TEST_F(SessionZmqSocketTest, AWriteIsOneMessageOfOnePart) {
  Router router;
  auto socket = connect(router);
  EXPECT_EQ(*write(*socket, {"ab", "", std::string("c\0d", 3)}), 5U);
  EXPECT_EQ(*write(*socket, {"e"}), 1U);
  EXPECT_EQ(router.receive(), std::string("abc\0d", 5));
  EXPECT_EQ(router.receive(), "e");
  EXPECT_FALSE(socket->tells_room_by_writable());
}

TEST_F(SessionZmqSocketTest, MessagesAreReadAsAStreamOfTheirBytes) {
  Router router;
  auto socket = connect(router);
  std::array<std::byte, 16> room{};
  EXPECT_EQ(*socket->read(room), 0U);
  for (const char* text : {"one", "", "two", "three"}) router.send({text});
  EXPECT_EQ(read(*socket, 11), "onetwothree");
  EXPECT_EQ(*socket->read(room), 0U);
  EXPECT_FALSE(socket->pending(POLLIN));
}

TEST_F(SessionZmqSocketTest, AMessageLongerThanTheBufferArrivesInPieces) {
  Router router;
  auto socket = connect(router);
  const std::string longer = pattern(300'000);
  router.send({longer});
  router.send({"end"});
  EXPECT_EQ(read(*socket, longer.size() + 3, 1000), longer + "end");
}

TEST_F(SessionZmqSocketTest, AMessageLongerThanAFrameMayBeEndsTheConnection) {
  constexpr std::size_t frame_bytes_max = 70'000;
  Router router;
  auto socket = SessionZmqSocket::connect(router.uri(), context, identity, frame_bytes_max).value_or_throw();
  ASSERT_TRUE(loop(*socket, POLLIN, [&] { return socket->connected().value_or_throw(); }));
  ASSERT_EQ(*write(*socket, {"hello"}), 5U);
  ASSERT_EQ(router.receive(), "hello");
  const std::string longest = pattern(frame_bytes_max);
  router.send({longest});
  EXPECT_EQ(read(*socket, longest.size()), longest);
  router.send({pattern(frame_bytes_max + 2048)});
  std::optional<Error> error;
  EXPECT_EQ(read(*socket, 1, 1, &error), "");
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->code, ErrorCode::closed);
}

TEST_F(SessionZmqSocketTest, AShortReadLeavesNothingUnlessTheDescriptorIsReadable) {
  Router router;
  auto socket = connect(router);
  std::array<std::byte, 4> room{};
  const auto first = [&] { return socket->read(room).value_or_throw() > 0; };
  router.send({"abcdef"});
  ASSERT_TRUE(loop(*socket, POLLIN, first));
  EXPECT_TRUE(socket->pending(POLLIN)) << "the rest of the message";
  EXPECT_FALSE(socket->pending(POLLOUT) && socket->pending(0));
  EXPECT_EQ(*socket->read(room), 2U);
  EXPECT_FALSE(socket->pending(POLLIN));
  // A write consumes the event of received messages: from then on only `pending` reports them.
  router.send({"more"});
  pollfd entry{socket->fd(), POLLIN, 0};
  ASSERT_EQ(::poll(&entry, 1, patience_ms), 1);
  EXPECT_TRUE(socket->pending(POLLOUT));
  EXPECT_TRUE(socket->pending(POLLIN));
  EXPECT_EQ(read(*socket, 4), "more");
}

TEST_F(SessionZmqSocketTest, WithoutSpaceNothingIsWrittenAndItContinuesLater) {
  Router router(1, 4096);
  auto socket = connect(router);
  const std::string text = pattern(1 << 20);
  std::size_t written = 0;
  while (*write(*socket, {text}) > 0) ASSERT_LT(++written, 1000U);
  EXPECT_EQ(*write(*socket, {"x"}), 0U);
  EXPECT_FALSE(socket->pending(POLLIN | POLLOUT));
  std::size_t received = 0;
  while (received < written) EXPECT_EQ(router.receive() == text, ++received > 0);
  EXPECT_TRUE(loop(*socket, POLLIN | POLLOUT, [&] { return *write(*socket, {"x"}) == 1; }));
  EXPECT_EQ(router.receive(), "x");
}

TEST_F(SessionZmqSocketTest, BothWaysAreFullAndNothingIsSleptOver) {
  Router router(4, 4096);
  auto socket = connect(router);
  const std::string text = pattern(100'000);
  constexpr int rounds = 200;
  std::jthread echo([&] {
    for (int round = 0; round < rounds; ++round) router.send({router.receive()});
  });
  int written = 0;
  std::size_t got = 0;
  std::vector<std::byte> room(30'000);
  EXPECT_TRUE(loop(*socket, POLLIN | POLLOUT,
                   [&] {
                     got += *socket->read(room);
                     // Keeps no more bytes on the way than the router has memory for.
                     while (written < rounds && written * text.size() < got + 10 * text.size() &&
                            *write(*socket, {text}) > 0)
                       ++written;
                     return got == rounds * text.size();
                   }))
      << written << " written, " << got << " bytes read";
}

TEST_F(SessionZmqSocketTest, ReceivedMessagesAreReadBeforeTheEnd) {
  for (int turn = 0; turn < 50; ++turn) {
    Router router;
    auto socket = connect(router);
    for (const char* text : {"one", "two", "three"}) router.send({text});
    router.close();
    std::optional<Error> error;
    EXPECT_EQ(read(*socket, SIZE_MAX, turn % 2 == 0 ? 2 : 4096, &error), "onetwothree");
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code, ErrorCode::closed);
    std::array<std::byte, 4> room{};
    EXPECT_EQ(socket->read(room).error().code, ErrorCode::closed);
    EXPECT_TRUE(socket->pending(POLLIN));
  }
}

TEST_F(SessionZmqSocketTest, ReportsThatNoPeerListens) {
  std::string uri;
  {
    Router router;
    uri = router.uri();
  }
  EXPECT_EQ(refusal(*begin(uri))->code, ErrorCode::io_error);
  EXPECT_EQ(refusal(*begin("ipc:///nobody/is/here"))->code, ErrorCode::io_error);
  const std::string too_long = "ipc://" + std::string(200, 'p');
  for (const std::string& wrong : {std::string(), std::string("inproc://here"), std::string("tcp://"),
                                   std::string("tcp://127.0.0.1"), std::string("ipc://"), too_long}) {
    const auto made = SessionZmqSocket::connect(wrong, context, identity);
    EXPECT_EQ(made.ok() ? ErrorCode::internal : made.error().code, ErrorCode::invalid_argument) << wrong;
  }
  EXPECT_LT(end_context(), linger_most);
}

TEST_F(SessionZmqSocketTest, ReportsThatThePeerSpeaksAnotherProtocol) {
  for (const bool talks : {false, true}) {
    FakeSessionListener listener(FakeSessionListener::Kind::tcp);
    auto socket = begin(listener.uri());
    FakeSession peer;
    while (!peer.is_open()) peer = listener.accept();
    if (talks) {
      peer.put_bytes(as_byte_view("\xff HTTP/1.1 400 Bad Request, and what one says then to strangers\r\n"));
      peer.write();
    } else {
      peer.close();
    }
    EXPECT_EQ(refusal(*socket)->code, ErrorCode::io_error);
  }
}

TEST_F(SessionZmqSocketTest, AMessageOfSeveralPartsEndsIt) {
  Router router;
  auto socket = connect(router);
  router.send({"good"});
  router.send({"bad", "worse"});
  std::optional<Error> error;
  EXPECT_EQ(read(*socket, SIZE_MAX, 4096, &error), "good");
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, ErrorCode::invalid_request);
  std::array<std::byte, 8> room{};
  EXPECT_EQ(socket->read(room).error().code, ErrorCode::invalid_request);
}

TEST_F(SessionZmqSocketTest, WrittenBytesAreSentAfterTheClose) {
  Router router(1, 4096);
  const std::string text = pattern(1 << 20);
  std::size_t written = 0;
  {
    auto socket = connect(router);
    while (*write(*socket, {text}) > 0) ASSERT_LT(++written, 1000U);
    ASSERT_GT(written, 0U);
  }
  std::jthread ending([this] { context.reset(); });
  for (std::size_t at = 0; at < written; ++at) EXPECT_TRUE(router.receive() == text) << at;
}

TEST_F(SessionZmqSocketTest, TheContextEndsEvenIfNoPeerReadsTheRemainingBytes) {
  Router router(1, 4096);
  auto unread = connect(router);
  while (*write(*unread, {pattern(1 << 20)}) > 0) {
  }
  FakeSessionListener silent(FakeSessionListener::Kind::tcp);
  auto unanswered = begin(silent.uri());
  unread.reset();
  unanswered.reset();
  EXPECT_LT(end_context(), linger_most);
}

TEST_F(SessionZmqSocketTest, LeavesNoOpenDescriptor) {
  const auto open_descriptors = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                         std::filesystem::directory_iterator());
  };
  Router router;
  connect(router);  // opens libzmq's own descriptors, which stay with the context
  end_context();
  const auto before = open_descriptors();
  context = std::make_shared<zmq::context_t>();
  for (int turn = 0; turn < 10; ++turn) connect(router);
  end_context();
  // Another thread closes the router's side of a connection.
  const auto until = Clock::now() + std::chrono::milliseconds(patience_ms);
  while (open_descriptors() > before && Clock::now() < until) std::this_thread::yield();
  EXPECT_LE(open_descriptors(), before);
}

TEST_F(SessionZmqSocketTest, AContextThatWasShutDownIsTheEnd) {
  Router router;
  auto socket = connect(router);
  context->shutdown();
  std::array<std::byte, 8> room{};
  EXPECT_EQ(socket->read(room).error().code, ErrorCode::closed);
  EXPECT_EQ(write(*socket, {"x"}).error().code, ErrorCode::closed);
  EXPECT_EQ(SessionZmqSocket::connect(router.uri(), context, identity).error().code, ErrorCode::closed);
}

}  // namespace
}  // namespace lightq::test
