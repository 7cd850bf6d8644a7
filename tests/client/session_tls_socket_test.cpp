/// Tests of the client's end of TLS against an OpenSSL server that the test drives itself.
#include <lightq/detail/session_tls_socket.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/ec.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <lightq/detail/session_connection.hpp>

#include "session_fake_broker.hpp"

#include "support/planted.hpp"

namespace lightq::test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

/// A key and its certificate, made once.
class Identity {
 public:
  Identity() : key_(EVP_EC_gen("P-256")), certificate_(X509_new()) {
    X509_gmtime_adj(X509_getm_notBefore(certificate_), 0);
    X509_gmtime_adj(X509_getm_notAfter(certificate_), 3600);
    X509_set_pubkey(certificate_, key_);
    X509_sign(certificate_, key_, EVP_sha256());
  }
  Identity(const Identity&) = delete;
  Identity& operator=(const Identity&) = delete;
  ~Identity() {
    EVP_PKEY_free(key_);
    X509_free(certificate_);
  }
  [[nodiscard]] std::string fingerprint() const {
    std::array<unsigned char, 32> digest{};
    unsigned int bytes = 0;
    X509_digest(certificate_, EVP_sha256(), digest.data(), &bytes);
    std::string text;
    for (const unsigned char byte : digest) {
      constexpr const char* digits = "0123456789abcdef";
      text += {digits[byte / 16], digits[byte % 16]};
    }
    return text;
  }
  [[nodiscard]] EVP_PKEY* key() const { return key_; }
  [[nodiscard]] X509* certificate() const { return certificate_; }

 private:
  EVP_PKEY* key_;
  X509* certificate_;
};

