/// Tests of a session consumer with a correct broker: the messages that it receives, and the frames that it
/// sends.
#include <gmock/gmock.h>

#include <limits>
#include <thread>

#include <lightq/consumer.hpp>

#include "session_consumer_fixture.hpp"

#include "support/planted.hpp"

namespace lightq::test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(SessionConsumerTest, RequestsTheValuesOfItsOptions) {
  options.mode = ConsumeMode::own;
  options.group = "audit";
  options.from = From::time({77});
  options.holds = true;
  options.incarnation = 5;
  options.acknowledgement = Acknowledgement::automatic;
  options.prefetch_messages = 12;
  options.prefetch_bytes = 3456;
  options.ack_timeout = Timeout(789);
  options.name = "me";
  Consumer consumer = make();
  const session::Hello hello = greet(consumer);
  EXPECT_EQ(hello.name, "me");
  EXPECT_EQ(hello.ticket, std::string("id.") + planted::ticket_secret + "1");
  EXPECT_EQ(hello.frame_bytes_max, session::frame_bytes_greatest);
  const auto open = next_frame(consumer).as<session::ConsumeOpen>();
  const session::ConsumeOpen expected{session::Mode::own,
                                      Acknowledgement::automatic,
                                      {session::From::time, 77},
                                      true,
                                      12,
                                      3456,
                                      5,
                                      789,
                                      "orders",
                                      "audit"};
  EXPECT_EQ(open, expected);
}

TEST_F(SessionConsumerTest, ReturnsEachMessageWithItsMetadata) {
  Consumer consumer = make();
  opened.committed = 4;
  opened.next = 5;
  EXPECT_FALSE(consumer.committed().has_value());
  connect(consumer);
  EXPECT_EQ(consumer.committed(), Offset{4});
  deliver(5, {"a", "", "ccc"}, {2, 3, {1234}});
  const Delivered first = next(consumer);
  EXPECT_EQ(first.text(), "a");
  EXPECT_EQ(first.offset, Offset{5});
  EXPECT_EQ(first.delivery, 2U);
  EXPECT_TRUE(first.is_again());
  EXPECT_EQ(first.lost, 3U);
  EXPECT_EQ(first.time, Timestamp{1234});
  const Delivered second = next(consumer);
  EXPECT_EQ(second.text(), "");
  EXPECT_EQ(second.lost, 0U);
  EXPECT_EQ(first.text(), "a") << "the batch is still there";
  EXPECT_EQ(next_text(consumer), "ccc");
  EXPECT_TRUE(has_nothing(consumer));
  EXPECT_EQ(consumer.stats().received, 3U);
  EXPECT_EQ(consumer.stats().again, 3U);
  EXPECT_EQ(consumer.stats().lost, 3U);
}

TEST_F(SessionConsumerTest, ReturnsWholeBatchesAndTheRemainderOfOne) {
  Consumer consumer = make();
  connect(consumer);
  deliver(0, {"a", "b", "c"});
  deliver(3, {"d"});
  EXPECT_EQ(next_text(consumer), "a");
  const auto rest = consumer.receive_batch(Timeout(0)).value_or_throw();
  ASSERT_TRUE(rest.has_value());
  EXPECT_EQ(rest->range(), (OffsetRange{{1}, {3}}));
  Payloads texts;
  for (const Delivered& message : *rest) texts.emplace_back(message.text());
  EXPECT_THAT(texts, ElementsAre("b", "c"));
  const auto other = consumer.receive_batch(Timeout(0)).value_or_throw();
  ASSERT_TRUE(other.has_value());
  EXPECT_EQ(other->size(), 1U);
  EXPECT_EQ(other->begin()->text(), "d");
  EXPECT_FALSE(consumer.receive_batch(Timeout(0)).value_or_throw().has_value());
}

