/// Tests of a session's connection over ZMTP against a ROUTER of libzmq, and against peers that the test
/// simulates.
#include <lightq/detail/session_zmtp_socket.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <lightq/base/types.hpp>

#include "libzmq_router.hpp"
#include "session_fake_broker.hpp"
#include "support/temp_dir.hpp"

namespace lightq::test {
namespace {

using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;
constexpr int patience_ms = 10'000;

/// Returns a session frame with only the fields that the wire reads.
std::string frame(const std::string& body) {
  std::string bytes(session::frame_layout::header_bytes, 'h');
  store_little_endian(reinterpret_cast<std::byte*>(bytes.data()) + session::frame_layout::body_bytes,
                      static_cast<std::uint32_t>(body.size()));
  return bytes + body;
}

Result<std::size_t> write(SessionWire& socket, std::string text) {
  iovec part{text.data(), text.size()};
  return socket.write(std::span(&part, 1));
}

/// Works as an event loop does: waits only for the descriptor, and only if nothing is pending. Returns false
/// if no event came in time.
bool loop(SessionWire& socket, short events, const std::function<bool()>& done) {
  while (!done()) {
    if (socket.pending(events)) continue;
    pollfd entry{socket.fd(), events, 0};
    if (::poll(&entry, 1, patience_ms) <= 0) return false;
  }
  return true;
}

std::unique_ptr<SessionZmtpSocket> begin(const std::string& uri, std::uint64_t frame_bytes_max = 0) {
  return SessionZmtpSocket::connect(uri, frame_bytes_max).value_or_throw();
}
/// Returns the error of connecting, or nothing on success.
std::optional<Error> refusal(SessionZmtpSocket& socket) {
  std::optional<Error> error;
  while (!error) {
    const Result<bool> connected = socket.connected();
    if (connected && *connected) break;
    if (!connected) error = connected.error();
    const short events = socket.connects_by_writable() ? POLLOUT : POLLIN;
    pollfd entry{socket.fd(), events, 0};
    if (!error && ::poll(&entry, 1, patience_ms) <= 0) error = Error{ErrorCode::timeout, "nothing is told"};
  }
  return error;
}
std::unique_ptr<SessionZmtpSocket> connect(const std::string& uri, std::uint64_t frame_bytes_max = 0) {
  auto socket = begin(uri, frame_bytes_max);
  const auto error = refusal(*socket);
  EXPECT_FALSE(error) << error->text();
  return socket;
}
/// Returns a connected socket that the router can send to.
std::unique_ptr<SessionZmtpSocket> connect(LibzmqRouter& router, std::uint64_t frame_bytes_max = 0) {
  auto socket = connect(router.uri(), frame_bytes_max);
  EXPECT_TRUE(write(*socket, frame("hello")).ok());
  EXPECT_EQ(router.receive(), frame("hello"));
  return socket;
}
/// Reads up to `bytes`, or until an error, at most `at_once` in a call.
std::string read(SessionWire& socket, std::size_t bytes, std::size_t at_once = 4096,
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

TEST(SessionZmtpSocket, SpeaksToARouterOfLibzmqsOverBothTransports) {
  const TempDir directory;
  for (const std::string& uri : {std::string("tcp://127.0.0.1:*"), "ipc://" + directory.path() + "/s"}) {
    LibzmqRouter router({.uri = uri});
    auto socket = connect(router);
    EXPECT_EQ(*write(*socket, frame("a") + frame("") + frame(pattern(70'000))), 70'061U);
    EXPECT_EQ(router.receive(), frame("a"));
    EXPECT_EQ(router.receive(), frame(""));
    EXPECT_EQ(router.receive(), frame(pattern(70'000)));
    std::array<std::byte, 16> room{};
    EXPECT_EQ(*socket->read(room), 0U);
    for (const char* text : {"one", "", "two", "three"}) router.send({text});
    EXPECT_EQ(read(*socket, 11), "onetwothree");
    EXPECT_EQ(*socket->read(room), 0U);
    EXPECT_FALSE(socket->pending(POLLIN | POLLOUT));
    EXPECT_TRUE(socket->tells_room_by_writable());
  }
}

TEST(SessionZmtpSocket, MessagesOfAllLengthsComeIntoAnyRoom) {
  LibzmqRouter router;
  auto socket = connect(router);
  for (const std::size_t at_once : {1000U, 8192U, 100'000U}) {
    std::string all;
    for (const std::size_t bytes : {1U, 255U, 256U, 8100U, 8191U, 8192U, 8200U, 16'384U, 300'000U, 7U}) {
      all += pattern(bytes);
      router.send({pattern(bytes)});
    }
    EXPECT_TRUE(read(*socket, all.size(), at_once) == all) << at_once;
  }
}

TEST(SessionZmtpSocket, BytesReceivedAheadArePending) {
  LibzmqRouter router;
  auto socket = connect(router);
  std::array<std::byte, 4> room{};
  router.send({"abcdef"});
  ASSERT_TRUE(loop(*socket, POLLIN, [&] { return socket->read(room).value_or_throw() > 0; }));
  EXPECT_TRUE(socket->pending(POLLIN)) << "the rest of the message";
  EXPECT_FALSE(socket->pending(POLLOUT));
  EXPECT_EQ(*socket->read(room), 2U);
  EXPECT_FALSE(socket->pending(POLLIN));
}

TEST(SessionZmtpSocket, AMessageLongerThanAFrameMayBeEndsTheConnection) {
  constexpr std::size_t frame_bytes_max = 70'000;
  LibzmqRouter router;
  auto socket = connect(router, frame_bytes_max);
  const std::string longest = pattern(frame_bytes_max);
  router.send({longest});
  EXPECT_EQ(read(*socket, longest.size()), longest);
  router.send({pattern(frame_bytes_max + 2048)});
  std::optional<Error> error;
  EXPECT_EQ(read(*socket, 1, 1, &error), "");
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->code, ErrorCode::invalid_request);
  EXPECT_TRUE(socket->pending(POLLIN));
}

TEST(SessionZmtpSocket, AMessageOfSeveralPartsEndsIt) {
  LibzmqRouter router;
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

TEST(SessionZmtpSocket, WithoutSpaceItContinuesLater) {
  LibzmqRouter router({.messages_max = 1, .receive_buffer = 4096});
  auto socket = connect(router);
  const std::string one = frame(pattern(1 << 20));
  constexpr std::size_t count = 20;
  std::string all;
  for (std::size_t at = 0; at < count; ++at) all += one;
  std::size_t taken = 0;
  bool was_full = false;
  std::jthread receiving([&] {
    for (std::size_t at = 0; at < count; ++at) EXPECT_TRUE(router.receive() == one) << at;
  });
  EXPECT_TRUE(loop(*socket, POLLOUT, [&] {
    iovec part{all.data() + taken, all.size() - taken};
    taken += socket->write(std::span(&part, 1)).value_or_throw();
    was_full |= taken < all.size();
    return taken == all.size();
  }));
  EXPECT_TRUE(was_full);
  EXPECT_TRUE(*socket->flush());
}

TEST(SessionZmtpSocket, BothWaysAreFullAndNothingIsSleptOver) {
  LibzmqRouter router({.messages_max = 4, .receive_buffer = 4096});
  auto socket = connect(router);
  std::string text = frame(pattern(100'000));
  constexpr std::size_t rounds = 200;
  std::jthread echo([&] {
    for (std::size_t round = 0; round < rounds; ++round) router.send({router.receive()});
  });
  std::size_t written = 0;
  std::size_t got = 0;
  std::vector<std::byte> room(30'000);
  const auto work = [&] {
    got += *socket->read(room);
    // Keeps no more bytes on the way than the router has memory for.
    while (written < rounds * text.size() && written < got + 10 * text.size()) {
      const std::size_t begun = written % text.size();
      iovec part{text.data() + begun, text.size() - begun};
      const std::size_t taken = *socket->write(std::span(&part, 1));
      written += taken;
      if (taken < part.iov_len) break;
    }
    return got == rounds * text.size();
  };
  bool in_time = true;
  while (in_time && !work()) {
    const bool wants = written < rounds * text.size() && written < got + 10 * text.size();
    if (socket->pending(POLLIN)) continue;
    pollfd entry{socket->fd(), static_cast<short>(wants ? POLLIN | POLLOUT : POLLIN), 0};
    in_time = ::poll(&entry, 1, patience_ms) > 0;
  }
  EXPECT_TRUE(in_time) << written << " bytes written, " << got << " read";
}

TEST(SessionZmtpSocket, ReceivedMessagesAreReadBeforeTheEnd) {
  for (int turn = 0; turn < 50; ++turn) {
    LibzmqRouter router;
    auto socket = connect(router);
    for (const char* text : {"one", "two", "three"}) router.send({text});
    router.close();
    std::optional<Error> error;
    EXPECT_EQ(read(*socket, SIZE_MAX, turn % 2 == 0 ? 2 : 4096, &error), "onetwothree");
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code, ErrorCode::closed);
    std::array<std::byte, 4> room{};
    EXPECT_EQ(socket->read(room).error().code, ErrorCode::closed);
  }
}

TEST(SessionZmtpSocket, WrittenBytesAreSentAfterTheClose) {
  LibzmqRouter router;
  const std::string text = frame(pattern(100'000));
  {
    auto socket = connect(router);
    ASSERT_EQ(*write(*socket, text), text.size());
  }
  EXPECT_TRUE(router.receive() == text);
}

TEST(SessionZmtpSocket, LibzmqsHeartbeatsAreAnswered) {
  constexpr int every_ms = 20;
  constexpr int silence_ms = 400;
  LibzmqRouter router({.heartbeat_ms = every_ms, .heartbeat_timeout_ms = silence_ms});
  auto socket = connect(router);
  // Waits longer than libzmq's timeout for an answer. Only its PINGs make the descriptor readable.
  const auto until = Clock::now() + std::chrono::milliseconds(3 * silence_ms);
  std::array<std::byte, 8> room{};
  EXPECT_TRUE(loop(*socket, POLLIN, [&] {
    EXPECT_EQ(*socket->read(room), 0U);
    return Clock::now() >= until;
  }));
  router.send({"still there"});
  EXPECT_EQ(read(*socket, 11), "still there");
  EXPECT_TRUE(write(*socket, frame("yes")).ok());
  EXPECT_EQ(router.receive(), frame("yes"));
}

TEST(SessionZmtpSocket, ReportsThatNoPeerListens) {
  std::string uri;
  {
    LibzmqRouter router;
    uri = router.uri();
  }
  auto refused = SessionZmtpSocket::connect(uri);
  EXPECT_EQ(refused.ok() ? refusal(**refused)->code : refused.error().code, ErrorCode::io_error);
  EXPECT_EQ(SessionZmtpSocket::connect("ipc:///nobody/is/here").error().code, ErrorCode::io_error);
  const std::string too_long = "ipc://" + std::string(200, 'p');
  for (const std::string& wrong : {std::string(), std::string("inproc://here"), std::string("tcp://"),
                                   std::string("tcp://127.0.0.1"), std::string("ipc://"), too_long}) {
    const auto made = SessionZmtpSocket::connect(wrong);
    EXPECT_EQ(made.ok() ? ErrorCode::internal : made.error().code, ErrorCode::invalid_argument) << wrong;
  }
}

TEST(SessionZmtpSocket, LibzmqWithEncryptionRefusesIt) {
  char public_key[41];
  char secret_key[41];
  ASSERT_EQ(zmq_curve_keypair(public_key, secret_key), 0);
  LibzmqRouter router({.secret_key = secret_key});
  auto socket = begin(router.uri());
  const auto error = refusal(*socket);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, ErrorCode::io_error);
}

/// A peer that the test simulates, connected over TCP only.
class Impostor {
 public:
  Impostor() : socket(begin(listener_.uri())) {
    while (!peer_.is_open()) peer_ = listener_.accept();
  }
  void say(ByteView bytes) {
    peer_.put_bytes(bytes);
    peer_.write();
  }
  void introduce() {
    std::vector<std::byte> said;
    ZmtpDealer::begin(said);
    zmtp::append_ready(said, "ROUTER");
    say(said);
    EXPECT_FALSE(refusal(*socket));
  }
  void close() { peer_.close(); }

 private:
  FakeSessionListener listener_{FakeSessionListener::Kind::tcp};

 public:
  std::unique_ptr<SessionZmtpSocket> socket;

 private:
  FakeSession peer_;
};

TEST(SessionZmtpSocket, ReportsThatThePeerSpeaksAnotherProtocol) {
  for (const bool talks : {false, true}) {
    Impostor impostor;
    if (talks) {
      impostor.say(as_byte_view("HTTP/1.1 400 Bad Request, and what one says then to strangers\r\n"));
    } else {
      impostor.close();
    }
    const auto error = refusal(*impostor.socket);
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code, ErrorCode::io_error);
    EXPECT_THAT(error->message, HasSubstr(talks ? "does not speak ZeroMQ" : "ended the connection"));
  }
}

TEST(SessionZmtpSocket, ConnectsEvenIfTheHandshakeArrivesByteByByte) {
  Impostor impostor;
  std::vector<std::byte> said;
  ZmtpDealer::begin(said);
  zmtp::append_ready(said, "ROUTER");
  for (const std::byte& byte : said) {
    EXPECT_FALSE(impostor.socket->connected().value_or_throw());
    impostor.say(ByteView(&byte, 1));
  }
  EXPECT_FALSE(refusal(*impostor.socket));
}

TEST(SessionZmtpSocket, BytesThatArriveWithTheHandshakeArePending) {
  Impostor impostor;
  std::vector<std::byte> said;
  ZmtpDealer::begin(said);
  zmtp::append_ready(said, "ROUTER");
  const ByteView text = as_byte_view(std::string_view("\0\4text", 6));
  said.insert(said.end(), text.begin(), text.end());
  impostor.say(said);
  EXPECT_FALSE(refusal(*impostor.socket));
  EXPECT_EQ(read(*impostor.socket, 4), "text");
  EXPECT_FALSE(impostor.socket->pending(POLLIN));
}

TEST(SessionZmtpSocket, AnErrorEndsItWithItsReason) {
  Impostor impostor;
  impostor.introduce();
  std::vector<std::byte> said;
  zmtp::append_error(said, "enough");
  impostor.say(said);
  std::optional<Error> error;
  EXPECT_EQ(read(*impostor.socket, 1, 1, &error), "");
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, ErrorCode::closed);
  EXPECT_THAT(error->message, HasSubstr("'enough'"));
}

TEST(SessionZmtpSocket, AWriteToAClosedPeerFails) {
  Impostor impostor;
  impostor.introduce();
  impostor.close();
  std::optional<Error> error;
  while (!error) {
    const Result<std::size_t> written = write(*impostor.socket, frame("x"));
    if (!written) error = written.error();
  }
  EXPECT_EQ(error->code, ErrorCode::closed);
}

}  // namespace
}  // namespace lightq::test
