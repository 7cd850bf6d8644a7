/// Tests of reading without a group: ranges, limits, the order of replies, and lost messages.
#include "session/read_queue.hpp"

#include "admission/turn_work.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "delivery/consumer_group_harness.hpp"
#include "endpoint/topic_runtime_harness.hpp"
#include "session/fake_session.hpp"
#include "support/late_store.hpp"

namespace lightq::broker {
namespace {

using Payloads = std::vector<std::string>;
using session::Code;
using session::Op;
using test::FakeSession;

constexpr std::uint64_t all = UINT64_MAX;

class ReadQueueTest : public TopicRuntimeTest {
 protected:
  using TopicRuntimeTest::TopicRuntimeTest;

  void SetUp() override {
    port.topic = topic.get();
    port.takes_bytes = 1 << 20;
    open(producer_);
    ASSERT_TRUE(run_until([&] { return producer_.is_admitted; }));
  }
  ~ReadQueueTest() override { topic->publishing().detach(producer_); }

  /// Appends the payloads to the log as one batch.
  void store(const Payloads& payloads, Codec codec = Codec::none) {
    const ProducerIdentity& producer = producer_.identity;
    BatchBuilder builder;
    std::uint64_t payload_bytes = 0;
    for (const auto& payload : payloads) {
      builder.add(as_byte_view(payload));
      payload_bytes += payload.size();
    }
    if (codec != Codec::none) test::pack(builder, codec);
    const ByteView batch = builder.finish();
    auto bytes = test::of_producer(producer.id, producer.epoch, sequence_, {batch.begin(), batch.end()});
    const auto count = static_cast<std::uint32_t>(payloads.size());
    ASSERT_EQ(topic->publishing().store({bytes, count, payload_bytes}, {producer, sequence_, count}),
              PublishOutcome::accepted);
    sequence_ += count;
  }
  void ask(std::uint64_t begin, std::uint64_t end, std::uint64_t bytes, std::uint32_t request) {
    reads.add(*topic, {{{begin}, {end}}, bytes, "orders"}, request);
  }

  /// The reply to one request: its messages, its frames, and its final frame.
  struct Answer {
    Payloads payloads;
    std::vector<std::uint64_t> lost;  // of each deliver frame
    std::vector<bool> parts;          // of each deliver frame
    Op op = Op::heartbeat;            // of the final frame; heartbeat: none has been sent yet
    std::uint64_t next = 0;           // of `done`
    Code code = Code::ok;             // of `error`
  };
  /// Returns the reply that was sent since the last call. All its frames must belong to this request.
  Answer take(std::uint32_t request) {
    Answer answer;
    for (const auto& frame : std::exchange(port.frames, {})) {
      EXPECT_EQ(frame.header.request, request);
      EXPECT_EQ(frame.header.channel, 0U);
      EXPECT_EQ(answer.op, Op::heartbeat) << "something behind the answer";
      if (frame.header.op == Op::deliver) {
        EXPECT_EQ(frame.head().delivery, 0U);
        answer.lost.push_back(frame.head().lost);
        answer.parts.push_back(frame.is_part());
        const auto come = test::payloads_of(frame.batch());
        answer.payloads.insert(answer.payloads.end(), come.begin(), come.end());
        continue;
      }
      answer.op = frame.header.op;
      if (answer.op == Op::done) answer.next = frame.as<session::Done>().value;
      if (answer.op == Op::error) answer.code = frame.as<session::ErrorAnswer>().code;
    }
    return answer;
  }
  Answer read(std::uint64_t begin, std::uint64_t end, std::uint64_t bytes = all) {
    ask(begin, end, bytes, 5);
    reads.go_on();
    EXPECT_TRUE(reads.is_empty());
    return take(5);
  }

  FakeSession port;
  ReadQueue reads{port, port};

