/// Tests of the parts of a consumer's channel: credit, position, requests and deliveries, each without a
/// connection.
#include <lightq/impl/session_consume_requests.hpp>
#include <lightq/impl/session_credit.hpp>
#include <lightq/impl/session_deliveries.hpp>
#include <lightq/impl/session_position.hpp>

#include <gmock/gmock.h>

#include <optional>
#include <string>
#include <vector>

#include "session_consumer_fixture.hpp"

namespace lightq::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(SessionCredit, IsUsedUpByMessagesOrBytes) {
  SessionCredit credit({10, 100});
  SessionAmount back{7, 7};
  EXPECT_EQ(credit.begin(back), (SessionAmount{10, 100}));
  EXPECT_EQ(back, SessionAmount());
  EXPECT_TRUE(credit.use({9, 99}));
  EXPECT_FALSE(credit.use({2, 0})) << "one message is left";
  EXPECT_TRUE(credit.use({1, 500})) << "the last byte permits a message of any size";
  EXPECT_FALSE(credit.use({0, 0}));
  back = {10, 599};
  EXPECT_EQ(credit.give(back), (SessionAmount{10, 599}));
  EXPECT_EQ(back, SessionAmount());
  EXPECT_TRUE(credit.use({10, 100}));
}

TEST(SessionCredit, IsNotGivenWhilePaused) {
  SessionCredit credit({10, 100});
  SessionAmount back;
  credit.pause(true);
  EXPECT_EQ(credit.begin(back), SessionAmount());
  EXPECT_EQ(back, (SessionAmount{10, 100}));
  EXPECT_FALSE(credit.is_due(back));
  EXPECT_FALSE(credit.is_much(back));
  EXPECT_FALSE(credit.use({1, 1}));
  credit.pause(false);
  EXPECT_TRUE(credit.is_due(back));
  credit.give(back);
  EXPECT_FALSE(credit.is_due(back));
  EXPECT_TRUE(credit.use({1, 1}));
}

TEST(SessionCredit, IsMuchFromAQuarterOfEitherLimit) {
  const SessionCredit credit({10, 100});
  EXPECT_FALSE(credit.is_much({1, 24}));
  EXPECT_TRUE(credit.is_much({2, 0}));
  EXPECT_TRUE(credit.is_much({0, 25}));
  const SessionCredit least({1, 1});
  EXPECT_FALSE(least.is_much({0, 0}));
  EXPECT_TRUE(least.is_much({1, 0}));
}

class SessionPositionTest : public ::testing::Test {
 protected:
  static ConsumerOptions of_mode(ConsumeMode mode, const std::string& group = {}) {
    ConsumerOptions options;
    options.mode = mode;
    options.group = group;
    options.from = From::offset({5});
    options.incarnation = 70;
    return options;
  }
  static bool opened(SessionPosition& position, std::uint64_t next, std::uint64_t incarnation) {
    session::ConsumeOpened answer;
    answer.next = next;
    answer.incarnation = incarnation;
    return position.opened(answer);
  }
  /// Expects that the next opening begins at this place of a log.
  static void expect_to_begin(const SessionPosition& position, const session::Place& start,
                              std::uint64_t incarnation) {
    session::ConsumeOpen open;
    position.begin(open);
    EXPECT_EQ(open.start, start);
    EXPECT_EQ(open.incarnation, incarnation);
  }
};

TEST_F(SessionPositionTest, OfAGroupIsKnownToTheBrokerOnly) {
  SessionPosition position(of_mode(ConsumeMode::group, "billing"));
  expect_to_begin(position, From::offset({5}), 70);
  EXPECT_FALSE(opened(position, 5, 70));
  EXPECT_EQ(position.delivered({{5}, {9}}), 0U);
  expect_to_begin(position, From::offset({5}), 70);
  EXPECT_TRUE(position.permits({5}, 1, 0)) << "another member may have moved the group";
  EXPECT_FALSE(position.log_was_replaced());
}

TEST_F(SessionPositionTest, OfANamelessConsumerGoesOnAfterWhatItReceived) {
  SessionPosition position(of_mode(ConsumeMode::own));
  expect_to_begin(position, From::offset({5}), 70);
  EXPECT_FALSE(opened(position, 5, 70));
  EXPECT_EQ(position.delivered({{5}, {9}}), 0U);
  expect_to_begin(position, From::offset({9}), 70);
  EXPECT_FALSE(opened(position, 12, 70));
  EXPECT_EQ(position.delivered({{12}, {13}}), 3U) << "9, 10 and 11 are gone";
  EXPECT_EQ(position.delivered({{13}, {14}}), 0U) << "reported once";
  expect_to_begin(position, From::offset({14}), 70);
}

