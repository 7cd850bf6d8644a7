/// Tests of a session producer whose broker breaks the protocol, by mistake or on purpose. The producer
/// connects again, counts the violation, and loses no message.
#include <gmock/gmock.h>

#include <lightq/producer.hpp>

#include "session_fixture.hpp"
#include "support/random.hpp"

namespace lightq::test {
namespace {

using session::Code;
using session::Op;
using ::testing::HasSubstr;

using HostileBroker = SessionProducerTest;

/// Returns a frame with this op, channel and body, and a valid checksum.
std::vector<std::byte> frame_of(Op op, std::uint32_t frame_channel, const std::vector<std::byte>& body) {
  std::vector<std::byte> frame(session::frame_layout::header_bytes + body.size());
  session::encode_frame_header(frame.data(),
                               {op, 0, frame_channel, 0, static_cast<std::uint32_t>(body.size())}, body);
  std::copy(body.begin(), body.end(), frame.begin() + session::frame_layout::header_bytes);
  return frame;
}

std::vector<std::vector<std::byte>> bad_frames(std::uint32_t channel, const session::ProduceOpened& opened) {
  using session::encode_frame;
  std::vector<std::vector<std::byte>> frames;
  frames.push_back(std::vector<std::byte>(20, std::byte{0xFF}));  // an unknown op
  frames.push_back(frame_of(Op::heartbeat, 0, {}));
  frames.back()[1] = std::byte{0x80};  // an unknown flag
  frames.push_back(frame_of(Op::heartbeat, 0, {}));
  frames.back()[16] ^= std::byte{1};                     // an invalid checksum
  frames.push_back(frame_of(Op::deliver, channel, {}));  // too short
  frames.push_back(frame_of(Op::deliver, channel, std::vector<std::byte>(84)));
  frames.push_back(frame_of(Op::deliver, channel, {}));
  store_little_endian(frames.back().data() + session::frame_layout::body_bytes, std::uint32_t{0x7FFFFFFF});
  frames.push_back(encode_frame(session::Done{}, channel, 1));
  frames.push_back(encode_frame(session::Welcome{}, 0, 1));
  frames.push_back(encode_frame(opened, channel + 1, 2));
  frames.push_back(encode_frame(session::Confirm{1, 0, 0}, channel + 1, 0));
  // More than the one message that was sent.
  frames.push_back(encode_frame(session::Confirm{2, 0, 0}, channel, 0));
  frames.push_back(encode_frame(session::Confirm{UINT64_MAX, UINT64_MAX, 0}, channel, 0));
  frames.push_back(frame_of(Op::confirm, channel, std::vector<std::byte>(23)));
  std::vector<std::byte> flushed_more(24);
  flushed_more[8] = std::byte{1};
  frames.push_back(frame_of(Op::confirm, channel, flushed_more));
  frames.push_back(encode_frame(session::Refuse{0, 1, 0, Code::limit_reached, ""}, channel + 1, 0));
  frames.push_back(encode_frame(session::Refuse{0, 1, 2, Code::limit_reached, ""}, channel, 0));
  frames.push_back(encode_frame(session::Refuse{0, 2, 0, Code::too_large, ""}, channel, 0));
  frames.push_back(encode_frame(session::Refuse{5, 6, 0, Code::too_large, ""}, channel, 0));
  frames.push_back(encode_frame(session::Refuse{0, 1, 1, Code::too_large, ""}, channel, 0));
  std::vector<std::byte> endless(28);
  endless[0] = std::byte{9};  // a range with its end before its start
  frames.push_back(frame_of(Op::refuse, channel, endless));
  std::vector<std::byte> long_sentence(6);
  long_sentence[2] = long_sentence[3] = std::byte{0xFF};
  frames.push_back(frame_of(Op::goodbye, 0, long_sentence));
  return frames;
}

TEST_F(HostileBroker, IsLeftWhenItBreaksTheProtocolAndNothingIsLost) {
  const std::size_t kinds = bad_frames(channel, opened).size();
  for (std::size_t kind = 0; kind < kinds; ++kind) {
    SCOPED_TRACE(kind);
    Producer producer = make();
    connect(producer);
    ASSERT_TRUE(producer.send("message").ok());
    const TakenBatch first = next_batch(producer);
    peer.put_bytes(bad_frames(channel, opened).at(kind));
    peer.write();
    ASSERT_TRUE(until(producer, [&] { return peer.ended(); }));
    EXPECT_EQ(producer.stats().violations, 1U);
    EXPECT_EQ(producer.last_error().code, ErrorCode::invalid_request);
    EXPECT_EQ(producer.unconfirmed(), 1U);
    connect(producer);
    EXPECT_EQ(next_batch(producer).bytes, first.bytes);
  }
}

TEST_F(HostileBroker, IsLeftIfItOpensAnUnusableChannel) {
  session::ProduceOpened other_producer = opened;
  other_producer.producer.id = 1;
  session::ProduceOpened no_batch = opened;
  no_batch.batch_bytes_max = 67;
  options.identity = opened.producer;
  for (const auto& [answer, answer_channel, again] : {std::tuple{opened, 0U, 0U},
                                                      {other_producer, channel, 0U},
                                                      {no_batch, channel, 0U},
                                                      {opened, channel, 1U}}) {
    Producer producer = make();
    const auto open = asked(producer);
    peer.say(answer, answer_channel, open.header.request + again);
    ASSERT_TRUE(until(producer, [&] { return peer.ended(); }));
    EXPECT_EQ(producer.stats().violations, 1U);
    EXPECT_EQ(producer.state(), SessionState::connecting);
  }
}

TEST_F(HostileBroker, IsLeftWhenItDoesNotGreetAsItShould) {
  session::Welcome other_version = welcome;
  other_version.version = 2;
  const auto left = [&](const auto& answer, std::uint32_t again) {
    Producer producer = make();
    accept(producer);
    const auto hello = next_frame(producer);
    peer.say(answer, 0, hello.header.request + again);
    EXPECT_TRUE(until(producer, [&] { return peer.ended(); }));
    return producer.stats().violations;
  };
  EXPECT_EQ(left(welcome, 1), 1U);
  EXPECT_EQ(left(other_version, 0), 1U);
  EXPECT_EQ(left(opened, 0), 1U);
  EXPECT_EQ(left(session::Confirm{}, 0), 1U);
}

TEST_F(HostileBroker, CannotMakeAnInboxGrowByALength) {
  SessionInbox inbox(1U << 30U);
  std::vector<std::byte> header = frame_of(Op::deliver, 1, {});
  store_little_endian(header.data() + session::frame_layout::body_bytes, std::uint32_t{1U << 30U});
  const auto room = inbox.room();
  ASSERT_GE(room.size(), header.size());
  std::copy(header.begin(), header.end(), room.begin());
  inbox.add(header.size());
  const auto frame = inbox.next();
  ASSERT_TRUE(frame.ok());
  EXPECT_FALSE(frame->has_value());
  EXPECT_FALSE(inbox.room().empty());
  EXPECT_LE(inbox.memory_bytes(), 8192U);
}

TEST_F(HostileBroker, MayCutItsFramesWhereverItLikes) {
  SessionInbox inbox(session::frame_bytes_least);
  Random random;
  std::vector<std::byte> stream;
  for (std::uint64_t number = 0; number < 500; ++number) {
    const auto frame = number % 3 == 0
                           ? session::encode_frame(session::Goodbye{Code::ok, std::string(number, 'x')}, 0, 0)
                           : session::encode_frame(session::Confirm{number, 0, 0}, 1, 0);
    stream.insert(stream.end(), frame.begin(), frame.end());
  }
  std::uint64_t came = 0;
  for (std::size_t at = 0; at < stream.size();) {
    const auto room = inbox.room();
    const std::size_t bytes =
        std::min<std::size_t>({random.between(1, 3000), room.size(), stream.size() - at});
    std::copy_n(stream.begin() + static_cast<std::ptrdiff_t>(at), bytes, room.begin());
    inbox.add(bytes);
    at += bytes;
    while (true) {
      const auto frame = inbox.next();
      ASSERT_TRUE(frame.ok());
      if (!frame->has_value()) break;
      if (came % 3 != 0) {
        EXPECT_EQ(session::Confirm::decode((*frame)->body, 0)->received, came);
      }
      ++came;
    }
  }
  EXPECT_EQ(came, 500U);
}

/// Sends valid frames with random contents, frames with changed bytes, and noise. The producer survives all
/// of them, and reports no message twice.
TEST_F(HostileBroker, MaySayAnythingAtAll) {
  for (int series = 0; series < 60; ++series) {
    Random random(series);
    options.resend_in_doubt = random.one_in(2);
    reports.clear();
    Producer producer = make();
    std::uint64_t sent = 0;
    for (int connection = 0; connection < 12 && producer.state() != SessionState::failed; ++connection) {
      if (producer.state() == SessionState::in_doubt) producer.resolve(random.one_in(2));
      accept(producer);
      if (!random.one_in(6)) peer.put(welcome, 0, static_cast<std::uint32_t>(2 * connection + 1));
      opened.expected = random.below(4);
      opened.producer = producer.identity().id != 0 ? producer.identity() : ProducerIdentity{producer_id, 0};
      if (!random.one_in(6)) peer.put(opened, channel, static_cast<std::uint32_t>(2 * connection + 2));
      for (int step = 0; step < 30 && !peer.ended(); ++step) {
        peer.write(random.between(1, 200));
        if (producer.send("x" + std::to_string(sent)).ok()) ++sent;
        (void)producer.poll(Timeout(0));
        if (random.one_in(10)) clock.advance(Timeout(30));
        peer.read();
        const std::uint64_t near = random.below(sent + 2);
        std::vector<std::byte> frame;
        switch (random.below(8)) {
          case 0:
            frame = session::encode_frame(session::Confirm{near, random.below(near + 1), near}, channel, 0);
            break;
          case 1:
            frame = session::encode_frame(
                session::Refuse{near, near + 1 + random.below(2), random.below(near + 1),
                                static_cast<Code>(random.between(1, 25)), "no"},
                channel, 0);
            break;
          case 2: frame = session::encode_frame(session::Heartbeat{}, 0, 0); break;
          case 3:
            if (random.one_in(10)) frame = random.bytes(random.between(1, 100));
            break;
          case 4:
            if (random.one_in(20))
              frame = session::encode_frame(
                  session::ErrorAnswer{static_cast<Code>(random.between(11, 19)), "bad"}, channel, 0);
            break;
          default: break;
        }
        if (!frame.empty() && random.one_in(20))
          frame[random.below(frame.size())] ^= static_cast<std::byte>(1U << random.below(8));
        peer.put_bytes(frame);
      }
    }
    (void)producer.close(Timeout(0));
    std::vector<int> told(sent, 0);
    for (const Reported& report : reports)
      for (std::uint64_t number = report.begin; number < report.end; ++number) ++told.at(number);
    for (std::uint64_t number = 0; number < sent; ++number) ASSERT_EQ(told[number], 1) << number;
    EXPECT_EQ(producer.unconfirmed(), 0U);
  }
}

}  // namespace
}  // namespace lightq::test
