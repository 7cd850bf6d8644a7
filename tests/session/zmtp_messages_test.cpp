/// Tests of the ZeroMQ messages around the frames of a session: where they start and end.
#include "session/zmtp_messages.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace lightq::broker {
namespace {

std::vector<std::byte> bytes_of(const std::string& text) {
  const ByteView view = as_byte_view(text);
  return {view.begin(), view.end()};
}

std::vector<std::byte> message_header(std::uint64_t body_bytes, bool more = false) {
  std::vector<std::byte> header(zmtp::frame_header_bytes_max);
  header.resize(zmtp::encode_frame_header(header.data(), body_bytes, more));
  return header;
}

TEST(ZmtpMessagesTest, AMessageBeginsAfterItsHeaderAndEndsAtItsLength) {
  for (const std::uint64_t size : {1ULL, 255ULL, 256ULL, 1ULL << 40}) {
    ZmtpMessages messages;
    const auto header = message_header(size);
    const auto next = messages.next(header);
    ASSERT_TRUE(std::holds_alternative<ZmtpMessages::Begun>(next)) << size;
    EXPECT_EQ(std::get<ZmtpMessages::Begun>(next).header_bytes, header.size());
    EXPECT_EQ(messages.left(), size);
    messages.take(size - 1);
    EXPECT_EQ(messages.left(), 1U);
    messages.take(1);
    EXPECT_EQ(messages.left(), 0U);
  }
}

TEST(ZmtpMessagesTest, WaitsForACompleteHeaderAndACompleteCommand) {
  ZmtpMessages messages;
  const auto header = message_header(1000);
  std::vector<std::byte> command;
  zmtp::append_command(command, "PING", bytes_of("12ctx"));
  for (const auto& whole : {header, command}) {
    for (std::size_t come = 0; come < whole.size(); ++come) {
      EXPECT_TRUE(
          std::holds_alternative<ZmtpMessages::Incomplete>(messages.next(ByteView(whole).first(come))));
      EXPECT_EQ(messages.left(), 0U);
    }
  }
}

TEST(ZmtpMessagesTest, ACommandIsReturnedCompletelyAndBeginsNoMessage) {
  ZmtpMessages messages;
  std::vector<std::byte> bytes;
  zmtp::append_command(bytes, "PING", bytes_of("12ctx"));
  const std::size_t whole = bytes.size();
  bytes.push_back(std::byte{0});
  const auto next = messages.next(bytes);
  ASSERT_TRUE(std::holds_alternative<ZmtpMessages::Command>(next));
  const auto& command = std::get<ZmtpMessages::Command>(next);
  EXPECT_EQ(command.bytes, whole);
  const auto parsed = zmtp::parse_command(command.body);
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->name, "PING");
  EXPECT_EQ(messages.left(), 0U);
}

TEST(ZmtpMessagesTest, RefusesSeveralPartsEmptyMessagesLongCommandsAndNonsense) {
  const auto refused = [](ByteView bytes) {
    ZmtpMessages messages;
    return std::holds_alternative<ZmtpMessages::Broken>(messages.next(bytes)) && messages.left() == 0;
  };
  EXPECT_TRUE(refused(message_header(10, true)));
  EXPECT_TRUE(refused(message_header(0)));
  EXPECT_TRUE(refused(bytes_of("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF")));
  std::vector<std::byte> command{std::byte{6}};  // a long command
  for (int shift = 56; shift >= 0; shift -= 8)
    command.push_back(static_cast<std::byte>((zmtp::command_bytes_max + 1) >> shift));
  EXPECT_TRUE(refused(command));
}

}  // namespace
}  // namespace lightq::broker
