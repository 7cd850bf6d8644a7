/// Tests of session frames: the vectors by which docs/session.md specifies them, and all frames that must be
/// refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include <lightq/base/batch.hpp>
#include <lightq/protocol/session_consuming.hpp>
#include <lightq/protocol/session_memory.hpp>
#include <lightq/protocol/session_producing.hpp>

#include "support/random.hpp"

namespace lightq::test {
namespace {

using namespace session;
using nlohmann::json;

std::string text_of(const std::string& path) {
  std::ifstream file(std::string(LIGHTQ_SOURCE_DIR) + "/" + path);
  std::stringstream all;
  all << file.rdbuf();
  return all.str();
}

const json& vectors() {
  static const json read = json::parse(text_of("tests/vectors/session_frames.json"));
  return read;
}

std::vector<std::byte> bytes_of(const std::string& hex) {
  std::vector<std::byte> bytes;
  for (std::size_t at = 0; at < hex.size(); at += 2)
    bytes.push_back(static_cast<std::byte>(std::stoi(hex.substr(at, 2), nullptr, 16)));
  return bytes;
}

ByteView body_of(const std::vector<std::byte>& frame) {
  return ByteView(frame).subspan(frame_layout::header_bytes);
}

std::vector<OffsetRange> ranges_of(const json& body) {
  std::vector<OffsetRange> ranges;
  for (const auto& range : body.at("ranges")) ranges.push_back({{range.at(0)}, {range.at(1)}});
  return ranges;
}

// Converts the fields of a vector to the types of the library.
void fill(const json& body, Hello& hello) {
  hello = {body.at("oldest_version"),
           body.at("newest_version"),
           body.at("frame_bytes_max"),
           body.at("heartbeat_ms"),
           CodecSet(body.at("codecs").get<std::uint32_t>()),
           body.at("name"),
           body.at("ticket").get<std::string>()};
}
void fill(const json& body, Welcome& welcome) {
  welcome = {body.at("version"),      body.at("frame_bytes_max"), body.at("heartbeat_ms"),
             body.at("channels_max"), body.at("broker"),          body.at("session")};
}
std::optional<ProducerSecret> secret_of(const json& body) {
  const auto bytes = bytes_of(body.value("secret", ""));
  if (bytes.empty()) return std::nullopt;
  ProducerSecret secret{};
  EXPECT_EQ(bytes.size(), secret.size());
  std::copy_n(bytes.begin(), std::min(bytes.size(), secret.size()), secret.begin());
  return secret;
}
ProduceTarget target_of_vector(const json& body) {
  return static_cast<ProduceTarget>(body.value("target", 0));
}
void fill(const json& body, ProduceOpen& open) {
  open = {{body.at("producer_id"), body.at("producer_epoch")},
          static_cast<ConfirmLevel>(body.at("level").get<int>()),
          body.at("topic"),
          secret_of(body),
          target_of_vector(body)};
}
void fill(const json& body, ProduceOpened& opened) {
  opened = {{body.at("producer_id"), body.at("producer_epoch")},
            static_cast<ConfirmLevel>(body.at("level").get<int>()),
            body.at("batch_bytes_max"),
            body.at("message_bytes_max"),
            body.at("expected"),
            body.at("next_offset"),
            body.at("incarnation"),
            secret_of(body),
            target_of_vector(body)};
}
void fill(const json& body, Confirm& confirm) {
  confirm = {body.at("received"), body.at("flushed"), body.at("next_offset")};
}
void fill(const json& body, Refuse& refuse) {
  refuse = {body.at("begin"), body.at("end"), body.at("expected"),
            static_cast<Code>(body.at("code").get<int>()), body.at("sentence")};
}
void fill(const json& body, ConsumeOpen& open) {
  open.mode = static_cast<Mode>(body.at("mode").get<int>());
  open.acknowledgement = static_cast<Acknowledgement>(body.at("acknowledgement").get<int>());
  open.start = {static_cast<From>(body.at("start").get<int>()), body.at("start_value")};
  open.holds = body.at("holds") == 1;
  open.credit_messages = body.at("credit_messages");
  open.credit_bytes = body.at("credit_bytes");
  open.incarnation = body.at("incarnation");
  open.ack_timeout_ms = body.at("ack_timeout_ms");
  open.topic = body.at("topic");
  open.group = body.at("group");
}
void fill(const json& body, ConsumeOpened& opened) {
  opened = {body.at("next"), body.at("committed"), body.at("next_offset"), body.at("incarnation"),
            body.at("ack_timeout_ms")};
}
std::optional<std::uint32_t> hand_out_of_vector(const json& body) {
  if (!body.contains("hand_out")) return std::nullopt;
  return body.at("hand_out").get<std::uint32_t>();
}
void fill(const json& body, Credit& credit) {
  credit = {body.at("messages"), body.at("bytes")};
}
void fill(const json& body, Acknowledge& acknowledge) {
  acknowledge.hand_out = hand_out_of_vector(body);
  if (body.contains("before")) {
    acknowledge.before = Offset{body.at("before")};
  } else {
    acknowledge.ranges = ranges_of(body);
  }
}
template <Op op>
void fill(const json& body, Postpone<op>& postpone) {
  postpone = {body.at("ms"), ranges_of(body), hand_out_of_vector(body)};
  if (body.contains("reason")) postpone.dead_reason = body.at("reason").get<std::string>();
}
void fill(const json& body, Late& late) {
  late.ranges = ranges_of(body);
}
void fill(const json& body, Started& started) {
  started.hand_out = body.at("hand_out");
  if (body.contains("before")) {
    started.before = Offset{body.at("before")};
  } else {
    started.ranges = ranges_of(body);
  }
}
void fill(const json& body, Revoked& revoked) {
  revoked = {static_cast<RevokeCause>(body.at("cause").get<int>()), body.at("hand_outs_before"),
             ranges_of(body)};
}
void fill(const json& body, Seek& seek) {
  seek.to = {static_cast<From>(body.at("start").get<int>()), body.at("start_value")};
}
void fill(const json& body, Read& read) {
  read = {{{body.at("begin")}, {body.at("end")}}, body.at("bytes"), body.at("topic")};
}
void fill(const json& body, Done& done) {
  done = {body.at("value")};
}
void fill(const json& body, Present& present) {
  present = {body.at("ticket").get<std::string>()};
}
template <Op op>
void fill(const json& body, Sharing<op>& sharing) {
  sharing.sizes = {body.at("to_broker"), body.at("to_client")};
}
template <Op op>
void fill(const json& /*body*/, Bare<op>& /*bare*/) {}
template <Op op>
void fill(const json& body, Verdict<op>& verdict) {
  verdict = {static_cast<Code>(body.at("code").get<int>()), body.at("sentence")};
}

/// Sets the fields that only flags express.
template <typename Body>
void fill_by_flags(std::uint8_t flags, Body& body) {
  if constexpr (requires { body.releases = true; }) body.releases = (flags & flag_release) != 0;
  if constexpr (requires { body.leases; }) body.leases = (flags & flag_leases) != 0;
  if constexpr (requires { body.dead_letters; }) body.dead_letters = (flags & flag_dead_letters) != 0;
}

/// Checks the conversion both ways, between a vector's fields and its bytes.
template <typename Body>
void expect_agrees(const json& vector, const std::vector<std::byte>& frame) {
  Body expected;
  fill(vector.at("body"), expected);
  fill_by_flags(vector.at("flags"), expected);
  const auto decoded = Body::decode(body_of(frame), vector.at("flags"));
  ASSERT_TRUE(decoded.ok()) << decoded.error().text();
  EXPECT_EQ(expected, *decoded);
  EXPECT_EQ(frame, encode_frame(expected, vector.at("channel"), vector.at("request")));
}

template <typename Body>
bool decodes(ByteView body, std::uint8_t flags) {
  return Body::decode(body, flags).ok();
}

/// The checks for the body of each op that is more than a batch.
struct Handled {
  std::function<void(const json&, const std::vector<std::byte>&)> agrees;
  std::function<bool(ByteView, std::uint8_t)> decodes;
};
template <typename... Bodies>
std::map<Op, Handled> handled() {
  return {{Bodies::op, {expect_agrees<Bodies>, decodes<Bodies>}}...};
}
const std::map<Op, Handled> bodies =
    handled<Hello, Welcome, ProduceOpen, ProduceOpened, Confirm, Refuse, ConsumeOpen, ConsumeOpened, Credit,
            Acknowledge, Reject, Extend, Seek, Read, Done, Close, Heartbeat, ErrorAnswer, Goodbye, Present,
            Share, Shared, Late, Started, Revoked>();

FrameHeader header_of(const std::vector<std::byte>& frame) {
  const auto decoded = decode_frame_header(frame, vectors().at("receiver_takes"));
  EXPECT_FALSE(decoded.fault);
  return decoded.header;
}

void expect_batch_frame_agrees(const json& vector, const std::vector<std::byte>& frame,
                               const FrameHeader& header) {
  const std::size_t before = header.checked_bytes();
  const ByteView batch = body_of(frame).subspan(before);
  EXPECT_EQ(bytes_of(vector.at("body").at("batch")), std::vector<std::byte>(batch.begin(), batch.end()));
  if (header.op == Op::produce) return;
  const auto head = DeliverHead::decode(body_of(frame).first(before)).value_or_throw();
  const DeliverHead expected{vector.at("body").at("delivery"), vector.at("body").at("hand_out"),
                             vector.at("body").at("lost")};
  EXPECT_EQ(expected, head);
  EXPECT_FALSE(BatchView::check(batch)) << "what is delivered is a sound batch";
  std::vector<std::byte> encoded;
  expected.encode(FieldWriter(encoded));
  EXPECT_TRUE(std::equal(encoded.begin(), encoded.end(), body_of(frame).begin()));
  EXPECT_EQ(encoded.size(), deliver_head_bytes);
}

TEST(SessionFrameTest, EveryVectorIsReadAndWrittenAsItsFieldsSay) {
  for (const json& vector : vectors().at("sound")) {
    SCOPED_TRACE(vector.at("name").get<std::string>());
    const auto frame = bytes_of(vector.at("frame"));
    const FrameHeader header = header_of(frame);
    EXPECT_EQ(rule_of(header.op).name, vector.at("op").get<std::string>());
    EXPECT_EQ(header.flags, vector.at("flags"));
    EXPECT_EQ(header.channel, vector.at("channel"));
    EXPECT_EQ(header.request, vector.at("request"));
    EXPECT_EQ(header.body_bytes, frame.size() - frame_layout::header_bytes);
    EXPECT_TRUE(frame_crc_fits(frame, header));
    std::vector<std::byte> encoded(frame_layout::header_bytes);
    encode_frame_header(encoded.data(), header, body_of(frame).first(header.checked_bytes()));
    EXPECT_TRUE(std::equal(encoded.begin(), encoded.end(), frame.begin()));
    const auto body = bodies.find(header.op);
    if (body != bodies.end()) {
      body->second.agrees(vector, frame);
    } else {
      expect_batch_frame_agrees(vector, frame, header);
    }
  }
}

TEST(SessionFrameTest, EveryBrokenVectorIsRefusedForItsFault) {
  for (const json& vector : vectors().at("broken")) {
    SCOPED_TRACE(vector.at("name").get<std::string>());
    const auto frame = bytes_of(vector.at("frame"));
    const std::string fault = vector.at("fault");
    const auto decoded = decode_frame_header(frame, vectors().at("receiver_takes"));
    if (decoded.fault) {
      EXPECT_EQ(fault, to_word(*decoded.fault));
    } else if (!frame_crc_fits(frame, decoded.header)) {
      EXPECT_EQ(fault, to_word(FrameFault::bad_crc));
    } else {
      EXPECT_EQ(fault, "body");
      EXPECT_FALSE(bodies.at(decoded.header.op).decodes(body_of(frame), decoded.header.flags));
    }
  }
}

// A batch has its own checksums. The frame's checksum covers all other bytes.
TEST(SessionFrameTest, AnyFlippedBitInFrontOfABatchIsFound) {
  for (const json& vector : vectors().at("sound")) {
    SCOPED_TRACE(vector.at("name").get<std::string>());
    auto frame = bytes_of(vector.at("frame"));
    const std::size_t covered = frame_layout::header_bytes + header_of(frame).checked_bytes();
    for (std::size_t bit = 0; bit < 8 * covered; ++bit) {
      const auto mask = std::byte{1} << (bit % 8);
      frame[bit / 8] ^= mask;
      const auto decoded = decode_frame_header(frame, vectors().at("receiver_takes"));
      const bool whole =
          decoded.fault || frame_layout::header_bytes + decoded.header.checked_bytes() <= frame.size();
      // With a larger length the receiver waits for bytes of the next frame, and fails then.
      const bool found = decoded.fault || !whole || !frame_crc_fits(frame, decoded.header);
      ASSERT_TRUE(found) << "bit " << bit;
      frame[bit / 8] ^= mask;
    }
  }
}

TEST(SessionFrameTest, ATruncatedOrExtendedBodyIsRefused) {
  for (const json& vector : vectors().at("sound")) {
    SCOPED_TRACE(vector.at("name").get<std::string>());
    const auto frame = bytes_of(vector.at("frame"));
    const FrameHeader header = header_of(frame);
    const auto body = bodies.find(header.op);
    if (body == bodies.end()) continue;
    for (std::size_t bytes = 0; bytes < header.body_bytes; ++bytes) {
      // Whole ranges were cut off, and at least one is left.
      const std::size_t ranges =
          vector.at("body").contains("ranges") ? vector.at("body").at("ranges").size() : 0;
      const std::size_t cut = header.body_bytes - bytes;
      const bool is_list_of_ranges = ranges > 0 && cut % 16 == 0 && cut / 16 < ranges;
      const bool is_without_secret =
          header.op == Op::produce_opened && bytes == rule_of(header.op).body_bytes_min;
      ASSERT_EQ(is_list_of_ranges || is_without_secret,
                body->second.decodes(body_of(frame).first(bytes), header.flags))
          << bytes;
    }
    auto longer = frame;
    longer.push_back(std::byte{0});
    EXPECT_FALSE(body->second.decodes(body_of(longer), header.flags));
  }
}

TEST(SessionFrameTest, AnyBytesAreReadToAnAnswer) {
  Random random;
  for (int round = 0; round < 20'000; ++round) {
    auto frame = random.bytes(frame_layout::header_bytes + random.below(200));
    frame[frame_layout::op] = static_cast<std::byte>(random.below(28));
    frame[frame_layout::zero] = frame[frame_layout::zero + 1] = std::byte{0};
    const auto decoded = decode_frame_header(frame, 65536);
    if (decoded.fault || body_of(frame).size() < decoded.header.checked_bytes()) continue;
    static_cast<void>(frame_crc_fits(frame, decoded.header));
    const auto body = bodies.find(decoded.header.op);
    if (body != bodies.end()) static_cast<void>(body->second.decodes(body_of(frame), decoded.header.flags));
  }
}

std::string bound_text(std::uint32_t bytes) {
  if (bytes == no_bound) return "what the receiver takes";
  if (bytes >= 1024) return std::to_string(bytes / 1024) + " KiB";
  return std::to_string(bytes) + " B";
}

TEST(SessionFrameTest, TheDocumentsTableOfOpsIsTheCodecs) {
  const std::string document = text_of("docs/session.md");
  for (std::size_t value = 1; value <= op_rules.size(); ++value) {
    const OpRule& rule = op_rules.at(value - 1);
    const std::string begin = "| " + std::to_string(value) + " | " + std::string(rule.name) + " |";
    const std::size_t at = document.find(begin);
    ASSERT_NE(at, std::string::npos) << begin;
    const std::string row = document.substr(at, document.find('\n', at) - at);
    const std::string bounds =
        rule.body_bytes_min == rule.body_bytes_max
            ? bound_text(rule.body_bytes_min)
            : bound_text(rule.body_bytes_min) + " to " + bound_text(rule.body_bytes_max);
    EXPECT_TRUE(row.ends_with("| " + bounds + " |")) << row << "\nshould end with " << bounds;
  }
  for (std::size_t value = 0; value < code_words.size(); ++value) {
    const std::string row = "| " + std::to_string(value) + " | `" + std::string(code_words.at(value)) + "` |";
    EXPECT_NE(document.find(row), std::string::npos) << row;
  }
}

}  // namespace
}  // namespace lightq::test