 private:
  FakeProducer producer_{false};
  std::uint64_t sequence_ = 0;
};

TEST_F(ReadQueueTest, WithoutBytesItReturnsOneMessageOfACompressedBatch) {
  Payloads batch(200);
  batch.push_back("x");
  for (const Codec codec : {Codec::lz4, Codec::zstd}) {
    const std::uint64_t begin = topic->store().next_offset().value;
    store(batch, codec);
    store({"y"}, codec);
    for (const CodecSet codecs : {CodecSet(), CodecSet::known()}) {
      port.codecs = codecs;
      const Answer empty = read(begin, begin + 201, 0);
      EXPECT_EQ(empty.payloads, Payloads(200)) << "empty messages take no bytes";
      EXPECT_EQ(empty.next, begin + 200);
      EXPECT_EQ(read(begin + 200, begin + 202, 0).payloads, Payloads{"x"});
      const Answer last = read(begin + 201, all, 0);
      EXPECT_EQ(last.payloads, Payloads{"y"}) << "also if it is the whole batch";
      EXPECT_EQ(last.next, begin + 202);
    }
  }
}

TEST_F(ReadQueueTest, ReturnsARangeAcrossBatchesAndTheNextOffset) {
  store({"a", "b", "c"});
  store({"d"});
  store({"e", "f"});
  const Payloads payloads = {"a", "b", "c", "d", "e", "f"};
  for (std::uint64_t begin = 0; begin <= 6; ++begin) {
    for (std::uint64_t end = begin; end <= 8; ++end) {
      const Answer answer = read(begin, end);
      const std::uint64_t next = std::min<std::uint64_t>(end, 6);
      EXPECT_EQ(answer.op, Op::done);
      EXPECT_EQ(answer.next, std::max(next, begin));
      EXPECT_EQ(answer.payloads,
                Payloads(payloads.begin() + static_cast<std::ptrdiff_t>(begin),
                         payloads.begin() + static_cast<std::ptrdiff_t>(std::max(begin, next))));
      EXPECT_TRUE(std::all_of(answer.lost.begin(), answer.lost.end(), [](auto lost) { return lost == 0; }));
    }
  }
  EXPECT_EQ(read(1, 5).parts, (std::vector{true, false, true}));
  const Answer behind = read(100, 200);
  EXPECT_EQ(behind.op, Op::done);
  EXPECT_EQ(behind.next, 100U) << "never before its begin";
}

TEST_F(ReadQueueTest, BringsAsManyBytesAsWereAskedForAndOneMessageInAnyCase) {
  store({std::string(1000, 'x'), std::string(10, 'y')});
  store({"", std::string(10, 'z')});
  store({std::string(5000, 'w')});
  for (const auto& [bytes, count] : std::vector<std::pair<std::uint64_t, std::uint64_t>>{{0, 1},
                                                                                         {1, 1},
                                                                                         {1000, 1},
                                                                                         {1009, 1},
                                                                                         {1010, 2},
                                                                                         {1019, 3},
                                                                                         {1020, 4},
                                                                                         {6019, 4},
                                                                                         {6020, 5},
                                                                                         {all, 5}}) {
    const Answer answer = read(0, all, bytes);
    EXPECT_EQ(answer.payloads.size(), count) << bytes;
    EXPECT_EQ(answer.op, Op::done);
    EXPECT_EQ(answer.next, count) << bytes;
  }
  EXPECT_EQ(read(4, all, 0).payloads.size(), 1U);
  EXPECT_EQ(read(2, all, 0).payloads, Payloads{""}) << "the first comes in any case, and no second";
}

TEST_F(ReadQueueTest, AnswersInTheOrderItWasAskedAsThereIsRoom) {
  for (int i = 0; i < 5; ++i) store({"a", "b"});
  port.room = 0;
  ask(0, 10, all, 1);
  ask(3, 4, all, 2);
  ask(9, 10, all, 3);
  reads.go_on();
  EXPECT_TRUE(port.frames.empty());
  port.room = 3;
  reads.go_on();
  EXPECT_EQ(take(1).payloads.size(), 6U);
  reads.go_on();
  EXPECT_TRUE(port.frames.empty()) << "there is no more room";
  port.room = 5;
  reads.go_on();
  EXPECT_EQ(take(1).payloads.size(), 4U) << "nothing twice, nothing left out";
  port.room = 6;
  reads.go_on();
  ASSERT_EQ(port.frames.size(), 2U);
  EXPECT_EQ(port.frames.front().header.request, 1U);
  EXPECT_EQ(port.frames.front().as<session::Done>().value, 10U);
  port.frames.erase(port.frames.begin());
  EXPECT_EQ(take(2).payloads, Payloads{"b"});
  port.room = 100;
  reads.go_on();
  ASSERT_EQ(port.frames.size(), 3U);
  EXPECT_EQ(port.frames.front().header.request, 2U);
  port.frames.erase(port.frames.begin());
  const Answer third = take(3);
  EXPECT_EQ(third.payloads, Payloads{"b"});
  EXPECT_EQ(third.next, 10U);
  EXPECT_TRUE(reads.is_empty());
  EXPECT_EQ(port.works_soon, 0);
}

TEST_F(ReadQueueTest, ATurnIsBoundedSoThatOthersGetTheirs) {
  const std::string payload(100 * limits::KiB, 'x');
  for (int i = 0; i < 7; ++i) store({payload});
  ask(0, all, all, 1);
  std::size_t come = 0;
  for (int turn = 0; turn < 2; ++turn) {
    reads.go_on();
    EXPECT_EQ(port.works_soon, turn + 1);
    const Answer answer = take(1);
    EXPECT_EQ(answer.payloads.size(), 3U) << "256 KiB, and what goes beyond";
    EXPECT_EQ(answer.op, Op::heartbeat);
    come += answer.payloads.size();
  }
  reads.go_on();
  const Answer last = take(1);
  EXPECT_EQ(come + last.payloads.size(), 7U);
  EXPECT_EQ(last.next, 7U);
  EXPECT_EQ(port.works_soon, 2);
}

TEST_F(ReadQueueTest, SkippedRecordsCountAgainstTheTurn) {
  constexpr std::uint64_t records = 65'536;
  store(Payloads(records, ""));
  constexpr std::uint32_t asked = 16;
  for (std::uint32_t i = 1; i <= asked; ++i) ask(records - 1, records, all, i);
  port.work_max = 1;  // one step of work a turn
  std::uint32_t turns = 0;
  for (; !reads.is_empty() && turns < 100; ++turns) {
    port.spent = 0;
    reads.go_on();
    EXPECT_LE(port.spent, TurnWork::record_passed * records) << "one search";
  }
  EXPECT_TRUE(reads.is_empty());
  EXPECT_GE(turns, asked);
}

TEST_F(ReadQueueTest, RecordsThatAreUnpackedForOneOfThemCountAgainstTheTurn) {
  constexpr std::uint32_t batches = 8;  // more batches than the cache of unpacked batches keeps
  constexpr std::uint64_t records = 65'536;
  for (std::uint32_t i = 0; i < batches; ++i) store(Payloads(records, std::to_string(i)), Codec::lz4);
  for (std::uint32_t i = 1; i <= batches; ++i) ask(i * records - 1, i * records, all, i);
  port.work_max = 1;
  std::uint32_t turns = 0;
  std::uint64_t spent = 0;
  for (; !reads.is_empty() && turns < 100; ++turns) {
    port.spent = 0;
    reads.go_on();
    EXPECT_LE(port.spent, records * (TurnWork::record_passed + record_bytes(1)) + TurnWork::batch_looked_at)
        << "one batch";
    spent += port.spent;
  }
  EXPECT_TRUE(reads.is_empty());
  EXPECT_GE(turns, batches);
  EXPECT_GE(spent, batches * records * record_bytes(1)) << "what was unpacked is counted";
  Payloads last;
  for (const auto& frame : port.frames) {
    if (frame.header.op != Op::deliver) continue;
    for (const auto& payload : test::payloads_of(frame.batch())) last.push_back(payload);
  }
  EXPECT_EQ(last, (Payloads{"0", "1", "2", "3", "4", "5", "6", "7"}));
}

TEST_F(ReadQueueTest, OneReadReturnsAtMostSixtyFourMebibytes) {
  const std::string payload(8 * limits::MiB, 'x');
  for (int i = 0; i < 9; ++i) store({payload});
  port.takes_bytes = 16 << 20;
  ask(0, all, all, 1);
  while (!reads.is_empty()) reads.go_on();
  const Answer answer = take(1);
  EXPECT_EQ(answer.payloads.size(), 8U);
  EXPECT_EQ(answer.next, 8U);
}

TEST_F(ReadQueueTest, AMessageLongerThanTheClientsFramesEndsTheReadBeforeIt) {
  store({"a", "b", std::string(70'000, 'c'), "d"});
  store({std::string(70'000, 'e')});
  store({"f"});
  port.takes_bytes = 64 * limits::KiB;
  for (const std::uint64_t begin : {0U, 1U}) {
    const Answer answer = read(begin, all);
    EXPECT_EQ(answer.op, Op::done);
    EXPECT_EQ(answer.next, 2U) << "in the midst of a batch";
    EXPECT_EQ(answer.payloads.size(), 2 - begin);
  }
  const Answer third = read(3, all);
  EXPECT_EQ(third.op, Op::done);
  EXPECT_EQ(third.next, 4U) << "where a batch begins";
  EXPECT_EQ(third.payloads, Payloads{"d"});
  for (const std::uint64_t begin : {2U, 4U}) {
    const Answer answer = read(begin, all);
    EXPECT_EQ(answer.op, Op::error);
    EXPECT_EQ(answer.code, Code::too_large);
    EXPECT_TRUE(answer.payloads.empty());
  }
  EXPECT_EQ(read(5, all).payloads, Payloads{"f"});
}

TEST_F(ReadQueueTest, ABatchLongerThanTheClientsFramesIsSplit) {
  const std::string payload(20'000, 'x');
  store(Payloads(10, payload));
  port.takes_bytes = 64 * limits::KiB;
  const Answer answer = read(0, all);
  EXPECT_EQ(answer.parts.size(), 4U);
  EXPECT_EQ(answer.payloads, Payloads(10, payload));
  EXPECT_EQ(answer.next, 10U);
}

TEST_F(ReadQueueTest, SixteenMayWait) {
  store({"a"});
  for (std::uint32_t i = 0; i < 16; ++i) {
    EXPECT_FALSE(reads.is_full()) << i;
    ask(0, 1, all, 1 + i);
  }
  EXPECT_TRUE(reads.is_full());
  port.room = 1;
  reads.go_on();
  EXPECT_TRUE(reads.is_full()) << "the first has its message, and no answer";
  port.room = 2;
  reads.go_on();
  EXPECT_FALSE(reads.is_full());
  EXPECT_FALSE(reads.is_empty());
  reads.drop_all();
  EXPECT_TRUE(reads.is_empty());
  port.frames.clear();
  port.room = 100;
  reads.go_on();
  EXPECT_TRUE(port.frames.empty());
}

TEST_F(ReadQueueTest, ReportsATopicThatIsDeletedInTheMeantime) {
  for (int i = 0; i < 3; ++i) store({"a"});
  port.room = 1;
  ask(0, 3, all, 1);
  reads.go_on();
  EXPECT_EQ(take(1).payloads.size(), 1U);
  port.topic = nullptr;
  port.room = 100;
  reads.go_on();
  const Answer answer = take(1);
  EXPECT_EQ(answer.op, Op::error);
  EXPECT_EQ(answer.code, Code::topic_deleted);
  EXPECT_TRUE(reads.is_empty());
}

/// Reads from a store that answers late and out of order.
class ReadQueueOfALateStore : public ReadQueueTest {
 protected:
  void SetUp() override {
    change_store = [this](std::unique_ptr<TopicStore> store) {
      auto late = std::make_unique<test::LateStore>(std::move(store));
      late_ = late.get();
      return late;
    };
    restart(true);
    ReadQueueTest::SetUp();
  }
  bool arrive() { return late_->arrive(); }

 private:
  test::LateStore* late_ = nullptr;
};

TEST_F(ReadQueueOfALateStore, WaitsForPendingMessagesAndDoesNothingMeanwhile) {
  store({"a", "b"});
  store({"c"});
  store({"d", "e"});
  ask(1, 5, all, 7);
  Payloads payloads;
  for (int arrivals = 0; !reads.is_empty(); ++arrivals) {
    ASSERT_LT(arrivals, 10);
    reads.go_on();
    const Payloads come = take(7).payloads;
    payloads.insert(payloads.end(), come.begin(), come.end());
    if (reads.is_empty()) break;
    EXPECT_FALSE(reads.wants_room()) << "space does not help";
    port.works_soon = 0;
    reads.go_on();
    EXPECT_TRUE(port.frames.empty());
    EXPECT_EQ(port.works_soon, 0) << "the session would never rest";
    ASSERT_TRUE(arrive());
    EXPECT_GT(port.works_soon, 0);
  }
  EXPECT_EQ(payloads, (Payloads{"b", "c", "d", "e"}));
}

TEST_F(ReadQueueOfALateStore, AnswersAPendingReadWhenTheTopicIsDeleted) {
  store({"a"});
  ask(0, 1, all, 7);
  reads.go_on();
  ASSERT_TRUE(port.frames.empty());
  port.works_soon = 0;
  topic->begin_stop(ClientError::topic_deleted);
  EXPECT_GT(port.works_soon, 0);
  port.topic = nullptr;
  reads.go_on();
  EXPECT_EQ(take(7).code, Code::topic_deleted);
}

TEST_F(ReadQueueOfALateStore, IsNotCalledAfterItsSessionHasEnded) {
  store({"a"});
  {
    ReadQueue ended(port, port);
    ended.add(*topic, {{{0}, {1}}, all, "orders"}, 7);
    ended.go_on();
    port.works_soon = 0;
  }
  EXPECT_TRUE(arrive());
  EXPECT_EQ(port.works_soon, 0);
}

/// Reads from a topic of 64 KiB of memory, which drops its oldest messages to make room for new ones.
class ReadQueueOfADroppingTopic : public ReadQueueTest {
 protected:
  ReadQueueOfADroppingTopic()
      : ReadQueueTest({.broker_type = protocol::BrokerType::queue,
                       .ring_bytes = limits::ring_bytes_min,
                       .overflow = protocol::Overflow::drop_oldest}) {}
  std::uint64_t first() { return topic->stats().first_offset; }
  void fill(int batches) {
    for (int i = 0; i < batches; ++i) store({std::string(3000, 'x'), std::string(3000, 'y')});
  }
};

TEST_F(ReadQueueOfADroppingTopic, ReportsLostMessagesOnce) {
  fill(20);
  ASSERT_GT(first(), 2U);
  const Answer answer = read(1, all);
  ASSERT_GT(answer.lost.size(), 1U);
  EXPECT_EQ(answer.lost.front(), first() - 1);
  EXPECT_EQ(answer.payloads.size(), 40 - first());
  EXPECT_EQ(answer.next, 40U);
  for (std::size_t i = 1; i < answer.lost.size(); ++i) EXPECT_EQ(answer.lost[i], 0U);
}

TEST_F(ReadQueueOfADroppingTopic, ReportsLostMessagesWhileTheClientDoesNotRead) {
  fill(20);
  const std::uint64_t before = first();
  port.room = 1;
  ask(0, all, all, 1);
  reads.go_on();
  EXPECT_EQ(take(1).lost, std::vector{before});
  fill(8);
  const std::uint64_t at = before + 2;
  ASSERT_GT(first(), at);
  port.room = 2;
  reads.go_on();
  EXPECT_EQ(take(1).lost, std::vector{first() - at}) << "only what was not told yet";
  port.room = 100;
  reads.go_on();
  const Answer rest = take(1);
  EXPECT_EQ(rest.next, 56U);
  EXPECT_EQ(rest.payloads.size(), 56 - first() - 2);
}

TEST_F(ReadQueueTest, ReadsThatNoTicketPermitsAnyMoreAreAnsweredSo) {
  store({"one", "two"});
  ask(0, all, all, 5);
  port.no_longer_permitted = EndpointRole::pull;
  reads.end_unpermitted();
  EXPECT_FALSE(reads.is_empty()) << "the other role permits it, too";
  port.all_forbidden = true;
  reads.end_unpermitted();
  EXPECT_TRUE(reads.is_empty());
  const Answer answer = take(5);
  EXPECT_EQ(answer.op, Op::error);
  EXPECT_EQ(answer.code, Code::unauthorized_access);
  EXPECT_TRUE(answer.payloads.empty());
}

TEST_F(ReadQueueTest, UnavailableMessagesAreReportedAndNotSkipped) {
  for (int i = 0; i < 40; ++i) store({std::string(1000, 'm')});
  ASSERT_GT(segments().size(), 1U);
  fail(ENOMEM, [maps = 0](FaultyStorage::Call call, const std::string&) mutable {
    return call == FaultyStorage::Call::map && ++maps > 1;  // mapping fails for all segments but the first
  });
  const Answer part = read(0, 100);
  EXPECT_EQ(part.op, Op::done) << "the client is told how far it has come";
  EXPECT_GT(part.next, 0U);
  EXPECT_LT(part.next, 40U);
  EXPECT_EQ(part.payloads.size(), part.next);
  for (int again = 0; again < 3; ++again) {
    const Answer nothing = read(part.next, 100);
    EXPECT_EQ(nothing.op, Op::error);
    EXPECT_EQ(nothing.code, Code::io_error);
    EXPECT_TRUE(nothing.payloads.empty());
  }
  fail(0, {});
  const Answer rest = read(part.next, 100);
  EXPECT_EQ(rest.op, Op::done);
  EXPECT_EQ(rest.next, 40U);
  EXPECT_EQ(rest.payloads.size(), 40 - part.next);
  EXPECT_TRUE(std::all_of(rest.lost.begin(), rest.lost.end(), [](auto lost) { return lost == 0; }));
}

}  // namespace
}  // namespace lightq::broker
