/// Tests of the frames that a session finds in its input: whole, incomplete, too large, and not understood.
#include "session/frame_reader.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <lightq/protocol/session_consuming.hpp>
#include <lightq/protocol/session_link.hpp>

#include "support/batches.hpp"

namespace lightq::broker {
namespace {

using Found = FrameReader::Found;
using Bytes = std::vector<std::byte>;
constexpr std::uint32_t body_bytes_max = 1000;
constexpr std::size_t header_bytes = session::frame_layout::header_bytes;

Bytes operator+(Bytes first, const Bytes& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

Bytes message(const Bytes& body) {
  Bytes header(zmtp::frame_header_bytes_max);
  header.resize(zmtp::encode_frame_header(header.data(), body.size(), false));
  return header + body;
}

Bytes credit(std::uint32_t messages) {
  return session::encode_frame(session::Credit{messages, 5}, 1, 0);
}

Bytes produce(std::size_t payload_bytes) {
  const auto batch = test::make_batch_of_producer(7, 1, 0, {std::string(payload_bytes, 'x')});
  Bytes frame(header_bytes);
  const session::FrameHeader header{session::Op::produce, 0, 1, 0, static_cast<std::uint32_t>(batch.size())};
  session::encode_frame_header(frame.data(), header, {});
  return frame + Bytes(batch.begin(), batch.end());
}

/// Reads each prefix of `all` first, as bytes arrive one by one, and returns what the whole gives.
std::vector<Found> read_by_bytes(FrameReader& reader, Bytes all, Bytes* frames) {
  std::vector<Found> found;
  std::size_t begin = 0;
  for (std::size_t end = 0; end <= all.size(); ++end) {
    for (;;) {
      std::size_t at = 0;
      const auto next = reader.next(std::span(all).subspan(begin, end - begin), at, body_bytes_max, true);
      begin += at;
      if (next.found == Found::nothing || next.found == Found::begun) break;
      found.push_back(next.found);
      frames->insert(frames->end(), next.bytes.begin(), next.bytes.end());
      if (next.found == Found::fault) return found;
    }
  }
  EXPECT_EQ(begin, all.size());
  return found;
}

TEST(FrameReaderTest, FramesOfAStreamAreFoundWhereverTheInputIsCut) {
  FrameReader reader(SessionCarrier::stream);
  const Bytes all = credit(1) + credit(2) + credit(3);
  Bytes frames;
  EXPECT_EQ(read_by_bytes(reader, all, &frames), (std::vector{Found::frame, Found::frame, Found::frame}));
  EXPECT_EQ(frames, all);
}

TEST(FrameReaderTest, FramesAndCommandsOfMessagesAreFoundWhereverTheInputIsCut) {
  FrameReader reader(SessionCarrier::zmtp);
  Bytes command;
  zmtp::append_command(command, "PING", {});
  Bytes frames;
  EXPECT_EQ(read_by_bytes(reader, message(credit(1) + credit(2)) + command + message(credit(3)), &frames),
            (std::vector{Found::frame, Found::frame, Found::command, Found::frame}));
  EXPECT_EQ(frames.size(), 3 * credit(1).size() + command.size() - 2) << "a command without its header";
}

TEST(FrameReaderTest, TheBeginningOfAFrameIsReportedWithItsHeader) {
  FrameReader reader(SessionCarrier::stream);
  Bytes frame = credit(1);
  std::size_t at = 0;
  const auto next = reader.next(std::span(frame).first(frame.size() - 1), at, body_bytes_max, true);
  EXPECT_EQ(next.found, Found::begun);
  EXPECT_EQ(next.header.op, session::Op::credit);
  EXPECT_EQ(next.bytes.size(), frame.size() - 1);
  EXPECT_EQ(at, 0U);
  EXPECT_EQ(reader.missing(ByteView(frame).first(3), body_bytes_max), header_bytes - 3);
  EXPECT_EQ(reader.missing(ByteView(frame).first(frame.size() - 2), body_bytes_max), 2U);
}

TEST(FrameReaderTest, AProduceFrameThatIsTooLargeIsSkippedOnceItsBatchHeaderIsThere) {
  FrameReader reader(SessionCarrier::stream);
  Bytes frame = produce(3000);
  constexpr std::size_t start = header_bytes + batch_layout::header_bytes;
  std::size_t at = 0;
  EXPECT_EQ(reader.next(std::span(frame).first(start - 1), at, body_bytes_max, true).found, Found::nothing);
  EXPECT_EQ(at, 0U);
  const auto next = reader.next(std::span(frame).first(start + 10), at, body_bytes_max, true);
  EXPECT_EQ(next.found, Found::too_large);
  EXPECT_EQ(next.bytes.size(), batch_layout::header_bytes);
  EXPECT_EQ(at, start + 10);
  EXPECT_TRUE(reader.is_skipping());
  EXPECT_EQ(reader.skip(100), 100U);
  EXPECT_EQ(reader.skip(10'000), frame.size() - start - 110);
  EXPECT_FALSE(reader.is_skipping());
}

TEST(FrameReaderTest, AFrameThatIsTooLargeAndNotASoundProduceFrameIsAFault) {
  for (const bool greeted : {false, true}) {
    FrameReader reader(SessionCarrier::stream);
    Bytes frame = produce(3000);
    if (greeted) frame[session::frame_layout::crc] ^= std::byte{1};
    std::size_t at = 0;
    EXPECT_EQ(reader.next(frame, at, body_bytes_max, greeted).found, Found::fault);
    EXPECT_TRUE(reader.is_nonsense());
    EXPECT_NE(reader.fault(), "");
  }
}

TEST(FrameReaderTest, BeforeHelloNothingElseIsUnderstood) {
  FrameReader reader(SessionCarrier::stream);
  Bytes frame = credit(1);
  std::size_t at = 0;
  EXPECT_EQ(reader.next(frame, at, body_bytes_max, false).found, Found::fault);
  EXPECT_EQ(reader.fault(), "a frame before hello");
  EXPECT_FALSE(reader.is_nonsense());
}

TEST(FrameReaderTest, AMessageThatEndsWithinAFrameIsAFault) {
  const Bytes whole = credit(1);
  for (const std::size_t bytes : {header_bytes - 1, header_bytes, whole.size() - 1}) {
    FrameReader reader(SessionCarrier::zmtp);
    Bytes frames;
    const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(bytes));
    EXPECT_EQ(read_by_bytes(reader, message(cut) + message(whole), &frames), std::vector{Found::fault})
        << bytes;
    EXPECT_EQ(reader.fault(), "a message that ends within a frame");
  }
}

}  // namespace
}  // namespace lightq::broker
