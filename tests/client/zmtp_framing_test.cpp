/// Tests of wrapping session frames in ZMTP messages: which bytes are gathered for a send, wherever the
/// system stops, and whatever the caller offers next.
#include <lightq/detail/zmtp_framing.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <lightq/base/types.hpp>

namespace lightq::test {
namespace {

std::string frame(std::size_t body_bytes, char letter) {
  std::string bytes(session::frame_layout::header_bytes + body_bytes, letter);
  store_little_endian(reinterpret_cast<std::byte*>(bytes.data()) + session::frame_layout::body_bytes,
                      static_cast<std::uint32_t>(body_bytes));
  return bytes;
}

/// Returns the bytes that a peer receives: one message with this frame.
std::string in_message(const std::string& bytes) {
  std::array<std::byte, zmtp::frame_header_bytes_max> header{};
  const std::size_t header_bytes = zmtp::encode_frame_header(header.data(), bytes.size(), false);
  return std::string(as_text(ByteView(header).first(header_bytes))) + bytes;
}

/// A socket that accepts a given number of bytes.
class Wire {
 public:
  /// Offers `text` in parts that end at `cuts`. The system accepts `room` bytes. Returns the number of
  /// accepted bytes of `text`.
  std::size_t write(std::string& text, std::size_t room, const std::vector<std::size_t>& cuts = {}) {
    passed += std::string(as_text(output));
    output.clear();
    std::vector<iovec> parts;
    std::size_t begin = 0;
    for (const std::size_t cut : cuts) {
      parts.push_back({text.data() + begin, cut - begin});
      begin = cut;
    }
    parts.push_back({text.data() + begin, text.size() - begin});
    std::size_t taken = 0;
    while (taken < text.size()) {
      const auto named = framing.gather(parts, taken);
      std::string bytes;
      for (const iovec& part : named) bytes.append(static_cast<const char*>(part.iov_base), part.iov_len);
      EXPECT_EQ(bytes.size(), framing.gathered_bytes());
      const std::size_t sent = std::min(room, bytes.size());
      passed += bytes.substr(0, sent);
      room -= sent;
      taken += framing.sent(sent, output);
      if (sent < bytes.size()) break;
    }
    return taken;
  }

  ZmtpFraming framing;
  std::string passed;
  std::vector<std::byte> output;
};

const std::vector<std::string> three = {frame(5, 'a'), frame(300, 'b'), frame(0, 'c')};

TEST(ZmtpFraming, AMessageOfSeveralPartsIsOneFrame) {
  std::string text = three[0] + three[1] + three[2];
  const std::string expected = in_message(three[0]) + in_message(three[1]) + in_message(three[2]);
  for (std::size_t first = 0; first <= text.size(); ++first) {
    for (const std::size_t second : {first, std::min(first + 7, text.size()), text.size()}) {
      Wire wire;
      EXPECT_EQ(wire.write(text, SIZE_MAX, {first, second}), text.size());
      ASSERT_EQ(wire.passed, expected) << first << ", " << second;
      EXPECT_FALSE(wire.framing.in_midst());
    }
  }
}

TEST(ZmtpFraming, ContinuesAfterAnyPartialWrite) {
  const std::string all = three[0] + three[1] + three[2];
  const std::string expected = in_message(three[0]) + in_message(three[1]) + in_message(three[2]);
  for (std::size_t room = 0; room <= expected.size(); ++room) {
    Wire wire;
    std::string text = all;
    text.erase(0, wire.write(text, room, {20, 25}));
    while (!text.empty()) text.erase(0, wire.write(text, 3));
    wire.write(text, 0);
    ASSERT_EQ(wire.passed, expected) << room;
  }
}

TEST(ZmtpFraming, AnUnsentFrameMayBeReplaced) {
  const std::string expected_first = in_message(three[1]);
  const std::string other = frame(2, 'o');
  for (std::size_t room = 0; room < expected_first.size() + in_message(three[0]).size(); ++room) {
    Wire wire;
    std::string text = three[1] + three[0];
    const std::size_t taken = wire.write(text, room);
    // As a caller does, finishes a frame that has begun, and replaces a frame that has not.
    std::string next = taken == 0                 ? other
                       : taken < three[1].size()  ? three[1].substr(taken) + other
                       : taken == three[1].size() ? other
                                                  : three[0].substr(taken - three[1].size()) + other;
    EXPECT_EQ(wire.write(next, SIZE_MAX), next.size());
    std::string expected = taken > 0 ? expected_first : "";
    if (taken > three[1].size()) expected += in_message(three[0]);
    ASSERT_EQ(wire.passed, expected + in_message(other)) << room;
  }
}

TEST(ZmtpFraming, MoreFramesThanACallTakesAreSentInSeveralCalls) {
  std::string text;
  std::string expected;
  std::vector<std::size_t> cuts;
  for (std::size_t at = 0; at < 500; ++at) {
    const std::string one = frame(at, static_cast<char>('a' + at % 26));
    text += one;
    expected += in_message(one);
    if (at % 3 == 0) cuts.push_back(text.size() - one.size() / 2);
  }
  Wire wire;
  EXPECT_EQ(wire.write(text, SIZE_MAX, cuts), text.size());
  EXPECT_EQ(wire.passed, expected);
}

TEST(ZmtpFraming, AFrameWithMorePartsThanACallTakesIsOneMessage) {
  std::string text = frame(1000, 'p');
  const std::string expected = in_message(text);
  std::vector<std::size_t> cuts(text.size());
  for (std::size_t at = 0; at < cuts.size(); ++at) cuts[at] = at;
  Wire wire;
  EXPECT_EQ(wire.write(text, SIZE_MAX, cuts), text.size());
  EXPECT_EQ(wire.passed, expected);
}

}  // namespace
}  // namespace lightq::test
