/// Tests of a session producer with a correct broker: greeting, batches, confirms, limits, the end.
#include <lightq/producer.hpp>

#include <gmock/gmock.h>

#include "session_fixture.hpp"

#include "support/counted_yields.hpp"
#include "support/planted.hpp"

namespace lightq::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Payloads = std::vector<std::string>;

TEST_F(SessionProducerTest, GreetsWithItsNameAndTicketAndOpensItsTopic) {
  options.name = "till 3";
  options.heartbeat = Timeout(1500);
  options.level = ConfirmLevel::flushed;
  options.identity = {producer_id, 3};
  opened.producer = options.identity;
  Producer producer = make();
  const session::Hello hello = greet(producer);
  EXPECT_EQ(hello.name, "till 3");
  EXPECT_EQ(hello.ticket, std::string("id.") + planted::ticket_secret + "1");
  EXPECT_EQ(hello.heartbeat_ms, 1500U);
  const auto frame = next_frame(producer);
  const auto open = frame.as<session::ProduceOpen>();
  EXPECT_EQ(open.topic, "orders");
  EXPECT_EQ(open.level, ConfirmLevel::flushed);
  EXPECT_EQ(open.producer, (ProducerIdentity{producer_id, 3}));
  peer.say(opened, channel, frame.header.request);
  EXPECT_TRUE(until(producer, [&] { return producer.state() == SessionState::open; }));
  ASSERT_TRUE(producer.opened());
  EXPECT_EQ(producer.opened()->batch_bytes_max, opened.batch_bytes_max);
}

TEST_F(SessionProducerTest, PutsIdentityAndSequenceNumbersIntoItsBatches) {
  opened.producer.epoch = 2;
  opened.expected = 100;
  Producer producer = make();
  EXPECT_EQ(producer.identity().id, 0U);
  connect(producer);
  EXPECT_EQ(producer.identity(), opened.producer);
  EXPECT_EQ(*producer.send("one"), 0U);
  EXPECT_EQ(*producer.send("two"), 1U);
  const TakenBatch first = next_batch(producer);
  const TakenBatch second = next_batch(producer);
  EXPECT_EQ(first.producer, opened.producer);
  EXPECT_EQ(first.sequence, 100U);
  EXPECT_EQ(first.payloads, Payloads{"one"});
  EXPECT_EQ(second.sequence, 101U);
  EXPECT_EQ(second.payloads, Payloads{"two"});
}

TEST_F(SessionProducerTest, PacksMessagesWhileTwoBatchesAreUnconfirmed) {
  Producer producer = make();
  connect(producer);
  for (const char* text : {"a", "b", "c", "d", "e"}) ASSERT_TRUE(producer.send(text).ok());
  EXPECT_EQ(next_batch(producer).payloads, Payloads{"a"});
  EXPECT_EQ(next_batch(producer).payloads, Payloads{"b"});
  EXPECT_TRUE(is_quiet(producer));
  confirm(1);
  EXPECT_EQ(next_batch(producer).payloads, (Payloads{"c", "d", "e"}));
  confirm(5);
  EXPECT_TRUE(until(producer, [&] { return producer.confirmed() == 5; }));
  EXPECT_THAT(told(), ElementsAre("confirmed [0,1)", "confirmed [1,2)", "confirmed [2,5)"));
  EXPECT_EQ(producer.unconfirmed(), 0U);
}

TEST_F(SessionProducerTest, NoticesConfirmsInSendAlone) {
  Producer producer = make();
  connect(producer);
  for (const char* text : {"a", "b", "c", "d"}) ASSERT_TRUE(producer.send(text).ok());
  EXPECT_EQ(next_batch(producer).payloads, Payloads{"a"});
  EXPECT_EQ(next_batch(producer).payloads, Payloads{"b"});
  confirm(2);
  std::optional<TakenFrame> frame;
  for (int more = 0; more < 3 && !frame; ++more) {
    clock.advance(Timeout(1));  // the producer does not read again within microseconds
    ASSERT_TRUE(producer.send("more").ok());
    peer.read();
    frame = peer.next();
  }
  EXPECT_TRUE(frame) << "the batch did not leave though send was called";
  EXPECT_EQ(producer.confirmed(), 2U);
}

