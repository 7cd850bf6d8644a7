/// Tests of the source of slices and of the loop that delivers them.
#include "delivery/slice_source.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "delivery/dispatch_turn.hpp"
#include "delivery/fake_record_sink.hpp"
#include "delivery/plain_turn.hpp"
#include "log/memory/ring_log.hpp"
#include "support/batches.hpp"
#include "support/late_log.hpp"

namespace lightq::broker {
namespace {

using test::FakeRecordSink;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr OffsetRange offsets(std::uint64_t begin, std::uint64_t end) {
  return {{begin}, {end}};
}

class SliceSourceTest : public ::testing::Test {
 protected:
  /// Appends `batches` batches of `count` messages. Each message has its offset as payload.
  void append(int batches, int count) {
    for (int i = 0; i < batches; ++i) {
      std::vector<std::string> payloads;
      for (int j = 0; j < count; ++j) payloads.push_back(std::to_string(appended_++));
      auto batch = test::make_batch(payloads);
      ASSERT_EQ(log.append(batch, Timestamp{1}).outcome, log::AppendOutcome::appended);
    }
  }
  /// Returns the next slice, which stays the next one.
  static DeliveredSlice peek(SliceSource& source, const SliceLimits& limits = {}) {
    NextSlice next;
    EXPECT_EQ(source.next(limits, next), SliceOutcome::slice);
    return next.delivered;
  }
  /// Returns why there is no next slice.
  static SliceOutcome no_slice(SliceSource& source, const SliceLimits& limits = {}) {
    NextSlice next;
    return source.next(limits, next);
  }
  /// Takes the first `records` messages of the next slice. Returns their range.
  OffsetRange take(SliceSource& source, std::uint64_t records, const SliceLimits& limits = {}) {
    const BatchSlice slice = peek(source, limits).slice;
    if (!slice.batch.valid()) return {};
    const Offset begin = slice.range().begin;
    std::size_t bytes = 0;
    for (std::uint64_t i = 0; i < records; ++i)
      bytes += record_bytes(load_little_endian<std::uint32_t>(slice.records.data() + bytes));
    source.taken(records, bytes);
    return {begin, begin + records};
  }

  log::RingLog log{{}};
  DeliveryContext context{.now = SteadyTime(std::chrono::hours(1))};
  RecordReader reader{Offset{0}};
  RedeliveryQueue redelivery{180};  // the bytes of a due time and a few messages

