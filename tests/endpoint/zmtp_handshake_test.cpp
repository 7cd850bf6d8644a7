/// Tests of the handshake with a ZeroMQ peer, byte by byte.
#include "zmtp/zmtp_handshake.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "endpoint/connection_harness.hpp"

namespace lightq::broker {
namespace {

using test::command;
using test::frame;
using test::opening;
using testing::HasSubstr;

/// A publisher's side of a handshake, and the bytes that it sends.
struct Side {
  /// Feeds `bytes` in pieces. Returns the number of used bytes.
  std::size_t take(const std::string& bytes, std::size_t piece) {
    std::size_t used = 0;
    for (std::size_t come = 0; come < bytes.size() && handshake.failure().empty();) {
      come = std::min(bytes.size(), come + piece);
      used += handshake.take(as_byte_view(bytes).subspan(used, come - used), said);
    }
    return used;
  }
  /// Feeds `bytes` as a whole. Returns the reason of the refusal.
  std::string failure(const std::string& bytes) {
    take(bytes, bytes.size());
    EXPECT_FALSE(handshake.complete());
    return handshake.failure();
  }

  ZmtpHandshake handshake{"XPUB", {"SUB", "XSUB"}};
  std::vector<std::byte> said;
};

TEST(ZmtpHandshake, CompletesWithAnySplitOfThePeersBytesAndLeavesLaterOnes) {
  const std::string whole = opening("SUB");
  for (std::size_t piece = 1; piece <= whole.size(); ++piece) {
    Side side;
    EXPECT_EQ(side.take(whole.substr(0, whole.size() - 1), piece), zmtp::greeting_bytes);
    EXPECT_FALSE(side.handshake.complete());
    Side again;
    EXPECT_EQ(again.take(whole + frame("first"), piece), whole.size()) << "in pieces of " << piece;
    EXPECT_TRUE(again.handshake.complete());
    EXPECT_EQ(again.handshake.failure(), "");
    EXPECT_TRUE(again.handshake.peer_speaks_3_1());
  }
}

TEST(ZmtpHandshake, SendsTheGreetingFirstAndReadyAfterThePeersGreeting) {
  Side side;
  side.handshake.begin(side.said);
  side.take(opening("XSUB"), 1);
  EXPECT_EQ(as_text(side.said), opening("XPUB"));
}

TEST(ZmtpHandshake, ReportsTheNumberOfMissingBytes) {
  constexpr std::size_t to_version = 11;
  const std::string whole = opening("SUB");
  Side side;
  const auto missing = [&](const std::string& left) { return side.handshake.missing(as_byte_view(left)); };
  EXPECT_EQ(missing(whole.substr(0, 1)), to_version - 1);
  EXPECT_EQ(missing(whole.substr(0, to_version - 1)), 1U);
  EXPECT_EQ(missing(whole.substr(0, to_version)), zmtp::greeting_bytes - to_version);
  EXPECT_EQ(side.take(whole.substr(0, zmtp::greeting_bytes), 1), zmtp::greeting_bytes);
  const std::string ready = whole.substr(zmtp::greeting_bytes);
  EXPECT_EQ(missing(ready.substr(0, 1)), 1U) << "its length is not known yet";
  EXPECT_EQ(missing(ready.substr(0, 2)), ready.size() - 2);
  EXPECT_EQ(missing(ready.substr(0, ready.size() - 1)), 1U);
}

TEST(ZmtpHandshake, KnowsAPeerWithoutHeartbeats) {
  std::string old = opening("SUB");
  old[11] = 0;  // the minor version
  Side side;
  side.take(old, old.size());
  EXPECT_TRUE(side.handshake.complete());
  EXPECT_FALSE(side.handshake.peer_speaks_3_1());
}

TEST(ZmtpHandshake, RefusesAnIncompatibleSocketTypeWithAnError) {
  Side side;
  EXPECT_THAT(side.failure(opening("PULL")),
              HasSubstr("a socket of type PULL, which cannot connect to type XPUB"));
  EXPECT_THAT(std::string(as_text(side.said)), HasSubstr("Invalid socket type"));
  EXPECT_THAT(Side().failure(opening(std::string(200, 'S'))),
              HasSubstr("type " + std::string(16, 'S') + ","));
}

TEST(ZmtpHandshake, RefusesAnInvalidHandshake) {
  const std::string greeting = opening("SUB").substr(0, zmtp::greeting_bytes);
  EXPECT_EQ(Side().failure("GET / HTTP/1.1"), "not a ZeroMQ peer");
  EXPECT_EQ(Side().failure(greeting + frame("a message")), "an invalid ZMTP handshake");
  EXPECT_EQ(Side().failure(greeting + command("READY", std::string(zmtp::command_bytes_max, 'x'))),
            "an invalid ZMTP handshake");
  EXPECT_EQ(Side().failure(greeting + command("PING", "")), "a handshake without READY");
  EXPECT_THAT(Side().failure(greeting + command("READY", "")), HasSubstr("a socket of type ?"));
  std::string other = opening("SUB");
  other[12] = 'P';
  EXPECT_EQ(Side().failure(other), "a security mechanism other than NULL");
  other[10] = 2;
  EXPECT_EQ(Side().failure(other), "ZMTP older than 3.0 (libzmq before 4.0)");
}

}  // namespace
}  // namespace lightq::broker
