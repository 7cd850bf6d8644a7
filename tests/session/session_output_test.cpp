/// Tests of a session's output: the order of the bytes, their limits, and when nothing more is sent.
#include "session/session_output.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>

#include "session/session_wire.hpp"
#include "zmtp/zmtp.hpp"

namespace lightq::broker {
namespace {

using test::SessionWire;

constexpr std::size_t room_bytes = 64 * limits::KiB;
constexpr std::size_t straight_bytes = 8 * limits::KiB;

class SessionOutputTest : public testing::Test {
 protected:
  SessionOutputTest() { wire.life.open(); }
  void append(const std::string& frame) { wire.frames.append(as_byte_view(frame)); }
  void deliver(const std::string& head, const std::string& rest) {
    wire.frames.deliver(as_byte_view(head), as_byte_view(rest));
  }

  SessionWire wire;
};

/// Returns the header of a ZeroMQ message of `bytes` bytes.
std::string zmtp_header_of(std::size_t bytes) {
  std::byte header[zmtp::frame_header_bytes_max];
  return std::string(as_text({header, zmtp::encode_frame_header(header, bytes, false)}));
}

TEST_F(SessionOutputTest, SmallFramesWaitForAFlushAndKeepTheirOrder) {
  append("reply,");
  deliver("head,", "messages,");
  append("confirm");
  EXPECT_EQ(wire.received(), "");
  EXPECT_FALSE(wire.frames.is_empty());
  wire.frames.flush();
  EXPECT_EQ(wire.received(), "reply,head,messages,confirm");
  EXPECT_TRUE(wire.frames.is_empty());
  EXPECT_EQ(wire.frames.sent_total(), 27U);
}

TEST_F(SessionOutputTest, ManyMessagesLeaveAtOnceBehindEarlierFrames) {
  append("reply,");
  const std::string almost(straight_bytes - 1, 'a');
  deliver("head,", almost);
  EXPECT_EQ(wire.received(), "");
  const std::string many(straight_bytes, 'm');
  deliver("head,", many);
  EXPECT_EQ(wire.received(), "reply,head," + almost + "head," + many);
  EXPECT_TRUE(wire.frames.is_empty());
}

TEST_F(SessionOutputTest, MessagesLeaveWhenTheRoomIsUsed) {
  const std::string some(straight_bytes - 1, 's');
  std::string expected;
  while (expected.size() + some.size() < room_bytes) {
    deliver("", some);
    expected += some;
  }
  EXPECT_EQ(wire.received(), "");
  deliver("", some);
  EXPECT_EQ(wire.received(), expected + some);
}

TEST_F(SessionOutputTest, TheRoomIsSixtyFourKiB) {
  append(std::string(room_bytes - 1, 'x'));
  EXPECT_TRUE(wire.frames.has_room());
  append("x");
  EXPECT_FALSE(wire.frames.has_room());
  EXPECT_TRUE(wire.frames.may_confirm());
  EXPECT_FALSE(wire.frames.has_unread_replies());
  append("x");
  EXPECT_FALSE(wire.frames.may_confirm());
  EXPECT_TRUE(wire.frames.has_unread_replies());
  EXPECT_EQ(wire.drained().size(), room_bytes + 1);
  EXPECT_TRUE(wire.frames.has_room());
  EXPECT_TRUE(wire.frames.may_confirm());
  EXPECT_FALSE(wire.frames.has_unread_replies());
}

TEST_F(SessionOutputTest, MessagesThatAreNotReadAreNoUnreadReplies) {
  const std::string many(8 * limits::MiB, 'm');  // more than the sockets take
  deliver("head,", many);
  EXPECT_FALSE(wire.frames.is_empty());
  EXPECT_FALSE(wire.frames.has_room());
  EXPECT_FALSE(wire.frames.has_unread_replies()) << "acknowledgements must still be read";
  const std::string replies(room_bytes, 'r');
  append(replies);
  EXPECT_FALSE(wire.frames.has_unread_replies());
  append("!");
  EXPECT_TRUE(wire.frames.has_unread_replies());
  EXPECT_EQ(wire.drained(), "head," + many + replies + "!");
  EXPECT_FALSE(wire.frames.has_unread_replies());
  append(replies + "!");
  EXPECT_TRUE(wire.frames.has_unread_replies()) << "the delivered messages have left";
}

TEST_F(SessionOutputTest, AQuietClientReceivesRepliesOnly) {
  wire.frames.set_quiet(true);
  EXPECT_FALSE(wire.frames.has_room());
  EXPECT_TRUE(wire.frames.may_confirm());
  append("reply");
  wire.frames.flush();
  EXPECT_EQ(wire.received(), "reply");
  wire.frames.set_quiet(false);
  EXPECT_TRUE(wire.frames.has_room());
}

TEST_F(SessionOutputTest, NothingIsDeliveredAfterTheGoodbye) {
  append("goodbye");
  wire.frames.end();
  deliver("head,", "messages");
  EXPECT_FALSE(wire.frames.has_room());
  EXPECT_FALSE(wire.frames.may_confirm());
  wire.frames.flush();
  EXPECT_EQ(wire.received(), "goodbye");
  EXPECT_EQ(wire.frames.said_bytes(), 7U);
}

TEST_F(SessionOutputTest, NothingIsDeliveredOverAConnectionThatFails) {
  append("reply");
  wire.frames.out_of_memory_for_output();
  EXPECT_TRUE(wire.life.failed());
  EXPECT_FALSE(wire.frames.has_room());
  EXPECT_FALSE(wire.frames.may_confirm());
  deliver("head,", std::string(straight_bytes, 'm'));
  wire.frames.flush();
  EXPECT_EQ(wire.received(), "");
}

TEST(SessionOutputOnOpening, NothingIsDeliveredBeforeTheConnectionIsOpen) {
  SessionWire wire;
  EXPECT_FALSE(wire.frames.has_room());
  wire.frames.deliver(as_byte_view("head,"), as_byte_view("messages"));
  EXPECT_TRUE(wire.frames.is_empty());
  wire.life.open();
  EXPECT_TRUE(wire.frames.has_room());
}

TEST(SessionOutputInMessages, EachFrameIsAMessage) {
  SessionWire wire(SessionCarrier::zmtp);
  wire.life.open();
  wire.frames.append(as_byte_view("reply"));
  const std::string many(straight_bytes, 'm');
  wire.frames.deliver(as_byte_view("head"), as_byte_view(many));
  EXPECT_EQ(wire.received(), zmtp_header_of(5) + "reply" + zmtp_header_of(4 + many.size()) + "head" + many);
  EXPECT_EQ(wire.frames.said_bytes(), 5 + 4 + many.size()) << "headers of messages do not count";
}

TEST_F(SessionOutputTest, TheHelloSaysWhatTheClientAccepts) {
  EXPECT_EQ(wire.frames.client_takes_bytes(), 0U);
  EXPECT_FALSE(wire.frames.client_may_be_busy());
  session::Hello hello;
  hello.frame_bytes_max = 100'000;
  hello.codecs = CodecSet(CodecSet::known().bits() | session::hello_may_be_busy);
  wire.frames.greet(hello);
  EXPECT_EQ(wire.frames.client_takes_bytes(), 100'000U);
  EXPECT_TRUE(wire.frames.client_codecs().has(Codec::lz4));
  EXPECT_TRUE(wire.frames.client_may_be_busy());
  EXPECT_FALSE(wire.frames.client_hears_late());
  EXPECT_FALSE(wire.frames.client_keeps_secrets());
  hello.codecs = CodecSet(session::hello_hears_late | session::keeps_producer_secrets);
  wire.frames.greet(hello);
  EXPECT_FALSE(wire.frames.client_codecs().has(Codec::lz4));
  EXPECT_FALSE(wire.frames.client_may_be_busy());
  EXPECT_TRUE(wire.frames.client_hears_late());
  EXPECT_TRUE(wire.frames.client_keeps_secrets());
}

TEST_F(SessionOutputTest, FramesThatLeftInAnotherWayCountAsSaid) {
  append("1234");
  deliver("12", "3");
  wire.frames.count_said(10);
  EXPECT_EQ(wire.frames.said_bytes(), 17U);
  EXPECT_EQ(wire.frames.sent_total(), 0U);
}

}  // namespace
}  // namespace lightq::broker