TEST_F(SessionPositionTest, OfOwnModeOnlyAscendsExceptForRedeliveries) {
  SessionPosition position(of_mode(ConsumeMode::own, "reports"));
  EXPECT_FALSE(opened(position, 5, 70));
  position.delivered({{5}, {9}});
  EXPECT_TRUE(position.permits({9}, 1, 0));
  EXPECT_FALSE(position.permits({8}, 1, 0));
  EXPECT_TRUE(position.permits({8}, 2, 0));
  EXPECT_TRUE(position.permits({8}, 1, 3)) << "released: the number of deliveries has not grown";
  position.sought({3});
  EXPECT_TRUE(position.permits({3}, 1, 0));
  position.delivered({{3}, {4}});
  EXPECT_FALSE(opened(position, 0, 70));
  EXPECT_TRUE(position.permits({0}, 1, 0)) << "another connection";
  expect_to_begin(position, From::offset({5}), 70);
}

TEST_F(SessionPositionTest, ReportsAnotherLogAndOneThatLostItsEnd) {
  SessionPosition named(of_mode(ConsumeMode::own, "reports"));
  EXPECT_FALSE(opened(named, 5, 70));
  EXPECT_TRUE(opened(named, 5, 71));
  EXPECT_FALSE(opened(named, 5, 71));
  SessionPosition nameless(of_mode(ConsumeMode::own));
  EXPECT_FALSE(opened(nameless, 5, 70));
  EXPECT_TRUE(opened(nameless, 4, 70));
  expect_to_begin(nameless, From::offset({4}), 70);
}

TEST_F(SessionPositionTest, OfANamelessConsumerBeginsAnewInANewLog) {
  SessionPosition position(of_mode(ConsumeMode::own));
  EXPECT_FALSE(position.log_was_replaced()) << "the program named that log";
  EXPECT_FALSE(opened(position, 5, 70));
  EXPECT_TRUE(position.log_was_replaced());
  expect_to_begin(position, From::first(), 0);
  EXPECT_TRUE(opened(position, 0, 71));
  expect_to_begin(position, From::offset({0}), 71);
}

TEST_F(SessionPositionTest, OfANamelessConsumerFollowsASeek) {
  SessionPosition position(of_mode(ConsumeMode::own));
  EXPECT_FALSE(opened(position, 5, 70));
  EXPECT_FALSE(opened(position, 8, 70));  // 3 messages are lost before the next delivery
  position.sought({2});
  expect_to_begin(position, From::offset({2}), 70);
  EXPECT_EQ(position.delivered({{2}, {3}}), 0U) << "a seek skips messages on purpose";
}

TEST(SessionConsumeRequests, KeepTheAnswerToASeek) {
  SessionConsumeRequests requests;
  EXPECT_FALSE(requests.any());
  EXPECT_FALSE(requests.is_seek(0)) << "0 is the number of no request";
  requests.seek(4);
  EXPECT_TRUE(requests.any() && requests.is_seeking() && requests.is_seek(4));
  EXPECT_FALSE(requests.is_seek(5));
  EXPECT_FALSE(requests.closed(4));
  requests.sought(Offset{20});
  EXPECT_FALSE(requests.any());
  const auto sought = requests.take_sought();
  ASSERT_TRUE(sought && sought->ok());
  EXPECT_EQ(**sought, Offset{20});
  EXPECT_FALSE(requests.take_sought());
  requests.sought(Offset{20});
  requests.seek(6);
  EXPECT_FALSE(requests.take_sought()) << "of the seek before";
}

TEST(SessionConsumeRequests, EndWithTheirConnection) {
  SessionConsumeRequests requests;
  requests.seek(4);
  requests.close(5);
  requests.forget();
  EXPECT_FALSE(requests.any());
  EXPECT_FALSE(requests.closed(5));
  EXPECT_FALSE(requests.take_sought());
  requests.close(6);
  EXPECT_TRUE(requests.is_closing());
  EXPECT_FALSE(requests.closed(0));
  EXPECT_TRUE(requests.closed(6));
  EXPECT_FALSE(requests.is_closing());
}

class SessionDeliveriesTest : public ::testing::Test {
 protected:
  /// Returns the result of checking a frame that delivers these messages from the offset `base` on.
  Result<SessionDeliveries::Checked> check(std::uint64_t base, const std::vector<std::string>& payloads,
                                           const Delivery& delivery = {}) {
    frame_ = deliver_frame(1, Offset{base}, payloads, delivery);
    return SessionDeliveries::check(
        {.header = {}, .body = ByteView(frame_).subspan(session::frame_layout::header_bytes)});
  }
  void deliver(SessionDeliveries& deliveries, std::uint64_t base, const std::vector<std::string>& payloads,
               const Delivery& delivery = {}) {
    const auto checked = check(base, payloads, delivery);
    ASSERT_TRUE(checked.ok());
    const auto plain = deliveries.unpack(checked->batch);
    ASSERT_TRUE(plain);
    deliveries.hand_over(*checked, *plain, checked->head.lost, 0);
  }
  static OffsetRange offsets(std::uint64_t begin, std::uint64_t end) { return {{begin}, {end}}; }

