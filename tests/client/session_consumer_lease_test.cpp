/// Tests of a session consumer with leases: the messages that it names as started, and those that are
/// revoked.
#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <lightq/consumer.hpp>
#include <lightq/impl/session_leases.hpp>

#include "session_consumer_lease_fixture.hpp"

namespace lightq::test {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_F(SessionConsumerLease, NamesAMessageAsStartedBeforeTheProgramReceivesIt) {
  Consumer consumer = connected();
  deliver(0, {"a", "b", "c"}, handed(1));
  const Delivered message = next(consumer);
  EXPECT_EQ(message.text(), "a");
  EXPECT_THAT(said_already(), ElementsAre("started #1 [0,1)"));
  EXPECT_FALSE(message.revoked());
}

TEST_F(SessionConsumerLease, ExtendsNothingWhileItsHandlerTakes20MinutesAMessage) {
  Consumer consumer = connected();
  deliver(0, {"a", "b", "c"}, handed(1));
  EXPECT_EQ(next_text(consumer), "a");
  said_already();
  time += 20min;
  EXPECT_EQ(consumer.acknowledge(Offset{0}), 1U);
  EXPECT_THAT(said_already(), ElementsAre("ack #1 [0,1)", "credit 1/1"));
  EXPECT_EQ(next_text(consumer), "b");
  EXPECT_THAT(said_already(), ElementsAre("started #1 [1,2)"));
  time += 20min;
  EXPECT_EQ(next_text(consumer), "c");
  EXPECT_THAT(said_already(), ElementsAre("started #1 [2,3)"));
}

TEST_F(SessionConsumerLease, NamesMoreMessagesAtATimeForAQuickProgram) {
  Consumer consumer = connected();
  deliver(0, Payloads(20, "x"), handed(1));
  for (int i = 0; i < 8; ++i) {
    next(consumer);
    time += 10us;
  }
  EXPECT_THAT(said_already(),
              ElementsAre("started #1 [0,1)", "started #1 [1,3)", "started #1 [3,7)", "started #1 [7,15)"));
  time += 1min;
  for (int i = 0; i < 8; ++i) next(consumer);
  EXPECT_THAT(said_already(), Contains("started #1 [15,16)"));
}

TEST_F(SessionConsumerLease, GoesOnWithItsWindowInTheNextBatch) {
  Consumer consumer = connected();
  deliver(0, {"a", "b"}, handed(1));
  deliver(2, {"c"}, handed(1));
  deliver(3, {"d"}, handed(2));
  next(consumer);
  next(consumer);
  next(consumer);
  EXPECT_THAT(said_already(), ElementsAre("started #1 [0,1)", "started #1 [1,3)"));
  next(consumer);
  EXPECT_THAT(said_already(), Contains("started #2 [3,7)")) << "another hand-out";
}

TEST_F(SessionConsumerLease, NamesAWholeBatchThatTheProgramTakes) {
  Consumer consumer = connected();
  deliver(0, {"a", "b", "c", "d"}, handed(1));
  let_come(consumer);
  EXPECT_EQ(consumer.receive_batch(Timeout(0)).value_or_throw()->size(), 4U);
  EXPECT_THAT(said_already(), ElementsAre("started #1 [0,4)"));
}

TEST_F(SessionConsumerLease, RequestsNameTheHandOut) {
  Consumer consumer = connected();
  deliver(0, {"a", "b"}, handed(1));
  deliver(2, {"c", "d"}, handed(9, 2));
  for (int i = 0; i < 4; ++i) next(consumer);
  said_already();
  consumer.reject(OffsetRange{{1}, {3}}, Timeout(5));
  consumer.extend(OffsetRange{{0}, {4}}, Timeout(70));
  EXPECT_EQ(consumer.acknowledge(OffsetRange{{0}, {4}}), 2U);
  poll(consumer);
  const auto words = said_already();
  for (const char* const word : {"reject 5 #1 [1,2)", "reject 5 #9 [2,3)", "extend 70 #1 [0,1)",
                                 "extend 70 #9 [3,4)", "ack #1 [0,1)", "ack #9 [3,4)"})
    EXPECT_THAT(words, Contains(word));
}

TEST_F(SessionConsumerLease, DropsWhatItHasNotGivenToTheProgram) {
  Consumer consumer = connected();
  deliver(0, {"a", "b", "c"}, handed(1));
  deliver(3, {"d", "e"}, handed(1));
  EXPECT_EQ(next_text(consumer), "a");
  revoke({{{1}, {4}}}, 2, session::RevokeCause::silent);
  let_come(consumer);
  EXPECT_EQ(consumer.stats().revoked, 2U) << "the batch with d is not taken yet";
  EXPECT_EQ(next_text(consumer), "e");
  EXPECT_EQ(consumer.stats().revoked, 3U);
  EXPECT_EQ(consumer.acknowledge(OffsetRange{{0}, {5}}), 2U);
  deliver(1, {"b"}, handed(2));
  EXPECT_EQ(next_text(consumer), "b") << "delivered again";
  EXPECT_EQ(consumer.acknowledge(Offset{1}), 1U);
  EXPECT_EQ(consumer.stats().late, 0U) << "the program has not had 1 to 4 before";
}

TEST_F(SessionConsumerLease, CutsABatchAtARevokedMessage) {
  Consumer consumer = connected();
  deliver(0, {"a"}, handed(1));
  deliver(1, {"b", "c", "d", "e"}, handed(1));
  next(consumer);
  revoke({{{2}, {4}}}, 2);
  let_come(consumer);
  EXPECT_EQ(consumer.receive_batch(Timeout(0)).value_or_throw()->range(), (OffsetRange{{1}, {2}}));
  EXPECT_EQ(consumer.receive_batch(Timeout(0)).value_or_throw()->range(), (OffsetRange{{4}, {5}}));
}

TEST_F(SessionConsumerLease, TellsTheProgramThatItsMessageIsRevoked) {
  Consumer consumer = connected();
  deliver(0, {"a"}, handed(1));
  deliver(1, {"b"}, handed(1));
  const Delivered message = next(consumer);
  const std::stop_token token = consumer.stop_token(message);
  revoke({{{0}, {1}}}, 2);
  EXPECT_FALSE(message.revoked());
  let_come(consumer);
  EXPECT_TRUE(message.revoked());
  EXPECT_TRUE(token.stop_requested());
  EXPECT_EQ(consumer.acknowledge(message), 0U);
  EXPECT_EQ(consumer.stats().late, 1U);
  EXPECT_THAT(consumer.take_late(), ElementsAre(OffsetRange{{0}, {1}}));
  EXPECT_EQ(next_text(consumer), "b");
}

TEST_F(SessionConsumerLease, LooksForRevocationsBeforeASlowProgramAcknowledges) {
  Consumer consumer = connected();
  deliver(0, {"a", "b"}, handed(1));
  const Delivered message = next(consumer);
  revoke({{{0}, {2}}}, 2);
  time += 1s;
  EXPECT_EQ(consumer.acknowledge(message), 0U);
  EXPECT_EQ(consumer.stats().revoked, 2U);
  EXPECT_EQ(consumer.stats().late, 1U);
  EXPECT_FALSE(consumer.receive(Timeout(0)).value_or_throw().has_value());
}

TEST_F(SessionConsumerLease, StartsNoRevokedMessageOfTheNextBatchAfterASilence) {
  Consumer consumer = connected();
  deliver(0, {"a"}, handed(1));
  deliver(1, {"b", "c"}, handed(1));
  deliver(3, {"d"}, handed(1));
  EXPECT_EQ(next_text(consumer), "a");
  said_already();
  time += 20min;
  revoke({{{1}, {4}}}, 2, session::RevokeCause::silent);
  deliver(4, {"e"}, handed(2));
  EXPECT_EQ(next_text(consumer), "e") << "the first call after the silence finds the revocation";
  const auto words = said_already();
  EXPECT_THAT(words, Contains("started #2 [4,5)"));
  EXPECT_THAT(words, ::testing::Not(Contains("started #1 [1,2)")));
  EXPECT_EQ(consumer.stats().revoked, 3U);
  EXPECT_EQ(consumer.stats().received, 2U);
}

TEST_F(SessionConsumerLease, StartsNoRevokedMessageIfItsProcessWasStoppedInAWait) {
  Consumer consumer = connected();
  reads_until_stop = 3;  // the third read is in the wait
  while_stopped = [&] {
    deliver(1, {"b", "c"}, handed(1));
    revoke({{{1}, {3}}}, 2, session::RevokeCause::silent);
    deliver(4, {"e"}, handed(2));
    time += 1min;
  };
  const auto received = consumer.receive(Timeout(10'000)).value_or_throw();
  ASSERT_TRUE(received.has_value());
  EXPECT_EQ(received->text(), "e");
  EXPECT_THAT(said_already(), ::testing::Not(Contains("started #1 [1,2)")));
  EXPECT_EQ(reads_until_stop, 0) << "the process was stopped";
  EXPECT_EQ(consumer.stats().revoked, 2U);
}

TEST_F(SessionConsumerLease, WaitsForOneTimeoutAlthoughBatchesAreRevokedMeanwhile) {
  std::uint64_t batches = 0;  // also read when the consumer ends
  Consumer consumer = connected();
  reads_until_stop = 3;  // the third read is in the wait
  while_stopped = [&] {
    time += 600ms;
    reads_until_stop = batches < 5 ? 4 : 1;  // 4: in the next wait
    if (batches == 5) return;
    const auto number = static_cast<std::uint32_t>(batches + 1);
    deliver(batches, {"a"}, handed(number));
    revoke({{{batches}, {batches + 1}}}, number + 1, session::RevokeCause::silent);
    ++batches;
  };
  EXPECT_FALSE(consumer.receive(Timeout(1000)).value_or_throw().has_value());
  EXPECT_EQ(batches, 2U) << "in 1200 ms";
  EXPECT_EQ(consumer.stats().revoked, 2U);
  EXPECT_EQ(consumer.stats().received, 0U);
}

TEST_F(SessionConsumerLease, CountsNoRedeliveryThatTheProgramDoesNotReceive) {
  Consumer consumer = connected();
  deliver(0, {"a", "b", "c"}, handed(1, 2));
  EXPECT_EQ(next_text(consumer), "a");
  revoke({{{1}, {3}}}, 2);
  deliver(3, {"d"}, handed(2));
  let_come(consumer);
  EXPECT_EQ(next_text(consumer), "d");
  EXPECT_EQ(consumer.stats().received, 2U);
  EXPECT_EQ(consumer.stats().again, 1U) << "a only";
}

TEST_F(SessionConsumerLease, TakesARevocationForACauseThatItDoesNotKnow) {
  Consumer consumer = connected();
  deliver(0, {"a"}, handed(1));
  const Delivered message = next(consumer);
  revoke({{{0}, {1}}}, 2, static_cast<session::RevokeCause>(99));
  let_come(consumer);
  EXPECT_TRUE(message.revoked());
  EXPECT_EQ(consumer.stats().revoked, 1U);
  EXPECT_EQ(consumer.stats().violations, 0U);
}

TEST_F(SessionConsumerLease, EndsAConnectionThatDeliversWithoutAHandOut) {
  Consumer consumer = connected();
  deliver(0, {"a"}, handed(0));
  EXPECT_TRUE(until(consumer, [&] { return consumer.stats().violations == 1; }));
}

TEST_F(SessionConsumerLease, ALateAcknowledgementDoesNotFinishALaterHandOut) {
  Consumer consumer = connected();
  deliver(0, {"a"}, handed(1));
  const Delivered first = next(consumer);
  revoke({{{0}, {1}}}, 2);
  deliver(0, {"a"}, handed(2, 2));
  let_come(consumer);
  EXPECT_EQ(consumer.acknowledge(Offset{0}), 0U) << "the program has not received it again";
  EXPECT_EQ(consumer.stats().late, 1U);
  const Delivered second = next(consumer);
  EXPECT_EQ(second.delivery, 2U);
  EXPECT_EQ(consumer.acknowledge(first), 0U);
  said_already();
  EXPECT_EQ(consumer.acknowledge(second), 1U);
  poll(consumer);
  EXPECT_THAT(said_already(), Contains("ack #2 [0,1)"));
}

TEST_F(SessionConsumerLease, AnEndedConnectionTakesItsMessages) {
  Consumer consumer = connected();
  deliver(0, {"a"}, handed(1));
  const Delivered message = next(consumer);
  const std::stop_token token = consumer.stop_token(message);
  peer.close();
  time += 1s;
  EXPECT_EQ(consumer.acknowledge(message), 0U);
  EXPECT_TRUE(message.revoked());
  EXPECT_TRUE(token.stop_requested());
  EXPECT_TRUE(consumer.stop_token(message).stop_requested());
}

TEST_F(SessionConsumerLease, EndsAConnectionThatRevokesWithoutLeases) {
  opened.leases = false;
  Consumer consumer = connected();
  revoke({{{0}, {1}}}, 2);
  EXPECT_TRUE(until(consumer, [&] { return consumer.stats().violations == 1; }));
}

TEST(SessionLeases, WindowsFollowTheMeasuredRate) {
  SessionSettling settling;
  SessionLeases leases(settling);
  leases.opened(true);
  const HandOut hand_out = leases.hand_out(1);
  SessionTime now{1h};
  std::uint64_t at = 0;
  const auto next_window = [&](std::chrono::microseconds since) {
    now += since;
    const OffsetRange window = leases.start({{at}, {at + 100'000}}, hand_out, false, now);
    at = window.end.value;
    return distance(window.begin, window.end);
  };
  EXPECT_EQ(next_window(0us), 1U);
  EXPECT_EQ(next_window(1us), 2U);
  EXPECT_EQ(next_window(1us), 4U);
  EXPECT_EQ(next_window(4000us), 2U) << "4 in 4 ms";
  EXPECT_EQ(next_window(20min), 1U);
  for (int i = 0; i < 13; ++i) next_window(1us);
  EXPECT_EQ(next_window(1us), 8192U) << "the most";
}

TEST(SessionInbox, TakesBytesBehindAHeldFrameIntoTheSameMemory) {
  SessionInbox inbox(session::frame_bytes_least);
  const auto put = [&](std::span<std::byte> room, const auto& body) {
    const auto frame = session::encode_frame(body, 1, 0);
    ASSERT_GE(room.size(), frame.size());
    std::copy(frame.begin(), frame.end(), room.begin());
    inbox.add(frame.size());
  };
  const auto room = inbox.room();
  put(room, session::Done{5});
  const auto held = inbox.next().value_or_throw();
  ASSERT_TRUE(held.has_value());
  const std::size_t used = inbox.memory_bytes() - inbox.room_behind().size();
  EXPECT_EQ(inbox.room_behind().data(), room.data() + used) << "not at the begin, although all is taken";
  put(inbox.room_behind(), session::Revoked{session::RevokeCause::seek, 2, {{{0}, {1}}}});
  int seen = 0;
  for (int look = 0; look < 2; ++look)
    inbox.look_ahead(session::Op::revoked, [&](const SessionFrame&) { ++seen; });
  EXPECT_EQ(seen, 1) << "each is shown once";
  EXPECT_EQ(session::Done::decode(held->body, 0)->value, 5U) << "still valid";
}

TEST(HandOutRanges, AreKeptByHandOut) {
  HandOutRanges ranges;
  ranges.add({{0}, {2}}, 1);
  ranges.add({{2}, {4}}, 1);
  ranges.add({{9}, {10}}, 2);
  ranges.add({{4}, {5}}, 1);
  std::vector<std::pair<HandOut, std::vector<OffsetRange>>> taken;
  while (!ranges.empty()) {
    const HandOutRanges::Part part = ranges.take_first(10);
    taken.emplace_back(part.hand_out, part.ranges);
  }
  using Ranges = std::vector<OffsetRange>;
  EXPECT_THAT(taken, ::testing::UnorderedElementsAre(std::pair(HandOut{1}, Ranges{{{0}, {5}}}),
                                                     std::pair(HandOut{2}, Ranges{{{9}, {10}}})));
}

TEST(OffsetRanges, ATakenRangeLeavesTheRest) {
  OffsetRanges ranges;
  ranges.add({{0}, {10}});
  ranges.add({{20}, {30}});
  EXPECT_TRUE(ranges.overlaps({{5}, {6}}));
  EXPECT_FALSE(ranges.overlaps({{10}, {20}}));
  EXPECT_THAT(ranges.take({{5}, {25}}).all(), ElementsAre(OffsetRange{{5}, {10}}, OffsetRange{{20}, {25}}));
  EXPECT_THAT(ranges.all(), ElementsAre(OffsetRange{{0}, {5}}, OffsetRange{{25}, {30}}));
  EXPECT_THAT(ranges.take({{100}, {200}}).all(), IsEmpty());
}

}  // namespace
}  // namespace lightq::test