TEST_F(SessionConsumerTest, KeepsReturnedMessagesValidUntilTheNextReceive) {
  Consumer consumer = make();
  connect(consumer);
  const std::string large(300'000, 'x');
  deliver(0, {"first", "second"});
  const Delivered first = next(consumer);
  const Delivered second = next(consumer);
  deliver(2, {"third"});
  EXPECT_EQ(said(consumer).size(), 0U);
  peer.close();
  consumer.acknowledge(first);  // makes the consumer notice the end
  connect(consumer);
  deliver(2, {large});
  said(consumer);
  EXPECT_EQ(first.text(), "first");
  EXPECT_EQ(second.text(), "second");
  EXPECT_TRUE(next_text(consumer) == large);
}

TEST_F(SessionConsumerTest, GathersAcknowledgementsAndSendsThemWithCreditBeforeItWaits) {
  Consumer consumer = make();
  connect(consumer);
  deliver(10, {"aa", "b", "", "dddd"});
  for (int i = 0; i < 4; ++i) consumer.acknowledge(next(consumer));
  deliver(14, {"e", "f", "g"});
  next(consumer);
  consumer.acknowledge(Offset{16});
  consumer.acknowledge(Offset{14});
  EXPECT_THAT(said(consumer), ElementsAre("ack [10,15) [16,17)", "credit 6/9"));
  EXPECT_EQ(consumer.unacknowledged(), 1U);
  consumer.acknowledge(Offset{15});
  EXPECT_THAT(said(consumer), ElementsAre("ack [15,16)", "credit 1/1"));
  EXPECT_EQ(consumer.stats().acknowledged, 7U);
}

TEST_F(SessionConsumerTest, SkipsMessagesThatAreNotItsOwn) {
  Consumer consumer = make();
  connect(consumer);
  deliver(10, {"a", "b", "c"});
  next(consumer);
  consumer.acknowledge(Offset{9});
  consumer.acknowledge(Offset{13});
  consumer.reject(Offset{500});
  consumer.acknowledge(OffsetRange{{11}, {11}});
  EXPECT_THAT(said(consumer), IsEmpty());
  consumer.acknowledge(OffsetRange{{0}, {std::numeric_limits<std::uint64_t>::max()}});
  consumer.acknowledge(Offset{10});
  consumer.reject(Offset{11});
  EXPECT_THAT(said(consumer), ElementsAre("ack [10,13)", "credit 3/3"));
}

TEST_F(SessionConsumerTest, AcknowledgesEverythingBeforeADeliveredOffset) {
  Consumer consumer = make();
  connect(consumer);
  deliver(10, {"a", "b"});
  deliver(20, {"c", "d"});
  deliver(5, {"e"}, {2});
  next(consumer);
  consumer.acknowledge_before(Offset{100});
  EXPECT_THAT(said(consumer), ElementsAre("ack [10,11)", "credit 1/1")) << "not those that nobody has seen";
  next(consumer);
  consumer.acknowledge_before(Offset{100});
  EXPECT_THAT(said(consumer), ElementsAre("ack [11,12)", "credit 1/1"));
  next(consumer);
  next(consumer);
  EXPECT_EQ(next_text(consumer), "e");
  consumer.acknowledge_before(Offset{21});
  EXPECT_THAT(said(consumer), ElementsAre("ack [5,6) [20,21)", "credit 2/2"));
}

TEST_F(SessionConsumerTest, SendsRejectionsWithoutAnotherCallThatSettles) {
  Consumer consumer = make();
  connect(consumer);
  deliver(0, {"a", "b"});
  ASSERT_TRUE(consumer.receive_batch(Timeout(0)).value_or_throw());
  consumer.reject(Offset{0}, Timeout(250));
  EXPECT_THAT(said(consumer), ElementsAre("reject 250 [0,1)", "credit 1/1"));
}

TEST_F(SessionConsumerTest, RejectsAndExtends) {
  Consumer consumer = make();
  connect(consumer);
  deliver(0, {"a", "b", "c"});
  const auto batch = consumer.receive_batch(Timeout(0)).value_or_throw();
  ASSERT_TRUE(batch.has_value());
  consumer.extend(batch->range(), Timeout(60'000));
  consumer.reject(Offset{1}, Timeout(250));
  consumer.acknowledge(*batch);
  EXPECT_THAT(said(consumer),
              ElementsAre("extend 60000 [0,3)", "reject 250 [1,2)", "ack [0,1) [2,3)", "credit 3/3"));
  EXPECT_EQ(consumer.stats().rejected, 1U);
  EXPECT_EQ(consumer.stats().acknowledged, 2U);
  deliver(1, {"b"}, {2});
  const Delivered again = next(consumer);
  EXPECT_EQ(again.delivery, 2U);
  EXPECT_EQ(again.text(), "b");
}

TEST_F(SessionConsumerTest, HasNoMoreOutThanItsPrefetch) {
  options.prefetch_messages = 3;
  Consumer consumer = make();
  EXPECT_EQ(connect(consumer).credit_messages, 3U);
  deliver(0, {"a", "b", "c"});
  for (int i = 0; i < 3; ++i) next(consumer);
  EXPECT_TRUE(has_nothing(consumer));
  EXPECT_THAT(said(consumer), IsEmpty()) << "no credit for what is not acknowledged";
  consumer.acknowledge(Offset{1});
  EXPECT_THAT(said(consumer), ElementsAre("ack [1,2)", "credit 1/1"));
}

TEST_F(SessionConsumerTest, SendsGatheredAcknowledgementsWhileMoreMessagesWait) {
  options.prefetch_messages = 8;
  Consumer consumer = make();
  connect(consumer);
  for (std::uint64_t i = 0; i < 8; ++i) peer.put_bytes(deliver_frame(channel, Offset{i}, {"x"}));
  peer.write();
  consumer.acknowledge(next(consumer));
  consumer.acknowledge(next(consumer));
  next(consumer);
  peer.read();
  const auto told = peer.next();
  ASSERT_TRUE(told.has_value()) << "a quarter of its prefetch";
  EXPECT_EQ(word_of(*told), "ack [0,2)");
}

TEST_F(SessionConsumerTest, DoesNotKeepAcknowledgementsForLongWhileItWorksOnABatch) {
  Consumer consumer = make();
  connect(consumer);
  deliver(0, Payloads(100, "x"));
  consumer.acknowledge(next(consumer));
  for (int i = 0; i < 40; ++i) next(consumer);
  peer.read();
  EXPECT_FALSE(peer.next().has_value()) << "it may gather for a moment";
  clock.advance(Timeout(200));
  for (int i = 0; i < 40; ++i) next(consumer);
  peer.read();
  const auto told = peer.next();
  ASSERT_TRUE(told.has_value());
  EXPECT_EQ(word_of(*told), "ack [0,1)");
}

TEST_F(SessionConsumerTest, SendsHeartbeatsWhileItWorksOnABatch) {
  welcome.heartbeat_ms = 1000;
  Consumer consumer = make();
  connect(consumer);
  deliver(0, Payloads(100, "x"));
  for (int i = 0; i < 40; ++i) next(consumer);
  clock.advance(Timeout(600));
  for (int i = 0; i < 40; ++i) next(consumer);
  peer.read();
  const auto told = peer.next();
  ASSERT_TRUE(told.has_value());
  EXPECT_EQ(word_of(*told), "heartbeat");
}

TEST_F(SessionConsumerTest, ReturnsCreditAsBatchesAreTakenWithoutAcknowledgements) {
  options.acknowledgement = Acknowledgement::automatic;
  Consumer consumer = make();
  connect(consumer);
  deliver(0, {"aa", "bb"});
  next(consumer);
  next(consumer);
  consumer.acknowledge(Offset{0});
  EXPECT_THAT(said(consumer), IsEmpty()) << "the batch is still there";
  EXPECT_TRUE(has_nothing(consumer));
  EXPECT_THAT(said(consumer), ElementsAre("credit 2/4"));
  EXPECT_EQ(consumer.unacknowledged(), 0U);
}

TEST_F(SessionConsumerTest, SplitsTheBytesOfABatchSoThatTheyAddUp) {
  Consumer consumer = make();
  connect(consumer);
  deliver(0, {"aaaaaaaaaa", "b", "c", "d", "e", "f", "g"});  // 16 bytes
  consumer.receive_batch(Timeout(0)).value_or_throw();
  consumer.acknowledge(Offset{3});
  consumer.acknowledge(Offset{0});
  EXPECT_THAT(said(consumer), ElementsAre("ack [0,1) [3,4)", "credit 2/4"));
  consumer.acknowledge_before(Offset{7});
  EXPECT_THAT(said(consumer), ElementsAre("ack [1,3) [4,7)", "credit 5/12"));
}

TEST_F(SessionConsumerTest, SendsMoreRangesThanAFrameHoldsInSeveral) {
  options.prefetch_messages = 20'000;
  Consumer consumer = make();
  connect(consumer);
  deliver(0, Payloads(10'000, ""));
  ASSERT_EQ(next(consumer).offset, Offset{0});
  std::vector<OffsetRange> acknowledged;
  for (std::uint64_t i = 9'999; i < 10'000; i -= 2) consumer.acknowledge(Offset{i});
  std::size_t ranges = 0;
  std::size_t frames = 0;
  until(consumer, [&] {
    while (const auto frame = peer.next()) {
      if (frame->header.op != session::Op::acknowledge) continue;
      ++frames;
      ranges += frame->as<session::Acknowledge>().ranges.size();
    }
    return ranges == 5'000;
  });
  EXPECT_EQ(ranges, 5'000U);
  EXPECT_GE(frames, 2U);
}

TEST_F(SessionConsumerTest, GathersAcknowledgementsWhileMessagesFollowEachOther) {
  Consumer consumer = make();
  connect(consumer);
  deliver(0, {"a"});
  consumer.acknowledge(next(consumer));
  deliver(1, {"b"});
  const auto come = consumer.receive(Timeout(30'000));
  ASSERT_TRUE(come.ok() && come->has_value());
  consumer.acknowledge(**come);
  peer.read();
  EXPECT_FALSE(peer.next());
  EXPECT_TRUE(has_nothing(consumer)) << "this does not wait, so it tells";
  EXPECT_THAT(said(consumer), Contains("ack [0,2)"));
}

TEST_F(SessionConsumerTest, AcknowledgesWhileItWaitsForMore) {
  Consumer consumer = make();
  connect(consumer);
  deliver(0, {"a"});
  consumer.acknowledge(next(consumer));
  bool has_come = false;
  std::jthread waiting([&] { has_come = consumer.receive(Timeout(60'000)).value_or_throw().has_value(); });
  std::optional<TakenFrame> frame;
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(50);
  while (!frame && std::chrono::steady_clock::now() < give_up) {
    peer.read();
    frame = peer.next();
  }
  deliver(1, {"b"});
  waiting.join();
  EXPECT_TRUE(has_come);
  ASSERT_TRUE(frame);
  EXPECT_EQ(word_of(*frame), "ack [0,1)");
}

TEST_F(SessionConsumerTest, GrantsNoCreditWhileItIsPaused) {
  Consumer consumer = make();
  connect(consumer);
  consumer.pause();
  deliver(0, {"a", "b"});
  consumer.acknowledge(next(consumer));
  EXPECT_THAT(said(consumer), ElementsAre("ack [0,1)"));
  next(consumer);
  EXPECT_TRUE(has_nothing(consumer));
  EXPECT_THAT(said(consumer), IsEmpty());
  peer.close();
  const auto open = connect(consumer);
  EXPECT_EQ(open.credit_messages, 0U);
  EXPECT_EQ(open.credit_bytes, 0U);
  consumer.resume();
  EXPECT_THAT(said(consumer), ElementsAre("credit 10000/1048576"));
}

TEST_F(SessionConsumerTest, SeeksAndForgetsEarlierMessages) {
  Consumer consumer = make();
  connect(consumer);
  deliver(10, {"a", "b"});
  consumer.acknowledge(next(consumer));
  deliver(12, {"c"});
  EXPECT_EQ(consumer.seek(From::offset({3}), Timeout(0)).error().code, ErrorCode::timeout);
  EXPECT_FALSE(consumer.is_ready());
  std::optional<TakenFrame> seek;
  ASSERT_TRUE(until(consumer, [&] {
    while (seek = peer.next(), seek && seek->header.op != session::Op::seek) continue;
    return seek.has_value();
  }));
  EXPECT_EQ(seek->as<session::Seek>().to, From::offset({3}));
  deliver(13, {"old"});
  peer.say(session::Done{3}, channel, seek->header.request);
  deliver(3, {"new"});
  EXPECT_EQ(next_text(consumer), "new");
  EXPECT_THAT(said(consumer), ElementsAre("credit 2/2", "credit 1/3")) << "for b and c, and for old";
  consumer.acknowledge(Offset{11});
  EXPECT_THAT(said(consumer), IsEmpty());
}

TEST_F(SessionConsumerTest, ClosesWhenTheBrokerHasReceivedAllAcknowledgements) {
  Consumer consumer = make();
  connect(consumer);
  deliver(0, {"a", "b"});
  consumer.acknowledge(next(consumer));
  EXPECT_EQ(consumer.close(Timeout(0)).error().code, ErrorCode::timeout) << "nobody has answered";
  EXPECT_TRUE(consumer.finished());
  EXPECT_TRUE(consumer.close(Timeout(0)).ok());
  EXPECT_EQ(consumer.receive(Timeout(0)).error().code, ErrorCode::closed);
  peer.read();
  Payloads words;
  while (const auto frame = peer.next()) words.push_back(word_of(*frame));
  EXPECT_THAT(words, ElementsAre("ack [0,1)", "close", "goodbye"));
}

TEST_F(SessionConsumerTest, SendsGoodbyeWhenItIsDestroyed) {
  {
    Consumer consumer = make();
    connect(consumer);
    deliver(0, {"a"});
    consumer.acknowledge(next(consumer));
  }
  peer.read();
  Payloads words;
  while (const auto frame = peer.next()) words.push_back(word_of(*frame));
  EXPECT_THAT(words, ElementsAre("ack [0,1)", "credit 1/1", "goodbye"));
}

TEST_F(SessionConsumerTest, FlushSendsPendingAcknowledgements) {
  Consumer consumer = make();
  EXPECT_EQ(consumer.flush(Timeout(0)).error().code, ErrorCode::closed);
  connect(consumer);
  deliver(0, {"a"});
  consumer.acknowledge(next(consumer));
  EXPECT_TRUE(consumer.flush(Timeout(0)).ok());
  peer.read();
  const auto frame = peer.next();
  ASSERT_TRUE(frame.has_value());
  EXPECT_EQ(word_of(*frame), "ack [0,1)");
}

TEST_F(SessionConsumerTest, IsARangeAndCallsBack) {
  Consumer consumer = make();
  connect(consumer);
  deliver(0, {"a", "b"});
  deliver(2, {"c", "d"});
  Payloads texts;
  for (const Delivered& message : consumer.messages(Timeout(0))) {
    texts.emplace_back(message.text());
    consumer.acknowledge(message);
    if (message.offset == Offset{2}) break;
  }
  const auto handled =
      consumer.for_each([&](const Delivered& message) { texts.emplace_back(message.text()); }, Timeout(0));
  ASSERT_TRUE(handled.ok());
  EXPECT_EQ(*handled, 1U);
  EXPECT_THAT(texts, ElementsAre("a", "b", "c", "d"));
  EXPECT_EQ(consumer.unacknowledged(), 0U);
  std::stop_source stop;
  stop.request_stop();
  deliver(4, {"e"});
  EXPECT_EQ(consumer.for_each([](const Delivered&) {}, Timeout(0), stop.get_token()).value_or_throw(), 0U);
  (void)consumer.close(Timeout(0));
  EXPECT_EQ(consumer.for_each([](const Delivered&) {}, Timeout(0)).value_or_throw(), 0U);
}

TEST_F(SessionConsumerTest, CanBeMoved) {
  Consumer consumer = make();
  connect(consumer);
  deliver(0, {"a", "b"});
  EXPECT_EQ(next_text(consumer), "a");
  Consumer moved = std::move(consumer);
  EXPECT_EQ(next_text(moved), "b");
}

TEST_F(SessionConsumerTest, RefusesOptionsThatMeanNothing) {
  const auto refused = [](auto change) {
    ConsumerOptions changed;
    change(changed);
    const auto made =
        Consumer::open("orders", [] { return Result<SessionAddress>(SessionAddress{}); }, changed);
    return !made.ok() && made.error().code == ErrorCode::invalid_argument;
  };
  using O = ConsumerOptions;
  EXPECT_FALSE(refused([](O&) {}));
  EXPECT_TRUE(refused([](O& o) { o.mode = ConsumeMode{0}; }));
  EXPECT_TRUE(refused([](O& o) { o.group = "not a name"; }));
  EXPECT_TRUE(refused([](O& o) { o.from = {session::From::first, 1}; }));
  EXPECT_TRUE(refused([](O& o) { o.prefetch_messages = 0; }));
  EXPECT_TRUE(refused([](O& o) { o.prefetch_messages = 2'000'000'000; }));
  EXPECT_TRUE(refused([](O& o) { o.prefetch_bytes = 0; }));
  EXPECT_TRUE(refused([](O& o) { o.ack_timeout = Timeout(-1); }));
  EXPECT_TRUE(refused([](O& o) { o.frame_bytes_max = 1; }));
  EXPECT_TRUE(refused([](O& o) { o.heartbeat = Timeout(1); }));
  EXPECT_TRUE(refused([](O& o) { o.backoff = Timeout(0); }));
  EXPECT_TRUE(refused([](O& o) { o.attempt_timeout = Timeout(0); }));
  EXPECT_TRUE(refused([](O& o) { o.name = std::string(129, 'n'); }));
  EXPECT_FALSE(Consumer::open("no topic", join(), {}).ok());
  EXPECT_FALSE(Consumer::open("orders", nullptr, {}).ok());
}

}  // namespace
}  // namespace lightq::test