  std::vector<std::byte> frame_;
};

TEST_F(SessionDeliveriesTest, ChecksWhatTheBrokerDelivers) {
  const auto sound = check(5, {"ab", "c"}, {.number = 2, .lost = 4});
  ASSERT_TRUE(sound.ok());
  EXPECT_EQ(sound->amount(), (SessionAmount{2, 3}));
  EXPECT_EQ(sound->head.delivery, 2U);
  EXPECT_EQ(sound->head.lost, 4U);
  EXPECT_THAT(check(5, {"a"}, {.number = 0}).error().message, HasSubstr("attempt number 0"));
  frame_.back() ^= std::byte{1};
  const SessionFrame damaged{.header = {},
                             .body = ByteView(frame_).subspan(session::frame_layout::header_bytes)};
  EXPECT_THAT(SessionDeliveries::check(damaged).error().message, HasSubstr("damaged"));
}

TEST_F(SessionDeliveriesTest, GivesCreditBackForSettledMessages) {
  SessionDeliveries deliveries(false);
  deliver(deliveries, 5, {"a", "b", "c"}, {.number = 2, .lost = 4});
  EXPECT_EQ(deliveries.unsettled(), 3U);
  EXPECT_EQ(deliveries.settling().back, SessionAmount());
  EXPECT_EQ(deliveries.settling().acknowledge(offsets(5, 6)), 1U);
  HandOutRanges rejected = deliveries.reject(offsets(0, 7));
  EXPECT_THAT(rejected.take_first(9).ranges, ElementsAre(offsets(6, 7)));
  EXPECT_TRUE(rejected.empty());
  EXPECT_TRUE(deliveries.reject(offsets(0, 7)).empty()) << "they are settled";
  EXPECT_EQ(deliveries.settling().back, (SessionAmount{2, 2}));
  deliveries.forget();
  EXPECT_EQ(deliveries.settling().back, (SessionAmount{3, 3}));
  EXPECT_EQ(deliveries.unsettled(), 0U);
  EXPECT_TRUE(deliveries.batch()) << "the program still uses it";
  EXPECT_TRUE(deliveries.release());
  EXPECT_FALSE(deliveries.release());
  EXPECT_EQ(deliveries.settling().back, (SessionAmount{3, 3}));
  const ConsumerStats stats = deliveries.stats();
  EXPECT_EQ(stats.received, 3U);
  EXPECT_EQ(stats.again, 3U);
  EXPECT_EQ(stats.lost, 4U);
  EXPECT_EQ(stats.acknowledged, 1U);
  EXPECT_EQ(stats.rejected, 1U);
}

TEST_F(SessionDeliveriesTest, GivesCreditBackForReleasedBatchesIfTheBrokerAcknowledges) {
  SessionDeliveries deliveries(true);
  deliver(deliveries, 5, {"ab", "c"});
  EXPECT_EQ(deliveries.unsettled(), 0U);
  EXPECT_EQ(deliveries.settling().back, SessionAmount());
  EXPECT_TRUE(deliveries.release());
  EXPECT_EQ(deliveries.settling().back, (SessionAmount{2, 3}));
}

TEST_F(SessionDeliveriesTest, GivesNoCreditBackOnceTheConnectionHasEnded) {
  for (const bool automatic : {false, true}) {
    SessionDeliveries deliveries(automatic);
    deliver(deliveries, 5, {"a"});
    deliveries.settling().acknowledge(offsets(5, 6));
    deliveries.drop();
    EXPECT_TRUE(deliveries.batch()) << "the program still uses it";
    EXPECT_TRUE(deliveries.release());
    EXPECT_EQ(deliveries.settling().back, SessionAmount());
    EXPECT_TRUE(deliveries.settling().acknowledged.empty());
    EXPECT_EQ(deliveries.settling().acknowledge(offsets(5, 6)), 0U);
  }
}

TEST_F(SessionDeliveriesTest, KeepsABoundedListOfLateAcknowledgements) {
  SessionDeliveries deliveries(false);
  deliveries.were_late({offsets(1, 3), offsets(5, 6)});
  EXPECT_THAT(deliveries.take_late(), ElementsAre(offsets(1, 3), offsets(5, 6)));
  EXPECT_THAT(deliveries.take_late(), IsEmpty());
  for (std::uint64_t at = 0; at < 5000; ++at) deliveries.were_late({offsets(2 * at, 2 * at + 1)});
  EXPECT_EQ(deliveries.take_late().size(), 4096U);
  EXPECT_EQ(deliveries.stats().late, 5003U);
}

}  // namespace
}  // namespace lightq::test