/// The server's end of one connection. No call waits.
class Server {
 public:
  Server(const Identity& identity, int descriptor, int newest = TLS1_3_VERSION)
      : context_(SSL_CTX_new(TLS_server_method())), descriptor_(descriptor) {
    SSL_CTX_set_max_proto_version(context_, newest);
    SSL_CTX_use_certificate(context_, identity.certificate());
    SSL_CTX_use_PrivateKey(context_, identity.key());
    SSL_CTX_set_mode(context_, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    ssl_ = SSL_new(context_);
    SSL_set_fd(ssl_, descriptor);
    SSL_set_accept_state(ssl_);
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server() {
    SSL_free(ssl_);
    SSL_CTX_free(context_);
    ::close(descriptor_);
    ERR_clear_error();
  }
  /// Makes all possible progress.
  void work() {
    ERR_clear_error();
    std::array<char, 50'000> room{};
    std::size_t bytes = 0;
    if (SSL_is_init_finished(ssl_) == 0) SSL_do_handshake(ssl_);
    while (SSL_is_init_finished(ssl_) == 1 && SSL_read_ex(ssl_, room.data(), room.size(), &bytes) == 1)
      heard.append(room.data(), bytes);
    ended |= (SSL_get_shutdown(ssl_) & SSL_RECEIVED_SHUTDOWN) != 0;
    while (SSL_is_init_finished(ssl_) == 1 && !to_say.empty() &&
           SSL_write_ex(ssl_, to_say.data(), to_say.size(), &bytes) == 1)
      to_say.erase(0, bytes);
  }
  [[nodiscard]] bool connected() const { return SSL_is_init_finished(ssl_) == 1; }
  [[nodiscard]] SSL* ssl() const { return ssl_; }
  [[nodiscard]] int descriptor() const { return descriptor_; }

  std::string heard;
  std::string to_say;
  bool ended = false;

 private:
  SSL_CTX* context_;
  const int descriptor_;
  SSL* ssl_ = nullptr;
};

/// Listens, and accepts one connection.
class Listening {
 public:
  Listening() : descriptor_(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof address;
    EXPECT_EQ(::bind(descriptor_, reinterpret_cast<sockaddr*>(&address), bytes), 0);
    EXPECT_EQ(::listen(descriptor_, 4), 0);
    ::getsockname(descriptor_, reinterpret_cast<sockaddr*>(&address), &bytes);
    uri_ = "tcp://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;
  ~Listening() { ::close(descriptor_); }
  [[nodiscard]] const std::string& uri() const { return uri_; }
  /// Returns -1 if no connection is waiting.
  [[nodiscard]] int accept() const {
    return ::accept4(descriptor_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  }

 private:
  int descriptor_;
  std::string uri_;
};

std::string text_of(std::size_t bytes) {
  std::mt19937 random(7);
  std::string text(bytes, '\0');
  std::generate(text.begin(), text.end(), [&] { return static_cast<char>(random()); });
  return text;
}

class SessionTlsSocketTest : public ::testing::Test {
 protected:
  using Deadline = std::chrono::steady_clock::time_point;
  static Deadline deadline() { return std::chrono::steady_clock::now() + std::chrono::seconds(60); }

  void connect(const std::string& fingerprint, int newest = TLS1_3_VERSION) {
    socket = SessionTlsSocket::connect(listening.uri(), fingerprint).value_or_throw();
    int accepted = -1;
    for (const Deadline end = deadline(); accepted < 0 && std::chrono::steady_clock::now() < end;)
      accepted = listening.accept();
    ASSERT_GE(accepted, 0);
    server = std::make_unique<Server>(identity, accepted, newest);
  }
  /// Works until the socket is connected. Returns its error otherwise.
  Result<void> shake_hands() {
    for (const Deadline end = deadline(); std::chrono::steady_clock::now() < end; server->work()) {
      const Result<bool> connected = socket->connected();
      if (!connected) return connected.error();
      if (*connected) return {};
    }
    return Error{ErrorCode::timeout, "no handshake"};
  }
  void begin() {
    connect(identity.fingerprint());
    ASSERT_TRUE(shake_hands().ok());
    ASSERT_TRUE(until([&] { return server->connected(); }));
  }
  /// Lets both sides work until `done`.
  bool until(const std::function<bool()>& done) {
    for (const Deadline end = deadline(); std::chrono::steady_clock::now() < end; server->work()) {
      if (done()) return true;
    }
    return false;
  }
  /// Reads all available bytes in pieces. Returns the error if there is one.
  std::optional<Error> read_on(std::size_t piece = 10'000) {
    std::vector<std::byte> room(piece);
    while (true) {
      const Result<std::size_t> got = socket->read(room);
      if (!got) return got.error();
      heard.append(as_text(ByteView(room).first(*got)));
      if (*got < piece) return std::nullopt;
    }
  }

  const Identity identity;
  const Listening listening;
  std::unique_ptr<SessionTlsSocket> socket;
  std::unique_ptr<Server> server;
  std::string heard;
};

TEST_F(SessionTlsSocketTest, SendsAndReceivesOnceItIsConnected) {
  begin();
  EXPECT_EQ(SSL_version(server->ssl()), TLS1_3_VERSION);
  std::string hello = "hello";
  iovec part{hello.data(), hello.size()};
  EXPECT_EQ(*socket->write(std::span(&part, 1)), hello.size());
  EXPECT_TRUE(until([&] { return server->heard == "hello"; }));
  server->to_say = "welcome";
  EXPECT_TRUE(until([&] { return !read_on() && heard == "welcome"; }));
}

TEST_F(SessionTlsSocketTest, AcceptsTheFingerprintInCapitals) {
  std::string capitals = identity.fingerprint();
  std::transform(capitals.begin(), capitals.end(), capitals.begin(),
                 [](char c) { return c >= 'a' ? static_cast<char>(c - 'a' + 'A') : c; });
  connect(capitals);
  EXPECT_TRUE(shake_hands().ok());
}

TEST_F(SessionTlsSocketTest, RefusesAnInvalidFingerprint) {
  for (const std::string& text : {std::string("x"), std::string(63, 'a'), std::string(65, 'a'),
                                  std::string(63, 'a') + "g", std::string(64, ' ')}) {
    const auto made = SessionTlsSocket::connect(listening.uri(), text);
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.error().code, ErrorCode::invalid_argument) << text;
  }
}

TEST_F(SessionTlsSocketTest, DetectsAnotherCertificateBeforeItSendsAnything) {
  const Identity other;
  connect(other.fingerprint());
  const Result<void> shaken = shake_hands();
  ASSERT_FALSE(shaken.ok());
  EXPECT_EQ(shaken.error().code, ErrorCode::unauthorized_access);
  EXPECT_EQ(shaken.error().message, listening.uri() + " is not the broker: it has the certificate " +
                                        identity.fingerprint() + ", but the broker's join reply named " +
                                        other.fingerprint());
  server->work();
  EXPECT_FALSE(server->connected());
  EXPECT_EQ(server->heard, "");
}

TEST_F(SessionTlsSocketTest, RefusesAnOlderVersion) {
  connect(identity.fingerprint(), TLS1_2_VERSION);
  const Result<void> shaken = shake_hands();
  ASSERT_FALSE(shaken.ok());
  EXPECT_EQ(shaken.error().code, ErrorCode::io_error);
  EXPECT_THAT(shaken.error().message, StartsWith("TLS with tcp://127.0.0.1:"));
}

TEST_F(SessionTlsSocketTest, ReportsDataThatIsNotTls) {
  connect(identity.fingerprint());
  ASSERT_TRUE(until([&] { return *socket->connected() || !socket->connects_by_writable(); }));
  const std::string frame(64, '\x02');
  ASSERT_EQ(::send(server->descriptor(), frame.data(), frame.size(), MSG_NOSIGNAL), 64);
  Result<bool> connected = false;
  const Deadline end = deadline();
  while (connected.ok() && !*connected && std::chrono::steady_clock::now() < end)
    connected = socket->connected();
  ASSERT_FALSE(connected.ok());
  EXPECT_THAT(connected.error().message, HasSubstr("wrong version number"));
}

TEST_F(SessionTlsSocketTest, SendsPartsOfEverySizeAndMoreThanThereIsRoomFor) {
  begin();
  const std::string text = text_of(20 * 1024 * 1024 + 77);
  std::size_t said = 0;
  bool was_held_up = false;
  while (said < text.size()) {
    std::array<iovec, 5> parts{};
    std::size_t at = said;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::size_t bytes =
          std::min<std::size_t>(text.size() - at, std::array{20UL, 500'000UL, 1UL, 16'384UL, 70'000UL}[i]);
      parts[i] = {const_cast<char*>(text.data()) + at, bytes};
      at += bytes;
    }
    const Result<std::size_t> taken = socket->write(parts);
    ASSERT_TRUE(taken.ok());
    said += *taken;
    if (said == at) continue;
    was_held_up = true;
    server->work();
  }
  EXPECT_TRUE(was_held_up);
  EXPECT_TRUE(until([&] { return *socket->flush() && server->heard.size() == text.size(); }));
  EXPECT_TRUE(server->heard == text);
}

/// Bytes that were not accepted may change before the next attempt, for example if a heartbeat precedes them.
TEST_F(SessionTlsSocketTest, AcceptsOtherBytesAfterAFullBuffer) {
  begin();
  std::string much(1024 * 1024, 'm');
  iovec part{much.data(), much.size()};
  std::size_t said = 0;
  for (std::size_t taken = 1; taken > 0; said += taken) taken = *socket->write(std::span(&part, 1));
  std::string other = "other";
  part = {other.data(), other.size()};
  ASSERT_TRUE(until([&] { return *socket->write(std::span(&part, 1)) == other.size(); }));
  ASSERT_TRUE(until([&] { return *socket->flush() && server->heard.size() == said + other.size(); }));
  EXPECT_EQ(server->heard.substr(said), "other");
  EXPECT_EQ(server->heard.find_first_not_of('m'), said);
}

TEST_F(SessionTlsSocketTest, ReturnsBytesReadAheadBeforeItWaits) {
  begin();
  server->to_say = text_of(40'000);
  const std::string said = server->to_say;
  ASSERT_TRUE(until([&] { return server->to_say.empty(); }));
  std::vector<std::byte> room(100);
  ASSERT_TRUE(until([&] { return *socket->read(room) == room.size(); }));
  heard.assign(as_text(room));
  while (heard.size() < said.size() && socket->pending(POLLIN)) {
    const std::size_t got = *socket->read(room);
    heard.append(as_text(ByteView(room).first(got)));
  }
  // All bytes had arrived, so the descriptor is not needed.
  EXPECT_TRUE(until([&] { return !read_on() && heard == said; }));
  EXPECT_FALSE(socket->pending(POLLIN));
  EXPECT_FALSE(socket->pending(POLLOUT));
}

TEST_F(SessionTlsSocketTest, IsNotAwakeForHalfARecord) {
  begin();
  server->to_say = "whole";
  ASSERT_TRUE(until([&] { return !read_on() && heard == "whole"; }));
  const std::array<unsigned char, 6> half{0x17, 3, 3, 0, 100, 1};
  ASSERT_EQ(::send(server->descriptor(), half.data(), half.size(), MSG_NOSIGNAL), 6);
  pollfd entry{socket->fd(), POLLIN, 0};
  ASSERT_EQ(::poll(&entry, 1, 60'000), 1);
  EXPECT_FALSE(read_on().has_value());
  EXPECT_FALSE(socket->pending(POLLIN));
}

TEST_F(SessionTlsSocketTest, ReturnsBytesSentBeforeTheEnd) {
  for (const bool politely : {true, false}) {
    heard.clear();
    begin();
    server->to_say = "goodbye";
    server->work();
    if (politely) SSL_shutdown(server->ssl());
    ::shutdown(server->descriptor(), SHUT_WR);
    std::optional<Error> error;
    EXPECT_TRUE(until([&] { return (error = read_on()).has_value(); }));
    EXPECT_EQ(error->code, ErrorCode::closed);
    EXPECT_EQ(heard, "goodbye");
  }
}

TEST_F(SessionTlsSocketTest, AChangedRecordEndsIt) {
  begin();
  std::vector<unsigned char> forged(105, 0);
  forged[0] = 0x17;
  forged[1] = forged[2] = 3;
  forged[4] = 100;
  ASSERT_EQ(::send(server->descriptor(), forged.data(), forged.size(), MSG_NOSIGNAL), 105);
  std::optional<Error> error;
  EXPECT_TRUE(until([&] { return (error = read_on()).has_value(); }));
  EXPECT_EQ(error->code, ErrorCode::io_error);
  EXPECT_THAT(error->message, HasSubstr("bad record mac"));
  EXPECT_EQ(read_on()->message, error->message);
}

TEST_F(SessionTlsSocketTest, SendsTheEndOfTheConnection) {
  begin();
  socket.reset();
  EXPECT_TRUE(until([&] { return server->ended; }));
}

TEST_F(SessionTlsSocketTest, ContinuesWhenThePeerUpdatesItsKey) {
  begin();
  for (int i = 0; i < 20; ++i) {
    SSL_key_update(server->ssl(), SSL_KEY_UPDATE_REQUESTED);
    server->to_say = "x";
    const auto wanted = static_cast<std::size_t>(i) + 1;
    ASSERT_TRUE(until([&] { return !read_on() && heard.size() == wanted; }));
    std::string answer = "y";
    iovec part{answer.data(), answer.size()};
    ASSERT_TRUE(until([&] { return *socket->write(std::span(&part, 1)) == 1; }));
    ASSERT_TRUE(until([&] { return server->heard.size() == wanted; }));
  }
}

/// During the handshake a connection waits for readable events only. It does not spin because the socket is
/// writable.
TEST_F(SessionTlsSocketTest, AConnectionWaitsForMoreBytes) {
  session::Hello hello;
  hello.frame_bytes_max = 1 << 20;
  SessionConnection connection(hello);
  const SessionTime now = SessionClock().now();
  SessionAddress address{listening.uri(), std::string("id.") + planted::ticket_secret};
  address.certificate_sha256 = identity.fingerprint();
  ASSERT_TRUE(connection.begin(address, now).ok());
  EXPECT_EQ(connection.wait_events(), POLLIN | POLLOUT);
  const auto ignore = [](const SessionFrame&) { return Result<void>(); };
  int accepted = -1;
  for (const Deadline end = deadline(); accepted < 0 && std::chrono::steady_clock::now() < end;)
    accepted = listening.accept();
  server = std::make_unique<Server>(identity, accepted);
  ASSERT_TRUE(until([&] { return connection.receive(now, ignore).ok() && !connection.wants_write(); }));
  EXPECT_EQ(connection.phase(), SessionConnection::Phase::connecting);
  EXPECT_EQ(connection.wait_events(), POLLIN);
  ASSERT_TRUE(until([&] {
    return connection.receive(now, ignore).ok() && connection.phase() == SessionConnection::Phase::greeting;
  }));
  EXPECT_TRUE(connection.wants_write());
  ASSERT_TRUE(connection.send(now, nullptr).ok());
  EXPECT_FALSE(connection.wants_write());
  EXPECT_TRUE(until([&] { return server->heard.size() > session::frame_layout::header_bytes; }));
  EXPECT_THAT(server->heard, HasSubstr(std::string("id.") + planted::ticket_secret));
}

}  // namespace
}  // namespace lightq::test
