/// Tests of the pure functions of the ZeroMQ wire protocol.
#include "zmtp/zmtp.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "support/plain_client.hpp"

namespace lightq::broker::zmtp {
namespace {

ByteView bytes_of(const std::string& text) {
  return as_byte_view(text);
}

TEST(ZmtpGreeting, ContainsItsMechanismAndItsRole) {
  EXPECT_EQ(mechanism_of(greeting()), Mechanism::null);
  EXPECT_FALSE(is_server(greeting()));
  const auto plain = greeting(Mechanism::plain, true);
  EXPECT_EQ(mechanism_of(plain), Mechanism::plain);
  EXPECT_TRUE(is_server(plain));
  const auto null = greeting();
  EXPECT_TRUE(std::equal(plain.begin(), plain.begin() + greeting_head_bytes, null.begin()));
  EXPECT_EQ(plain[32], std::byte{1}) << "as-server: RFC 37, \"Greeting\"";
}

TEST(ZmtpHello, IsExactlyTwoTexts) {
  std::vector<std::byte> frame;
  lightq::test::append_plain_hello(frame, "user", "");
  EXPECT_EQ(as_text(frame), std::string("\x04\x0c\x05HELLO\x04user\x00", 14));
  const auto said = [](const std::string& data) { return credentials_of_hello(bytes_of(data)); };
  const std::string good("\x02id\x03key", 7);
  const auto both = said(good);
  ASSERT_TRUE(both.has_value());
  EXPECT_EQ(both->username, "id");
  EXPECT_EQ(both->password, "key");
  EXPECT_TRUE(said(std::string("\0\0", 2)).has_value());
  for (const std::string& wrong :
       {std::string(), std::string("\0", 1), std::string("\x02id"), std::string("\x02id\x03ke"),
        std::string("\x02id\x03key?"), std::string("\xffid\x00", 4)})
    EXPECT_FALSE(said(wrong).has_value()) << wrong.size();
}

TEST(ZmtpGreeting, OursIsValidAndIncompleteAtEveryShorterLength) {
  const auto ours = greeting();
  EXPECT_EQ(check_greeting(ours), GreetingOutcome::valid);
  for (std::size_t length = 0; length < ours.size(); ++length) {
    EXPECT_EQ(check_greeting(ByteView(ours).first(length)), GreetingOutcome::incomplete) << length;
  }
}

TEST(ZmtpGreeting, DistinguishesOtherProtocolsOldVersionsAndMechanisms) {
  EXPECT_EQ(check_greeting(bytes_of("GET / HTTP/1.1\r\n")), GreetingOutcome::not_zmtp);
  EXPECT_EQ(check_greeting(bytes_of(std::string("\x01\x00", 2))), GreetingOutcome::not_zmtp);  // ZMTP 1.0
  auto old = greeting();
  old[10] = std::byte{1};  // ZMTP 2.0 sends revision 1 here
  EXPECT_EQ(check_greeting(ByteView(old).first(11)), GreetingOutcome::old_version);
  auto curve = greeting();
  curve[12] = std::byte{'C'};
  EXPECT_EQ(check_greeting(curve), GreetingOutcome::valid);
  EXPECT_FALSE(mechanism_of(curve).has_value());
  auto padded = greeting();
  padded[17] = std::byte{'x'};
  EXPECT_FALSE(mechanism_of(padded).has_value());
}

TEST(ZmtpFrame, HeadersOfEveryKindOfLengthSurviveARoundTrip) {
  for (const std::uint64_t length : {0ULL, 1ULL, 255ULL, 256ULL, 65536ULL, 1ULL << 40}) {
    for (const bool more : {false, true}) {
      std::array<std::byte, frame_header_bytes_max> bytes{};
      const std::size_t written = encode_frame_header(bytes.data(), length, more);
      EXPECT_EQ(written, length <= 255 ? short_header_bytes : long_header_bytes);
      FrameHeader header;
      ASSERT_EQ(parse_frame_header(ByteView(bytes).first(written), header), FrameOutcome::complete);
      EXPECT_EQ(header.body_bytes, length);
      EXPECT_EQ(header.more, more);
      EXPECT_FALSE(header.command);
      EXPECT_EQ(parse_frame_header(ByteView(bytes).first(written - 1), header), FrameOutcome::incomplete);
    }
  }
}

TEST(ZmtpFrame, RefusesUnknownFlagsAndCommandsInPartsAndNegativeLengths) {
  FrameHeader header;
  EXPECT_EQ(parse_frame_header(bytes_of(std::string("\x08\x00", 2)), header), FrameOutcome::invalid);
  EXPECT_EQ(parse_frame_header(bytes_of(std::string("\x05\x00", 2)), header), FrameOutcome::invalid);
  EXPECT_EQ(parse_frame_header(bytes_of(std::string("\x02\xFF\0\0\0\0\0\0\0", 9)), header),
            FrameOutcome::invalid);
}

TEST(ZmtpCommand, ReadyCarriesTheSocketTypeInAnyCase) {
  std::vector<std::byte> frame;
  append_ready(frame, "PULL");
  FrameHeader header;
  ASSERT_EQ(parse_frame_header(frame, header), FrameOutcome::complete);
  EXPECT_TRUE(header.command);
  const auto command = parse_command(ByteView(frame).subspan(header.header_bytes));
  ASSERT_TRUE(command.has_value());
  EXPECT_EQ(command->name, "READY");
  EXPECT_EQ(socket_type_of_ready(command->data), "PULL");
  EXPECT_EQ(socket_type_of_ready(bytes_of(std::string("\x0bsocket-type\0\0\0\x03SUB", 19))), "SUB");
  EXPECT_EQ(
      socket_type_of_ready(bytes_of(std::string("\x08Identity\0\0\0\0\x0bSocket-Type\0\0\0\x04PUSH", 33))),
      "PUSH");
}

TEST(ZmtpCommand, PropertiesThatRunPastTheEndAreRefused) {
  const std::string whole("\x0bSocket-Type\0\0\0\x04PUSH", 20);
  for (std::size_t length = 1; length < whole.size(); ++length) {
    EXPECT_FALSE(socket_type_of_ready(bytes_of(whole.substr(0, length))).has_value()) << length;
  }
  EXPECT_FALSE(socket_type_of_ready({}).has_value());
  EXPECT_FALSE(parse_command(bytes_of(std::string("\x05PING", 5))).has_value());
  EXPECT_FALSE(parse_command(bytes_of(std::string("\0", 1))).has_value());
}

TEST(ZmtpSubscription, BothFormsAreUnderstood) {
  const std::string text = "\x01orders";
  const auto message = subscription_of_message(bytes_of(text));
  ASSERT_TRUE(message.has_value());
  EXPECT_TRUE(message->subscribe);
  EXPECT_EQ(message->prefix, "orders");
  EXPECT_FALSE(subscription_of_message(bytes_of(std::string("\0", 1)))->subscribe);
  EXPECT_FALSE(subscription_of_message(bytes_of("hello")).has_value());
  EXPECT_FALSE(subscription_of_message({}).has_value());
  EXPECT_TRUE(subscription_of_command({"SUBSCRIBE", bytes_of("a")})->subscribe);
  EXPECT_FALSE(subscription_of_command({"CANCEL", bytes_of("a")})->subscribe);
  EXPECT_FALSE(subscription_of_command({"READY", {}}).has_value());
}

TEST(ZmtpError, AReasonIsCutToTheFormatsMaximum) {
  std::vector<std::byte> frame;
  append_error(frame, std::string(1000, 'x'));
  FrameHeader header;
  ASSERT_EQ(parse_frame_header(frame, header), FrameOutcome::complete);
  EXPECT_EQ(header.header_bytes, long_header_bytes);
  EXPECT_EQ(header.body_bytes, frame.size() - header.header_bytes);
}

}  // namespace
}  // namespace lightq::broker::zmtp
