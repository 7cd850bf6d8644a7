/// Tests of the client's end of a ZeroMQ connection over bytes: a stream that is cut at every position, and
/// peers that do not speak ZMTP.
#include <lightq/detail/zmtp_dealer.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace lightq::test {
namespace {

using ::testing::HasSubstr;
using Bytes = std::vector<std::byte>;

Bytes bytes_of(std::string_view text) {
  const ByteView view = as_byte_view(text);
  return {view.begin(), view.end()};
}
Bytes operator+(Bytes left, const Bytes& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}
Bytes greeting(int major = 3, int minor = 1, zmtp::Mechanism mechanism = zmtp::Mechanism::null) {
  auto said = zmtp::greeting(mechanism);
  said[10] = static_cast<std::byte>(major);
  said[11] = static_cast<std::byte>(minor);
  return {said.begin(), said.end()};
}
Bytes ready(std::string_view type = "ROUTER") {
  Bytes frame;
  zmtp::append_ready(frame, type);
  return frame;
}
Bytes command(std::string_view name, std::string_view data) {
  Bytes frame;
  zmtp::append_command(frame, name, as_byte_view(data));
  return frame;
}
Bytes frame(std::string_view body, bool more = false) {
  std::array<std::byte, zmtp::frame_header_bytes_max> header{};
  const std::size_t bytes = zmtp::encode_frame_header(header.data(), body.size(), more);
  return Bytes(header.begin(), header.begin() + static_cast<std::ptrdiff_t>(bytes)) + bytes_of(body);
}

/// A dealer that receives `bytes` in steps of `step` bytes. Unused bytes stay in the buffer and are offered
/// again. Message bytes are taken from the dealer `room` bytes at a time.
struct Heard {
  Heard(const Bytes& bytes, std::size_t step, std::size_t room = 4096, std::uint64_t message_bytes_max = 0)
      : dealer(message_bytes_max) {
    Bytes come;
    for (std::size_t at = 0; at < bytes.size() && !error; at += step) {
      const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(at);
      come.insert(come.end(), begin, begin + static_cast<std::ptrdiff_t>(std::min(step, bytes.size() - at)));
      hear(come, room);
      if (dealer.broken()) error = dealer.broken();
    }
    left = come.size();
  }
  void hear(Bytes& come, std::size_t room) {
    if (!dealer.complete()) {
      const Result<std::size_t> used = dealer.introduce(come, said);
      if (!used) {
        error = used.error();
        return;
      }
      come.erase(come.begin(), come.begin() + static_cast<std::ptrdiff_t>(*used));
      if (!dealer.complete()) return;
    }
    Bytes to(room);
    while (true) {
      const auto [used, got] = dealer.take(come, to);
      come.erase(come.begin(), come.begin() + static_cast<std::ptrdiff_t>(used));
      text += as_text(ByteView(to).first(got));
      if (dealer.owes_pong()) dealer.append_pong(said);
      if (got < room) return;
    }
  }