TEST_F(SessionProducerTest, SendsFullBatchesWithoutWaitingForConfirmsUpToItsWindow) {
  options.batch_bytes = 4096;
  options.window_bytes = 3 * 4096;
  options.eager_batches = 0;
  Producer producer = make();
  connect(producer);
  const std::string text(996, 'x');  // four of them fill a batch
  for (int sent = 0; sent < 16; ++sent) ASSERT_TRUE(producer.send(text).ok());
  for (int batch = 0; batch < 3; ++batch) EXPECT_EQ(next_batch(producer).payloads.size(), 4U);
  EXPECT_TRUE(is_quiet(producer));
  confirm(4);
  ASSERT_TRUE(producer.poll(Timeout(0)).ok());
  ASSERT_TRUE(producer.send(text).ok());  // closes the fourth batch, for which the window now has space
  EXPECT_EQ(next_batch(producer).sequence, 12U);
  EXPECT_TRUE(is_quiet(producer));
}

TEST_F(SessionProducerTest, WaitsInSendInsteadOfQueueingBehindAFullWindow) {
  options.batch_bytes = 4096;
  options.window_bytes = 2 * 4096;
  options.send_timeout = Timeout(1);
  Producer producer = make();
  const std::string text(996, 'x');  // four of them fill a batch
  for (int sent = 0; sent < 16; ++sent)
    ASSERT_TRUE(producer.send(text).ok()) << "not connected: it may pile up";
  connect(producer);
  for (int batch = 0; batch < 2; ++batch) EXPECT_EQ(next_batch(producer).payloads.size(), 4U);
  EXPECT_TRUE(is_quiet(producer));
  EXPECT_EQ(producer.send(text).error().code, ErrorCode::timeout);
  confirm(8);
  for (int sent = 0; sent < 4; ++sent) ASSERT_TRUE(producer.send(text).ok());
  for (int batch = 0; batch < 2; ++batch) EXPECT_EQ(next_batch(producer).payloads.size(), 4U);
  confirm(16);
  EXPECT_EQ(next_batch(producer).payloads.size(), 4U);
}