 private:
  int appended_ = 0;
};

TEST_F(SliceSourceTest, ASliceIsTheNextOneUntilItIsTaken) {
  append(2, 5);
  SliceSource source(log, context, reader);
  EXPECT_EQ(peek(source).slice.range(), offsets(0, 5));
  EXPECT_EQ(peek(source).slice.range(), offsets(0, 5));
  EXPECT_EQ(take(source, 0), offsets(0, 0));
  EXPECT_EQ(take(source, 2), offsets(0, 2));
  const DeliveredSlice rest = peek(source);
  EXPECT_EQ(rest.slice.range(), offsets(2, 5));
  EXPECT_EQ(as_text(rest.slice.records.subspan(sizeof(std::uint32_t), 1)), "2");
  EXPECT_EQ(take(source, 3), offsets(2, 5));
  EXPECT_EQ(take(source, 5), offsets(5, 10));
  EXPECT_EQ(no_slice(source), SliceOutcome::end);
  EXPECT_EQ(reader.offset(), Offset{10});
}

TEST_F(SliceSourceTest, ALimitOfRedeliveriesCutsOnlySlicesOfTheQueue) {
  append(2, 5);
  reader.seek(Offset{5});
  redelivery.add(offsets(0, 5), 1);
  SliceSource source(log, context, reader, &redelivery);
  EXPECT_EQ(peek(source, {.redelivered = 2}).slice.range(), offsets(0, 2));
  EXPECT_EQ(no_slice(source, {.redelivered = 0}), SliceOutcome::limit);
  EXPECT_EQ(redelivery.ready_messages(), 5U);
  EXPECT_EQ(take(source, 5), offsets(0, 5));
  EXPECT_EQ(peek(source, {.redelivered = 2}).slice.range(), offsets(5, 10));
}

TEST_F(SliceSourceTest, APlainTurnFindsOnlyTheRedeliveriesThatItMayDeliver) {
  append(1, 20'000);
  reader.seek(Offset{20'000});
  redelivery.add(offsets(0, 19'999), 1);  // not to the batch's end, so that lengths must be read
  SliceSource source(log, context, reader, &redelivery);
  FakeRecordSink sink;
  std::vector<RecordSink*> consumers{&sink};
  std::size_t first = 0;
  TurnResult result;
  PlainTurn turn(consumers, first, limits::MiB, result);
  EXPECT_EQ(peek(source, turn.limits()).slice.count, 4096U);
  EXPECT_EQ(dispatch_turn(source, turn), TurnEnd::over);
  EXPECT_EQ(sink.taken.size(), 4096U);
}

TEST_F(SliceSourceTest, LimitsCutASliceAndPermitNothingIfTheyAreReached) {
  append(2, 5);
  SliceSource source(log, context, reader);
  EXPECT_EQ(peek(source, {.records = 3}).slice.range(), offsets(0, 3));
  EXPECT_EQ(peek(source, {.message_bytes = 2}).slice.range(), offsets(0, 2));
  EXPECT_EQ(peek(source, {.end = Offset{4}}).slice.range(), offsets(0, 4));
  for (const SliceLimits& none : {SliceLimits{.records = 0}, {.message_bytes = 0}, {.end = Offset{0}}})
    EXPECT_EQ(no_slice(source, none), SliceOutcome::limit);
  EXPECT_EQ(reader.offset(), Offset{0});
}

TEST_F(SliceSourceTest, RedeliveriesComeBeforeNewMessages) {
  append(2, 5);
  reader.seek(Offset{7});
  redelivery.add(offsets(1, 3), 1);
  redelivery.add(offsets(4, 6), 0);
  SliceSource source(log, context, reader, &redelivery);
  const DeliveredSlice first = peek(source);
  EXPECT_EQ(first.slice.range(), offsets(1, 3));
  EXPECT_EQ(first.delivery, 2U);
  EXPECT_TRUE(source.is_redelivery());
  EXPECT_EQ(no_slice(source, {.records = 0}), SliceOutcome::limit) << "and nothing newer before it";
  EXPECT_EQ(take(source, 1), offsets(1, 2));
  EXPECT_EQ(take(source, 1), offsets(2, 3));
  EXPECT_EQ(peek(source).delivery, 1U) << "never delivered before";
  EXPECT_EQ(take(source, 1), offsets(4, 5));
  EXPECT_EQ(take(source, 1), offsets(5, 6)) << "of the next batch";
  EXPECT_EQ(redelivery.bytes(), 0U);
  EXPECT_EQ(take(source, 3), offsets(7, 10));
  EXPECT_FALSE(source.is_redelivery());
}

TEST_F(SliceSourceTest, RedeliveriesBeyondTheLimitsStayInTheQueue) {
  append(2, 5);
  reader.seek(Offset{8});
  redelivery.add(offsets(2, 6), 0);
  SliceSource source(log, context, reader, &redelivery);
  for (const std::uint64_t end : {0U, 2U})
    EXPECT_EQ(no_slice(source, {.end = Offset{end}}), SliceOutcome::limit) << end;
  EXPECT_EQ(peek(source, {.end = Offset{4}}).slice.range(), offsets(2, 4));
  EXPECT_EQ(redelivery.ready_messages(), 4U);
  EXPECT_EQ(take(source, 3), offsets(2, 5)) << "of the first batch";
  EXPECT_EQ(take(source, 1), offsets(5, 6)) << "of the second batch";
  EXPECT_EQ(redelivery.loss().damaged + redelivery.loss().trimmed, 0U);
}

TEST_F(SliceSourceTest, TooManyRangesHoldNewerMessagesBack) {
  append(1, 10);
  const SteadyTime due = context.now + std::chrono::seconds(1);
  for (std::uint64_t i = 0; i < 4; ++i) redelivery.add_delayed(offsets(2 * i, 2 * i + 1), 1, due);
  reader.seek(Offset{8});
  SliceSource source(log, context, reader, &redelivery);
  EXPECT_EQ(no_slice(source), SliceOutcome::held_back);
  redelivery.give_up_before(Offset{8});
  EXPECT_EQ(take(source, 2), offsets(8, 10));
}

TEST_F(SliceSourceTest, EachLossIsToldOnce) {
  append(4, 1);
  log.trim(Offset{2});
  redelivery.add(offsets(0, 1), 1);
  SliceSource source(log, context, reader, &redelivery);
  std::uint64_t told = 0;
  EXPECT_EQ(take(source, 1), offsets(2, 3));
  EXPECT_EQ(source.take_untold_loss(told), 3U) << "two at the reader, one in the queue";
  EXPECT_EQ(source.take_untold_loss(told), 0U);
}

// --- The loop ---

class DispatchTurnTest : public SliceSourceTest {
 protected:
  /// Runs a turn of the consumers `sinks`.
  TurnEnd dispatch(SliceSource& source, std::uint64_t bytes_max = 1'000'000) {
    std::vector<RecordSink*> consumers;
    for (FakeRecordSink* const sink : sinks) consumers.push_back(sink);
    PlainTurn turn(consumers, first, bytes_max, result);
    return dispatch_turn(source, turn);
  }

  std::vector<FakeRecordSink*> sinks;
  std::size_t first = 0;
  TurnResult result;
};

TEST_F(DispatchTurnTest, ConsumersTakeMessagesInTurnUntilTheLogEnds) {
  append(2, 3);
  FakeRecordSink one, other;
  sinks = {&one, &other};
  SliceSource source(log, context, reader);
  EXPECT_EQ(dispatch(source), TurnEnd::no_message);
  EXPECT_THAT(one.taken, ElementsAre("0", "2", "4"));
  EXPECT_THAT(other.taken, ElementsAre("1", "3", "5"));
  EXPECT_EQ(result.messages, 6U);
  EXPECT_EQ(result.bytes, 6U);
}

TEST_F(DispatchTurnTest, AFullConsumerIsSkippedAndTheTurnEndsWhenAllAreFull) {
  append(2, 3);
  FakeRecordSink one(1), other(2);
  sinks = {&one, &other};
  SliceSource source(log, context, reader);
  EXPECT_EQ(dispatch(source), TurnEnd::no_consumer);
  EXPECT_THAT(one.taken, ElementsAre("0"));
  EXPECT_THAT(other.taken, ElementsAre("1", "2"));
  EXPECT_EQ(reader.offset(), Offset{3}) << "a refused message is the next one";
  one.give_room(10);
  EXPECT_EQ(dispatch(source), TurnEnd::no_message);
  EXPECT_THAT(one.taken, ElementsAre("0", "3", "4", "5"));
}

TEST_F(DispatchTurnTest, ATurnEndsInsideABatchWhenItsBytesAreUsedUp) {
  append(1, 10);
  FakeRecordSink sink;
  sinks = {&sink};
  SliceSource source(log, context, reader);
  EXPECT_EQ(dispatch(source, 3 * record_bytes(1)), TurnEnd::over);
  EXPECT_THAT(sink.taken, ElementsAre("0", "1", "2"));
  EXPECT_EQ(dispatch(source, 3 * record_bytes(1) + 1), TurnEnd::over);
  EXPECT_EQ(reader.offset(), Offset{7}) << "the message that reaches the bound is delivered whole";
}

TEST_F(DispatchTurnTest, ATurnRedeliversABoundedNumberOfMessages) {
  constexpr std::uint64_t most = 4096;
  append(1, 5000);
  FakeRecordSink sink;
  sinks = {&sink};
  redelivery.add(offsets(0, 4999), 1);
  reader.seek(Offset{4999});
  SliceSource source(log, context, reader, &redelivery);
  EXPECT_EQ(dispatch(source, 1), TurnEnd::over) << "the bound in bytes is for new messages";
  EXPECT_EQ(result.redelivered, most);
  EXPECT_EQ(redelivery.first_ready(), Offset{most});
  EXPECT_EQ(dispatch(source), TurnEnd::no_message);
  EXPECT_EQ(result.redelivered, 4999U);
  EXPECT_EQ(result.messages, 1U);
}

TEST_F(DispatchTurnTest, PendingMessagesEndATurnAndComeLater) {
  test::LateLog late(std::make_unique<log::RingLog>(log::RingLogOptions{}));
  auto batch = test::make_batch({"a", "b"});
  ASSERT_EQ(late.append(batch, Timestamp{1}).outcome, log::AppendOutcome::appended);
  FakeRecordSink sink;
  sinks = {&sink};
  SliceSource source(late, context, reader);
  EXPECT_EQ(dispatch(source), TurnEnd::pending);
  EXPECT_THAT(sink.taken, IsEmpty());
  while (late.arrive()) dispatch(source);
  EXPECT_THAT(sink.taken, ElementsAre("a", "b"));
}

}  // namespace
}  // namespace lightq::broker