  ZmtpDealer dealer;
  Bytes said;
  std::string text;
  std::optional<Error> error;
  std::size_t left = 0;
};

TEST(ZmtpDealer, SendsAGreetingAndThenItsReady) {
  Bytes said;
  ZmtpDealer::begin(said);
  EXPECT_EQ(said, greeting());
  ZmtpDealer dealer;
  Bytes answer;
  EXPECT_EQ(*dealer.introduce(greeting(), answer), zmtp::greeting_bytes);
  EXPECT_EQ(answer, ready("DEALER")) << "once it knows that this is a peer of ours";
  EXPECT_FALSE(dealer.complete());
  EXPECT_EQ(*dealer.introduce(ready(), answer), ready().size());
  EXPECT_TRUE(dealer.complete());
}

TEST(ZmtpDealer, ParsesMessagesWithAnySplit) {
  const std::string longer(70'000, 'l');
  const Bytes stream = greeting() + ready() + frame("one") +
                       command("PING", std::string("\0\x0a"
                                                   "ctx",
                                                   5)) +
                       frame("") + command("SUBSCRIBE", "x") + frame(std::string(255, 's')) +
                       frame(std::string(256, 't')) + command("WHATEVER", std::string(4000, 'w')) +
                       frame(longer) + frame("end");
  const std::string expected = "one" + std::string(255, 's') + std::string(256, 't') + longer + "end";
  for (const std::size_t step : {1U, 2U, 3U, 7U, 8U, 9U, 10U, 63U, 64U, 65U, 4096U, 1U << 20U}) {
    for (const std::size_t room : {1U, 100U, 4096U}) {
      if (room == 1 && step > 10 && step < 4096) continue;
      const Heard heard(stream, step, room);
      ASSERT_FALSE(heard.error) << step << " " << heard.error->message;
      ASSERT_TRUE(heard.text == expected) << step << " into " << room;
      ASSERT_EQ(heard.said, ready("DEALER") + command("PONG", "ctx"));
      ASSERT_EQ(heard.left, 0U);
      ASSERT_EQ(heard.dealer.left(), 0U);
    }
  }
}

TEST(ZmtpDealer, TheBodyMayBeReceivedElsewhere) {
  Heard heard(greeting() + ready() + frame(std::string(500, 'b')), 1 << 20);
  EXPECT_EQ(heard.text.size(), 500U);
  Bytes begun = frame(std::string(500, 'b'));
  begun.resize(zmtp::long_header_bytes + 100);
  heard.hear(begun, 4096);
  EXPECT_EQ(heard.dealer.left(), 400U);
  heard.dealer.skip(400);
  Bytes next = frame("next");
  heard.hear(next, 4096);
  EXPECT_EQ(heard.text.substr(600), "next");
}

TEST(ZmtpDealer, GetsOnWithPeersOf3_0AndOfLaterVersions) {
  for (const auto& said : {greeting(3, 0), greeting(3, 1), greeting(3, 2), greeting(4, 0)}) {
    const Heard heard(said + ready() + frame("text"), 5);
    EXPECT_FALSE(heard.error);
    EXPECT_EQ(heard.text, "text");
  }
}

TEST(ZmtpDealer, RefusesAPeerThatIsNotARouter) {
  Bytes properties_cut = ready();
  properties_cut.pop_back();
  properties_cut[1] = static_cast<std::byte>(properties_cut.size() - 2);
  const std::string none = "without READY";
  const struct {
    Bytes bytes;
    std::string why;
  } strangers[] = {
      {bytes_of("HTTP/1.1 400 Bad Request"), "does not speak ZeroMQ"},
      {bytes_of(std::string("\xff\0\0\0\0\0\0\0\1\0", 10)), "does not speak ZeroMQ"},
      {greeting(1, 0), "older than 4.0"},
      {greeting(2, 1), "older than 4.0"},
      {greeting(3, 1, zmtp::Mechanism::plain), "another security mechanism"},
      {greeting(3, 1, zmtp::Mechanism::curve), "another security mechanism"},
      {greeting() + ready("DEALER"), "of type 'DEALER'"},
      {greeting() + ready("X\x1b[2J"), "of type 'X?[2J'"},
      {greeting() + command("READY", ""), "of type '?'"},
      {greeting() + properties_cut, "of type '?'"},
      {greeting() + command("ERROR", "\x13Invalid socket type"), "'Invalid socket type'"},
      {greeting() + command("ERROR", ""), "refuses the connection: ''"},
      {greeting() + command("HELLO", "1234"), none},
      {greeting() + frame("message"), none},
      {greeting() + bytes_of(std::string("\4\0", 2)), none},
      {greeting() + bytes_of(std::string("\x04\x01\0", 3)), none},
      {greeting() + bytes_of(std::string("\x06\0\0\0\0\0\0\x10\1", 9)), none},
      {greeting() + bytes_of("\x08"), none},
      {greeting() + bytes_of("\x05"), none},
  };
  for (const auto& stranger : strangers) {
    for (const std::size_t step : {1U, 1U << 20U}) {
      const Heard heard(stranger.bytes, step);
      ASSERT_TRUE(heard.error) << stranger.why;
      EXPECT_EQ(heard.error->code, ErrorCode::invalid_request);
      EXPECT_THAT(heard.error->message, HasSubstr(stranger.why));
      EXPECT_FALSE(heard.dealer.complete());
    }
  }
}

TEST(ZmtpDealer, OtherMechanismsAreRefused) {
  Bytes said = greeting();
  for (const char* mechanism : {"GSSAPI", "null", "NULLX", ""}) {
    std::fill(said.begin() + 12, said.begin() + 32, std::byte{});
    const Bytes name = bytes_of(mechanism);
    std::copy(name.begin(), name.end(), said.begin() + 12);
    EXPECT_TRUE(Heard(said, 64).error) << mechanism;
  }
}

TEST(ZmtpDealer, InvalidMessagesEndItAfterTheValidOnes) {
  const struct {
    Bytes bytes;
    ErrorCode code;
    std::string why;
  } ends[] = {
      {frame("part", true), ErrorCode::invalid_request, "several parts"},
      {bytes_of("\x08"), ErrorCode::invalid_request, "malformed ZeroMQ frame"},
      {bytes_of("\x05"), ErrorCode::invalid_request, "malformed ZeroMQ frame"},
      {bytes_of(std::string("\x02\x80\0\0\0\0\0\0\0", 9)), ErrorCode::invalid_request, "malformed"},
      {bytes_of(std::string("\x02\0\0\x10\0\0\0\0\0", 9)), ErrorCode::invalid_request, "longer than 100"},
      {frame(std::string(101, 'x')), ErrorCode::invalid_request, "of 101 bytes"},
      {bytes_of(std::string("\4\0", 2)), ErrorCode::invalid_request, "malformed ZeroMQ command"},
      {bytes_of("\x04\x02\x05P"), ErrorCode::invalid_request, "malformed ZeroMQ command"},
      {bytes_of(std::string("\x06\0\0\0\0\0\0\x10\1", 9)), ErrorCode::invalid_request, "too long"},
      {command("PING", "1"), ErrorCode::invalid_request, "malformed PING"},
      {command("ERROR",
               "\x03"
               "bye"),
       ErrorCode::closed, "'bye'"},
      {command("ERROR",
               "\x04"
               "bye"),
       ErrorCode::closed, "''"},
  };
  for (const auto& end : ends) {
    for (const std::size_t step : {1U, 5U, 1U << 20U}) {
      const Heard heard(greeting() + ready() + frame("good") + end.bytes + frame("more"), step, 4096, 100);
      ASSERT_TRUE(heard.error) << end.why;
      EXPECT_EQ(heard.error->code, end.code) << end.why;
      EXPECT_THAT(heard.error->message, HasSubstr(end.why));
      EXPECT_EQ(heard.text, "good");
    }
  }
}

TEST(ZmtpDealer, AMessageOfTheGreatestLengthIsTaken) {
  const Heard heard(greeting() + ready() + frame(std::string(100, 'x')), 3, 4096, 100);
  EXPECT_FALSE(heard.error);
  EXPECT_EQ(heard.text, std::string(100, 'x'));
}

TEST(ZmtpDealer, SkipsCommandsOfAllLengths) {
  Bytes stream = greeting() + ready();
  for (std::size_t bytes = 0; bytes + 1 + 3 <= zmtp::command_bytes_max; bytes += bytes < 300 ? 1 : 251)
    stream = std::move(stream) + command("ANY", std::string(bytes, 'c'));
  stream = std::move(stream) + command("ANY", std::string(zmtp::command_bytes_max - 4, 'c')) + frame("end");
  for (const std::size_t step : {1000U, 1U << 20U}) {
    const Heard heard(stream, step);
    EXPECT_FALSE(heard.error);
    EXPECT_EQ(heard.text, "end");
  }
}

TEST(ZmtpDealer, APongHasThePingsContextAtMost16BytesOfIt) {
  for (const std::size_t bytes : {0U, 1U, 16U, 17U, 200U}) {
    const std::string context(bytes, 'c');
    const Heard heard(greeting() + ready() + command("PING", std::string(2, '\0') + context), 11);
    EXPECT_EQ(heard.said, ready("DEALER") + command("PONG", context.substr(0, 16)));
  }
}

TEST(ZmtpDealer, OnlyTheLastOfManyPingsIsOwed) {
  Bytes stream = greeting() + ready();
  Heard heard(stream, 64);
  const Bytes pings = command("PING", std::string("\0\0"
                                                  "1",
                                                  3)) +
                      command("PING", std::string("\0\0"
                                                  "2",
                                                  3));
  Bytes to(10);
  EXPECT_EQ(heard.dealer.take(pings, to).used, pings.size());
  Bytes said;
  heard.dealer.append_pong(said);
  EXPECT_EQ(said, command("PONG", "2"));
  EXPECT_FALSE(heard.dealer.owes_pong());
}

}  // namespace
}  // namespace lightq::test