TEST_F(SessionProducerTest, YieldsAfterSendingForLongWithoutAWait) {
  using std::chrono::microseconds;
  SessionTime time = options.clock();
  options.clock = [&time] { return time; };
  options.batch_bytes = 4096;
  options.send_timeout = Timeout(1);
  Producer producer = make();
  connect(producer);
  const std::string text(996, 'x');  // four of them fill a batch
  int yielded = 0;
  std::uint64_t stored = 0;
  const auto send = [&](int batches, microseconds takes) {
    const int before = yields;
    for (int sent = 0; sent < 4 * batches; ++sent) {
      ASSERT_TRUE(producer.send(text).ok());
      if (sent % 4 != 3) continue;
      time += takes / batches;
      stored += next_batch(producer).payloads.size();
      confirm(stored);
    }
    yielded = yields - before;
  };
  send(40, microseconds(200));
  EXPECT_EQ(yielded, 0) << "much, but not for long";
  send(40, microseconds(200));
  EXPECT_EQ(yielded, 1);
  send(10, microseconds(10'000));
  EXPECT_EQ(yielded, 0) << "for long, but not much";
  send(30, microseconds(30));
  EXPECT_EQ(yielded, 1);
  for (int part = 0; part < 4; ++part) {
    ASSERT_TRUE(producer.poll(Timeout(0)).ok());
    ASSERT_TRUE(producer.poll(Timeout(1)).ok());
    send(40, microseconds(290));
    EXPECT_EQ(yielded, 0) << "it has waited";
  }
}

TEST_F(SessionProducerTest, QueuesBehindAFullWindowIfItMayNotWait) {
  options.batch_bytes = 4096;
  options.window_bytes = 4096;
  options.eager_batches = 0;
  options.memory_bytes_max = 16384;
  options.send_timeout = Timeout(0);
  Producer producer = make();
  connect(producer);
  const std::string text(996, 'x');
  std::uint64_t taken = 0;
  while (taken < 1000 && producer.send(text).ok()) ++taken;
  EXPECT_GE(taken, 12U);
  EXPECT_LE(taken, 20U);
}

TEST_F(SessionProducerTest, HasAWindowThatFitsItsConfirmLevel) {
  EXPECT_EQ(options.window_bytes_for(ConfirmLevel::received), 256 * limits::KiB);
  EXPECT_EQ(options.window_bytes_for(ConfirmLevel::flushed), 4 * limits::MiB);
  options.connection = ConnectionType::zmq;
  EXPECT_EQ(options.window_bytes_for(ConfirmLevel::received), 512 * limits::KiB);
  EXPECT_EQ(options.window_bytes_for(ConfirmLevel::flushed), 4 * limits::MiB);
  options.window_bytes = 5;
  EXPECT_EQ(options.window_bytes_for(ConfirmLevel::flushed), 5U);
}

TEST_F(SessionProducerTest, ALingeringMessageIsSentByItsDeadline) {
  options.eager_batches = 0;
  options.linger = Timeout(5000);
  Producer producer = make();
  connect(producer);
  ASSERT_TRUE(producer.send("waits").ok());
  EXPECT_TRUE(is_quiet(producer));
  EXPECT_LE(producer.next_timer(), options.clock() + Timeout(5000));
  clock.advance(Timeout(5000));
  EXPECT_EQ(next_batch(producer).payloads, Payloads{"waits"});
}

TEST_F(SessionProducerTest, KeepsMessagesSentBeforeTheTopicIsOpen) {
  Producer producer = make();
  for (const char* text : {"a", "b", "c"}) ASSERT_TRUE(producer.send(text).ok());
  connect(producer);
  EXPECT_EQ(next_batch(producer).payloads, (Payloads{"a", "b", "c"}));
}

TEST_F(SessionProducerTest, AsksForTheDiskInAFlushAtThatLevel) {
  opened.level = ConfirmLevel::flushed;
  options.eager_batches = 1;
  Producer producer = make();
  connect(producer);
  ASSERT_TRUE(producer.send("a").ok());
  ASSERT_TRUE(producer.send("b").ok());
  EXPECT_EQ(next_frame(producer).header.flags, 0);
  const Result<void> flushed = producer.flush(Timeout(0));
  ASSERT_FALSE(flushed.ok());
  EXPECT_EQ(flushed.error().code, ErrorCode::timeout);
  EXPECT_THAT(flushed.error().message, HasSubstr("2 messages are not confirmed"));
  EXPECT_EQ(next_frame(producer).header.flags, session::flag_flush);
  confirm(2, 1);
  EXPECT_TRUE(until(producer, [&] { return producer.confirmed() == 1; }));
  EXPECT_EQ(producer.wait_settled(0, Timeout(0)).ok(), true);
  EXPECT_EQ(producer.wait_settled(1, Timeout(0)).ok(), false);
  confirm(2, 2);
  EXPECT_TRUE(until(producer, [&] { return producer.confirmed() == 2; }));
  EXPECT_TRUE(producer.flush(Timeout(0)).ok());
}

TEST_F(SessionProducerTest, CallsBackForSingleMessages) {
  options.eager_batches = 1;
  Producer producer = make();
  connect(producer);
  std::vector<std::string> called;
  const auto as = [&](const std::string& name) {
    return [&called, name](Fate fate, const Error* error) {
      called.push_back(name + (fate == Fate::confirmed && error == nullptr ? " confirmed" : " lost"));
    };
  };
  ASSERT_TRUE(producer.send("a", as("a")).ok());
  ASSERT_TRUE(producer.send("b").ok());
  ASSERT_TRUE(producer.send("c", as("c")).ok());
  confirm(1);
  EXPECT_TRUE(until(producer, [&] { return producer.confirmed() == 1; }));
  EXPECT_THAT(called, ElementsAre("a confirmed"));
  confirm(3);
  EXPECT_TRUE(until(producer, [&] { return producer.confirmed() == 3; }));
  EXPECT_THAT(called, ElementsAre("a confirmed", "c confirmed"));
}

TEST_F(SessionProducerTest, ACallbackMaySendButNotWait) {
  Producer producer = make();
  connect(producer);
  int calls = 0;
  bool waited = true;
  ASSERT_TRUE(producer
                  .send("question",
                        [&](Fate, const Error*) {
                          ++calls;
                          EXPECT_TRUE(producer.send("answer").ok());
                          waited = producer.flush(Timeout(0)).ok();
                        })
                  .ok());
  EXPECT_EQ(next_batch(producer).payloads, Payloads{"question"});
  confirm(1);
  EXPECT_EQ(next_batch(producer).payloads, Payloads{"answer"});
  EXPECT_EQ(calls, 1);
  EXPECT_FALSE(waited);
}

TEST_F(SessionProducerTest, FailsImmediatelyWithoutMemoryIfItMayNotWait) {
  options.batch_bytes = 4096;
  options.memory_bytes_max = 16384;
  options.send_timeout = Timeout(0);
  Producer producer = make();
  const std::string text(1000, 'x');
  Result<std::uint64_t> sent = producer.send(text);
  std::uint64_t taken = 0;
  for (; sent.ok() && taken < 1000; sent = producer.send(text)) ++taken;
  ASSERT_FALSE(sent.ok());
  EXPECT_EQ(sent.error().code, ErrorCode::limit_reached);
  EXPECT_GE(taken, 12U);
  EXPECT_LE(taken, 20U);
  EXPECT_EQ(producer.stats().sent, taken);
  connect(producer);
  std::uint64_t came = 0;
  while (came < 4) came += next_batch(producer).payloads.size();
  confirm(came);
  EXPECT_TRUE(until(producer, [&] { return producer.confirmed() == came; }));
  EXPECT_TRUE(producer.send(text).ok());
}

TEST_F(SessionProducerTest, ReportsATimeoutForMemory) {
  options.batch_bytes = 4096;
  options.memory_bytes_max = 4096;
  options.send_timeout = Timeout(1);
  Producer producer = make();
  join_error = Error{ErrorCode::timeout, "no broker there"};
  const std::string text(1000, 'x');
  Result<std::uint64_t> sent = producer.send(text);
  for (int more = 0; more < 100 && sent.ok(); ++more) sent = producer.send(text);
  ASSERT_FALSE(sent.ok());
  EXPECT_EQ(sent.error().code, ErrorCode::timeout);
  EXPECT_THAT(sent.error().message, HasSubstr("no broker there"));
}

TEST_F(SessionProducerTest, RefusesMessagesThatNeverFit) {
  opened.message_bytes_max = 5000;
  options.memory_bytes_max = 1 << 20;
  Producer producer = make();
  Result<std::uint64_t> sent = producer.send(std::string(2 << 20, 'x'));
  EXPECT_EQ(sent.error().code, ErrorCode::too_large);
  EXPECT_THAT(sent.error().message, HasSubstr("option memory_bytes_max"));
  connect(producer);
  sent = producer.send(std::string(5001, 'x'));
  EXPECT_EQ(sent.error().code, ErrorCode::too_large);
  EXPECT_THAT(sent.error().message, HasSubstr("larger than 5000 bytes, the broker's message_bytes_max"));
  ASSERT_TRUE(producer.send(std::string(5000, 'x')).ok());
  EXPECT_EQ(next_batch(producer).payloads.at(0).size(), 5000U);
}

TEST_F(SessionProducerTest, SendsALargeMessageInItsOwnBatch) {
  options.eager_batches = 0;
  Producer producer = make();
  connect(producer);
  for (const std::size_t bytes : {10, 200'000, 10}) ASSERT_TRUE(producer.send(std::string(bytes, 'x')).ok());
  EXPECT_EQ(next_batch(producer).payloads.at(0).size(), 10U);
  EXPECT_EQ(next_batch(producer).payloads.at(0).size(), 200'000U);
  EXPECT_TRUE(is_quiet(producer));
}

TEST_F(SessionProducerTest, NeverPutsMoreRecordsIntoABatchThanItMayHave) {
  options.eager_batches = 0;
  options.batch_bytes = 1 << 20;
  options.send_timeout = Timeout(0);
  Producer producer = make();
  connect(producer);
  for (std::size_t sent = 0; sent <= limits::batch_records_max; ++sent) ASSERT_TRUE(producer.send("").ok());
  EXPECT_EQ(next_batch(producer).payloads.size(), limits::batch_records_max);
}

TEST_F(SessionProducerTest, SendsGoodbyeAndReportsUnconfirmedMessages) {
  Producer producer = make();
  connect(producer);
  for (const char* text : {"a", "b", "c"}) ASSERT_TRUE(producer.send(text).ok());
  next_batch(producer);
  confirm(1);
  ASSERT_TRUE(until(producer, [&] { return producer.confirmed() == 1; }));
  const Result<void> closed = producer.close(Timeout(0));
  ASSERT_FALSE(closed.ok());
  EXPECT_EQ(closed.error().code, ErrorCode::timeout);
  EXPECT_THAT(closed.error().message, HasSubstr("2 messages are not confirmed"));
  EXPECT_THAT(told(), ElementsAre("confirmed [0,1)", "unknown [1,2)", "unknown [2,3)"));
  next_batch(producer);
  next_batch(producer);
  EXPECT_EQ(next_frame(producer).as<session::Goodbye>().code, session::Code::ok);
  EXPECT_TRUE(producer.close(Timeout(0)).ok());
  EXPECT_EQ(producer.send("d").error().code, ErrorCode::closed);
  EXPECT_EQ(producer.state(), SessionState::closed);
}

TEST_F(SessionProducerTest, SendsGoodbyeWhenItIsDestroyedOrReplaced) {
  {
    Producer producer = make();
    connect(producer);
    producer = make();
    EXPECT_EQ(next_frame(producer).header.op, session::Op::goodbye);
    connect(producer);
  }
  peer.read();
  const std::optional<TakenFrame> frame = peer.next();
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->header.op, session::Op::goodbye);
  EXPECT_THAT(reports, IsEmpty());
}

TEST_F(SessionProducerTest, ContinuesAfterAMove) {
  Producer first = make();
  connect(first);
  ASSERT_TRUE(first.send("a").ok());
  Producer second = std::move(first);
  ASSERT_TRUE(second.send("b").ok());
  EXPECT_EQ(next_batch(second).payloads, Payloads{"a"});
  EXPECT_EQ(next_batch(second).payloads, Payloads{"b"});
}

TEST_F(SessionProducerTest, SendsHeartbeatsWhenItHasNothingToSay) {
  welcome.heartbeat_ms = 10'000;
  Producer producer = make();
  connect(producer);
  clock.advance(Timeout(4000));
  ASSERT_TRUE(producer.send("a").ok());
  next_batch(producer);
  clock.advance(Timeout(4000));
  EXPECT_TRUE(is_quiet(producer));
  EXPECT_LE(producer.next_timer(), options.clock() + Timeout(1000));
  clock.advance(Timeout(1000));
  EXPECT_EQ(next_frame(producer).header.op, session::Op::heartbeat);
  EXPECT_TRUE(is_quiet(producer));
}

TEST_F(SessionProducerTest, GivesUpASilentConnection) {
  options.heartbeat = Timeout(10'000);
  Producer producer = make();
  connect(producer);
  clock.advance(Timeout(15'000));
  peer.say(session::Heartbeat{}, 0, 0);
  EXPECT_TRUE(is_quiet(producer));
  clock.advance(Timeout(15'000));
  EXPECT_TRUE(is_quiet(producer));
  clock.advance(Timeout(5000));
  EXPECT_TRUE(until(producer, [&] { return peer.ended(); }));
  EXPECT_EQ(producer.state(), SessionState::connecting);
  EXPECT_EQ(producer.last_error().code, ErrorCode::timeout);
  connect(producer);
}

TEST(ProducerOptions, AreCheckedFirst) {
  const auto join = [] { return Result<SessionAddress>(SessionAddress{}); };
  const auto code = [&](const ProducerOptions& options) {
    const auto made = Producer::open("orders", join, options);
    return made.ok() ? ErrorCode::internal : made.error().code;
  };
  EXPECT_EQ(code({.batch_bytes = 100}), ErrorCode::invalid_argument);
  EXPECT_EQ(code({.memory_bytes_max = 100}), ErrorCode::invalid_argument);
  EXPECT_EQ(code({.heartbeat = Timeout(1)}), ErrorCode::invalid_argument);
  EXPECT_EQ(code({.backoff = Timeout(0)}), ErrorCode::invalid_argument);
  EXPECT_EQ(code({.name = std::string(129, 'n')}), ErrorCode::invalid_argument);
  EXPECT_EQ(code({}), ErrorCode::internal);
  EXPECT_FALSE(Producer::open("no topic", join).ok());
  EXPECT_FALSE(Producer::open("orders", nullptr).ok());
}

}  // namespace
}  // namespace lightq::test
