/// Tests of a session consumer in trouble: connections that end, brokers that restart or break the protocol,
/// failed joins.
#include <gmock/gmock.h>

#include <cstddef>
#include <limits>

#include <lightq/consumer.hpp>

#include "session_consumer_fixture.hpp"

#include "support/planted.hpp"

namespace lightq::test {
namespace {

using session::Code;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Frames = std::vector<std::vector<std::byte>>;

class SessionConsumerTrouble : public SessionConsumerTest {
 protected:
  /// Works until the consumer has closed the connection. Calls receive, because only receive continues to
  /// read.
  bool until_ended(Consumer& consumer) {
    for (int step = 0; step < 3000 && !peer.ended(); ++step) {
      (void)consumer.receive(Timeout(0));
      peer.write();
      peer.read();
    }
    return peer.ended();
  }
};

TEST_F(SessionConsumerTrouble, AGroupsConsumerOpensAgainAndPassesOverLateAcknowledgements) {
  options.group = "billing";
  Consumer consumer = make();
  const auto before = connect(consumer);
  deliver(0, {"a", "b", "c"});
  next(consumer);
  next(consumer);
  consumer.acknowledge(Offset{0});
  EXPECT_THAT(said(consumer), ElementsAre("ack [0,1)", "credit 1/1"));
  peer.close();
  EXPECT_EQ(next_text(consumer), "c") << "what has come is given";
  EXPECT_TRUE(has_nothing(consumer));
  EXPECT_EQ(connect(consumer), before);
  EXPECT_EQ(joins, 1) << "the address was good";
  consumer.acknowledge_before(Offset{3});
  EXPECT_THAT(said(consumer), IsEmpty()) << "they come again";
  deliver(1, {"b", "c"}, {2});
  EXPECT_EQ(next(consumer).delivery, 2U);
  consumer.acknowledge(Offset{1});
  EXPECT_THAT(said(consumer), ElementsAre("ack [1,2)", "credit 1/1"));
  EXPECT_EQ(consumer.stats().opens, 2U);
  EXPECT_EQ(consumer.stats().again, 2U);
}

TEST_F(SessionConsumerTrouble, AnUnnamedCursorContinuesAfterTheReturnedMessages) {
  options.mode = ConsumeMode::own;
  options.from = From::next();
  Consumer consumer = make();
  opened.next = 10;
  EXPECT_EQ(connect(consumer).start, From::next());
  peer.close();
  auto open = connect(consumer);
  EXPECT_EQ(open.start, From::offset({10})) << "and nothing in between is missed";
  EXPECT_EQ(open.incarnation, 99U);
  deliver(10, {"a", "b"});
  next(consumer);
  next(consumer);
  EXPECT_TRUE(has_nothing(consumer));
  peer.close();
  opened.next = 12;
  EXPECT_EQ(connect(consumer).start, From::offset({12}));
  EXPECT_EQ(consumer.stats().lost, 0U);
}

TEST_F(SessionConsumerTrouble, CountsMessagesDroppedDuringItsAbsence) {
  options.mode = ConsumeMode::own;
  Consumer consumer = make();
  connect(consumer);
  peer.close();
  opened.next = 5;
  connect(consumer);
  deliver(7, {"a", "b"}, {1, 2});
  EXPECT_EQ(next(consumer).lost, 7U);
  EXPECT_EQ(next(consumer).lost, 0U);
  EXPECT_EQ(consumer.stats().lost, 7U);
}

TEST_F(SessionConsumerTrouble, ContinuesIfTheLogHasLostItsEnd) {
  options.mode = ConsumeMode::own;
  Consumer consumer = make();
  opened.next = 10;
  connect(consumer);
  deliver(10, {"a", "b", "c"});
  for (int i = 0; i < 3; ++i) next(consumer);
  EXPECT_TRUE(has_nothing(consumer));  // releases the batch, so that the consumer notices the end
  peer.close();
  opened.next = 11;
  opened.incarnation = 100;
  EXPECT_EQ(connect(consumer).start, From::offset({13}));
  EXPECT_EQ(consumer.stats().new_logs, 1U);
  deliver(11, {"other", "and more"});
  EXPECT_EQ(next_text(consumer), "other");
  EXPECT_EQ(next_text(consumer), "and more");
  EXPECT_EQ(consumer.stats().lost, 0U);
  EXPECT_TRUE(has_nothing(consumer));
  peer.close();
  opened.next = 13;
  opened.incarnation = 101;
  const auto again = connect(consumer);
  EXPECT_EQ(again.start, From::offset({13}));
  EXPECT_EQ(again.incarnation, 100U);
  EXPECT_EQ(consumer.stats().new_logs, 1U) << "nothing was lost";
}

TEST_F(SessionConsumerTrouble, BeginsAnewInAnotherLog) {
  options.mode = ConsumeMode::own;
  options.from = From::last();
  Consumer consumer = make();
  opened.next = 10;
  connect(consumer);
  peer.close();
  auto open = asked(consumer);
  peer.say(session::ErrorAnswer{Code::incarnation_changed, "of yesterday"}, 0, open.header.request);
  ASSERT_TRUE(until(consumer, [&] { return peer.ended(); }));
  opened.next = 0;
  opened.incarnation = 100;
  const auto anew = connect(consumer);
  EXPECT_EQ(anew.start, From::first());
  EXPECT_EQ(anew.incarnation, 0U);
  EXPECT_EQ(consumer.stats().new_logs, 1U);
  deliver(0, {"new"});
  EXPECT_EQ(next_text(consumer), "new");
  EXPECT_EQ(consumer.stats().lost, 0U);
}

TEST_F(SessionConsumerTrouble, EndsIfTheGivenLogWasReplaced) {
  options.from = From::offset({10});
  options.incarnation = 98;
  Consumer consumer = make();
  const auto open = asked(consumer);
  peer.say(session::ErrorAnswer{Code::incarnation_changed, "of yesterday"}, 0, open.header.request);
  ASSERT_TRUE(until(consumer, [&] { return peer.ended(); }));
  EXPECT_EQ(consumer.state(), SessionState::failed);
  EXPECT_THAT(consumer.receive(Timeout(0)).error().message, HasSubstr("of yesterday"));
}

TEST_F(SessionConsumerTrouble, JoinsAgainIfTheTicketIsRefusedOrNoBrokerListens) {
  Consumer consumer = make();
  accept(consumer);
  const auto hello = next_frame(consumer);
  peer.say(session::ErrorAnswer{Code::unauthorized_access, "an old ticket"}, 0, hello.header.request);
  ASSERT_TRUE(until(consumer, [&] { return peer.ended(); }));
  EXPECT_EQ(greet(consumer).ticket, std::string("id.") + planted::ticket_secret + "2");
  peer.close();
  listener.reopen();
  connect(consumer);
  EXPECT_GE(joins, 3);
}

TEST_F(SessionConsumerTrouble, EndsAfterAPermanentError) {
  for (const auto& [code, error] : {std::pair{Code::not_supported, ErrorCode::not_supported},
                                    {Code::fenced, ErrorCode::in_use},
                                    {Code::topic_not_found, ErrorCode::topic_not_found},
                                    {Code::topic_deleted, ErrorCode::topic_not_found}}) {
    Consumer consumer = make();
    connect(consumer);
    deliver(0, {"a"});
    peer.say(session::ErrorAnswer{code, "so it is"}, channel, 0);
    EXPECT_EQ(next_text(consumer), "a");
    consumer.acknowledge(Offset{0});
    ASSERT_TRUE(until_ended(consumer));
    EXPECT_EQ(consumer.receive(Timeout(0)).error().code, error);
    EXPECT_THAT(consumer.poll().error().message, HasSubstr("so it is"));
    EXPECT_EQ(consumer.next_timer(), session_never);
    EXPECT_EQ(consumer.seek(From::first(), Timeout(0)).error().code, error);
    EXPECT_TRUE(consumer.close(Timeout(0)).ok());
  }
}

TEST_F(SessionConsumerTrouble, ReconnectsAfterAGoodbye) {
  Consumer consumer = make();
  connect(consumer);
  peer.say(session::Goodbye{Code::shutting_down, "until later"}, 0, 0);
  ASSERT_TRUE(until(consumer, [&] { return peer.ended(); }));
  EXPECT_EQ(consumer.last_error().code, ErrorCode::shutting_down);
  EXPECT_EQ(consumer.wait_open(Timeout(0)).error().code, ErrorCode::timeout);
  connect(consumer);
}

TEST_F(SessionConsumerTrouble, DetectsASilentBrokerOnlyWhileItReads) {
  options.heartbeat = Timeout(1'000'000);
  Consumer consumer = make();
  connect(consumer);
  deliver(0, {"a"});
  next(consumer);
  clock.advance(Timeout(1'999'000));
  peer.say(session::Heartbeat{}, 0, 0);
  clock.advance(Timeout(1'999'000));
  EXPECT_FALSE(until(consumer, [&] { return peer.ended(); })) << "it still has a batch, and reads nothing";
  EXPECT_TRUE(has_nothing(consumer)) << "the heartbeat was there all the time";
  EXPECT_FALSE(until(consumer, [&] { return peer.ended(); }));
  clock.advance(Timeout(2'000'000));
  EXPECT_TRUE(until(consumer, [&] { return peer.ended(); }));
  EXPECT_EQ(consumer.last_error().code, ErrorCode::timeout);
}

TEST_F(SessionConsumerTrouble, DoesNotTakeABrokerForSilentWithoutReadingFromIt) {
  options.heartbeat = Timeout(1'000'000);
  Consumer consumer = make();
  connect(consumer);
  deliver(0, {"a"});
  next(consumer);
  EXPECT_TRUE(has_nothing(consumer));
  peer.say(session::Heartbeat{}, 0, 0);
  clock.advance(Timeout(2'500'000));
  for (int i = 0; i < 20; ++i) consumer.acknowledge(Offset{0});
  EXPECT_TRUE(consumer.connected()) << "the heartbeat waits to be read";
  EXPECT_TRUE(has_nothing(consumer));
  EXPECT_TRUE(consumer.connected());
}

TEST_F(SessionConsumerTrouble, AFrameThatDoesNotGrowIsNoSignOfLife) {
  options.heartbeat = Timeout(1'000'000);
  Consumer consumer = make();
  connect(consumer);
  peer.put_bytes(deliver_frame(channel, Offset{0}, {std::string(100'000, 'x')}));
  for (int i = 0; i < 5; ++i) {
    peer.write(1024);
    EXPECT_TRUE(has_nothing(consumer));
    ASSERT_TRUE(consumer.connected()) << "it comes slowly";
    clock.advance(Timeout(1'500'000));
  }
  peer.write(1023);  // too little to be progress: like heartbeats that fill a body with a corrupted length
  EXPECT_TRUE(has_nothing(consumer));
  ASSERT_TRUE(consumer.connected());
  clock.advance(Timeout(500'000));
  EXPECT_TRUE(has_nothing(consumer));
  EXPECT_FALSE(consumer.connected());
  EXPECT_EQ(consumer.last_error().code, ErrorCode::timeout);
}

TEST_F(SessionConsumerTrouble, ReportsAMissingAnswerToSeekOrClose) {
  Consumer consumer = make();
  EXPECT_EQ(consumer.seek(From::first(), Timeout(0)).error().code, ErrorCode::timeout);
  connect(consumer);
  EXPECT_EQ(consumer.seek(From::first(), Timeout(0)).error().code, ErrorCode::timeout);
  peer.say(session::Goodbye{Code::shutting_down, ""}, 0, 0);
  peer.close();
  EXPECT_EQ(consumer.close(Timeout(0)).ok(), false);
}

TEST_F(SessionConsumerTrouble, ReportsWhyASeekIsRefused) {
  Consumer consumer = make();
  connect(consumer);
  (void)consumer.seek(From::first(), Timeout(0));
  const TakenFrame seek = next_frame(consumer);
  peer.say(session::ErrorAnswer{Code::not_supported, "not on this topic"}, channel, seek.header.request);
  // A second seek waits for the reply to the first one.
  const auto again = consumer.seek(From::next(), Timeout(0));
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(consumer.state(), SessionState::open);
  deliver(0, {"a"});
  const TakenFrame second = next_frame(consumer);
  EXPECT_EQ(second.as<session::Seek>().to, From::next());
  peer.say(session::Done{1}, channel, second.header.request);
  deliver(1, {"b"});
  EXPECT_EQ(next_text(consumer), "b");
}

// --- A consumer leaves a broker that breaks the protocol, and counts the violation.

Frames bad_frames(std::uint32_t channel, const session::ConsumeOpened& opened) {
  using session::encode_frame;
  constexpr std::size_t at_batch = session::frame_layout::header_bytes + session::deliver_head_bytes;
  const std::vector<std::byte> good = deliver_frame(channel, Offset{5}, {"aaaa", "bbbb"});
  const auto spoilt = [&](auto change) {
    std::vector<std::byte> frame = good;
    change(frame);
    return frame;
  };
  const auto with_crc = [](std::vector<std::byte>& frame) {
    const session::FrameHeader header =
        session::decode_frame_header(frame, std::numeric_limits<std::uint32_t>::max()).header;
    session::encode_frame_header(
        frame.data(), header,
        ByteView(frame).subspan(session::frame_layout::header_bytes, session::deliver_head_bytes));
  };
  Frames frames;
  frames.push_back(spoilt([](auto& frame) { frame.back() ^= std::byte{1}; }));
  frames.push_back(spoilt([](auto& frame) { frame[at_batch] ^= std::byte{1}; }));
  frames.push_back(spoilt([](auto& frame) { frame[16] ^= std::byte{1}; }));
  frames.push_back(spoilt([&](auto& frame) {  // changes the head without its checksum
    frame[session::frame_layout::header_bytes + 8] = std::byte{1};
  }));
  frames.push_back(spoilt([&](auto& frame) {  // a delivery number of 0
    frame[session::frame_layout::header_bytes] = std::byte{0};
    with_crc(frame);
  }));
  frames.push_back(spoilt([&](auto& frame) {  // bytes after the batch
    frame.push_back(std::byte{0});
    store_little_endian(frame.data() + session::frame_layout::body_bytes,
                        static_cast<std::uint32_t>(frame.size() - session::frame_layout::header_bytes));
    with_crc(frame);
  }));
  frames.push_back(spoilt([&](auto& frame) {  // a truncated batch
    frame.resize(frame.size() - 3);
    store_little_endian(frame.data() + session::frame_layout::body_bytes,
                        static_cast<std::uint32_t>(frame.size() - session::frame_layout::header_bytes));
    with_crc(frame);
  }));
  frames.push_back(deliver_frame(channel + 1, Offset{5}, {"a"}));
  frames.push_back(deliver_frame(0, Offset{5}, {"a"}));
  frames.push_back(deliver_frame(channel, Offset{std::numeric_limits<std::uint64_t>::max()}, {"a", "b"}));
  frames.push_back(deliver_frame(channel, Offset{5}, {"a", "b", "c", "d"}));  // more messages than the credit
  frames.push_back(encode_frame(session::Done{5}, channel, 0));
  frames.push_back(encode_frame(session::Done{5}, channel, 77));
  frames.push_back(encode_frame(opened, channel + 1, 2));
  frames.push_back(encode_frame(session::Confirm{1, 0, 0}, channel, 0));
  frames.push_back(encode_frame(session::Credit{1, 1}, channel, 0));
  frames.push_back(std::vector<std::byte>(20, std::byte{0xFF}));
  return frames;
}

TEST_F(SessionConsumerTrouble, LeavesABrokerThatViolatesTheProtocol) {
  options.prefetch_messages = 3;
  const std::size_t kinds = bad_frames(channel, opened).size();
  for (std::size_t kind = 0; kind < kinds; ++kind) {
    SCOPED_TRACE(kind);
    Consumer consumer = make();
    connect(consumer);
    peer.put_bytes(bad_frames(channel, opened).at(kind));
    ASSERT_TRUE(until_ended(consumer));
    EXPECT_EQ(consumer.stats().violations, 1U);
    EXPECT_EQ(consumer.last_error().code, ErrorCode::invalid_request) << consumer.last_error().message;
    EXPECT_EQ(consumer.stats().received, 0U);
    connect(consumer);
    deliver(5, {"good"});
    EXPECT_EQ(next_text(consumer), "good");
  }
}

TEST_F(SessionConsumerTrouble, LeavesABrokerThatDeliversWithoutCreditInBytes) {
  options.prefetch_bytes = 5;
  Consumer consumer = make();
  connect(consumer);
  deliver(0, {"one message may be larger"});
  deliver(1, {""});
  EXPECT_EQ(next(consumer).offset, Offset{0});
  ASSERT_TRUE(until_ended(consumer));
  EXPECT_EQ(consumer.stats().violations, 1U);
}

TEST_F(SessionConsumerTrouble, LeavesABrokerWithDescendingOffsetsForAnOwnCursor) {
  options.mode = ConsumeMode::own;
  Consumer consumer = make();
  connect(consumer);
  deliver(5, {"a", "b"});
  deliver(5, {"a"}, {2});
  deliver(6, {"b"});
  next(consumer);
  next(consumer);
  EXPECT_EQ(next(consumer).delivery, 2U) << "again is allowed";
  ASSERT_TRUE(until_ended(consumer));
  EXPECT_EQ(consumer.stats().violations, 1U);
}

TEST_F(SessionConsumerTrouble, LeavesABrokerThatOpensAnUnusableChannel) {
  for (const auto& [answer_channel, again] : {std::pair{0U, 0U}, {channel, 1U}}) {
    Consumer consumer = make();
    const auto open = asked(consumer);
    peer.say(opened, answer_channel, open.header.request + again);
    ASSERT_TRUE(until(consumer, [&] { return peer.ended(); }));
    EXPECT_EQ(consumer.stats().violations, 1U);
    EXPECT_EQ(consumer.state(), SessionState::connecting);
  }
}

TEST_F(SessionConsumerTrouble, GivesUpABrokerThatDoesNotOpen) {
  Consumer consumer = make();
  asked(consumer);
  clock.advance(Timeout(6000));
  EXPECT_TRUE(until(consumer, [&] { return peer.ended(); }));
  EXPECT_EQ(consumer.last_error().code, ErrorCode::timeout);
  connect(consumer);
  EXPECT_EQ(joins, 2);
}

}  // namespace
}  // namespace lightq::test
