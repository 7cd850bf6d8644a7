/// Tests of messages that expire in the groups and subscribers of a topic.
#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "delivery/batches/header_content.hpp"
#include "delivery/expiry/expiry_world.hpp"

namespace lightq::broker {
namespace {

using namespace std::chrono_literals;
using test::asked;
using test::ExpiryWorld;
using test::FakeRecordSink;
using test::Member;
using test::TtlMessage;
using Strings = std::vector<std::string>;

void expect_partition(const protocol::GroupStats& stats) {
  EXPECT_EQ(stats.pending,
            stats.ready + stats.in_flight + stats.retrying + stats.parked + stats.dead_waiting);
}

TEST(ExpiryTest, AnExpiredMessageIsNotDelivered) {
  ExpiryWorld world;
  world.publish({{100}, {0}, {5'000}});
  world.pass(100ms);  // exactly: it has expired
  Member member;
  ASSERT_EQ(world.join(member), ClientError::none);
  world.dispatch();
  EXPECT_EQ(member.consumer.take(), Strings({"1", "2"}));
  EXPECT_EQ(world.stats().expired, 1U);
  EXPECT_EQ(world.stats().lost, 0U);
}

TEST(ExpiryTest, AMessageIsDeliveredUntilItExpires) {
  ExpiryWorld world;
  world.publish({{100}});
  world.pass(99ms);
  Member member;
  world.join(member);
  world.dispatch();
  EXPECT_EQ(member.consumer.take(), Strings{"0"});
}

TEST(ExpiryTest, TheSmallerTimeToLiveCounts) {
  ExpiryWorld world(1'000);
  world.publish({{100}, {60'000}, {0}});
  Member member;
  world.join(member);
  member.consumer.is_writable = false;
  world.live(200ms);
  member.consumer.is_writable = true;
  member.member->wake();
  world.dispatch();
  EXPECT_EQ(member.consumer.take(), Strings({"1", "2"}));
  ExpiryWorld other(1'000);
  other.publish({{100}, {60'000}, {0}});
  other.open_group();
  other.live(2s);
  EXPECT_EQ(other.stats().pending, 0U);
  EXPECT_EQ(other.stats().expired, 3U);
}

TEST(ExpiryTest, MessagesExpireWithoutConsumers) {
  ExpiryWorld world;
  world.open_group();
  world.open_group("other");
  world.publish({{300}, {0}, {300}, {300}, {60'000}});
  world.dispatch();
  EXPECT_EQ(world.stats().pending, 5U);
  world.live(1300ms);
  for (const char* const group : {"default", "other"}) {
    const auto stats = world.stats(group);
    EXPECT_EQ(stats.expired, 3U) << group;
    EXPECT_EQ(stats.pending, 2U) << group;
    EXPECT_EQ(stats.ready, 2U) << group;
    EXPECT_EQ(stats.next_offset, 1U) << group;  // behind the first expired one
    expect_partition(stats);
  }
  EXPECT_EQ(world.log.first_offset(), Offset{0});  // the batch has a message that waits
}

TEST(ExpiryTest, ARingFullOfExpiredMessagesTakesNewOnes) {
  ExpiryWorld world(0, 64 * limits::KiB);
  world.open_group();
  while (world.publish(16, 500) == PublishOutcome::accepted) {
  }
  EXPECT_EQ(world.publish(16, 500), PublishOutcome::held);
  world.live(1500ms);
  EXPECT_EQ(world.stats().pending, 0U);
  EXPECT_EQ(world.publish(16, 500), PublishOutcome::accepted);
}

TEST(ExpiryTest, ATopicsTimeToLiveFreesTheRing) {
  ExpiryWorld world(500, 64 * limits::KiB);
  world.open_group();
  while (world.publish(16) == PublishOutcome::accepted) {
  }
  world.live(1500ms);
  EXPECT_EQ(world.log.stored_bytes(), 0U);
  EXPECT_EQ(world.publish(16), PublishOutcome::accepted);
}

TEST(ExpiryTest, AShortTimeBehindManyLongOnes) {
  ExpiryWorld world(0, 256 * limits::MiB);
  world.open_group();
  for (int batch = 0; batch < 200; ++batch) world.publish(5'000, 3'600'000);
  world.publish({{200}});
  world.dispatch();
  world.live(1200ms);
  EXPECT_EQ(world.stats().expired, 1U);
  EXPECT_EQ(world.stats().pending, 1'000'000U);
  EXPECT_TRUE(world.topic->expiry().index()->expired().contains(Offset{1'000'000}));
}

TEST(ExpiryTest, ALongTimeBeforeManyShortOnes) {
  ExpiryWorld world(0, 256 * limits::MiB);
  world.open_group();
  world.publish({{3'600'000}});
  for (int batch = 0; batch < 200; ++batch) world.publish(5'000, 200);
  world.dispatch();
  world.live(1200ms);
  EXPECT_EQ(world.stats().expired, 1'000'000U);
  EXPECT_EQ(world.stats().pending, 1U);
  Member member;
  world.join(member);
  world.dispatch();
  EXPECT_EQ(member.consumer.take(), Strings{"0"});
  EXPECT_EQ(world.stats().next_offset, 1'000'001U);
}

TEST(ExpiryTest, AMessageInFlightStaysWithItsMember) {
  ExpiryWorld world;
  world.publish({{200}, {200}, {200}, {0}});
  Member member;
  world.join(member);
  world.dispatch();
  world.live(2s);
  EXPECT_EQ(world.stats().in_flight, 4U);
  EXPECT_EQ(world.stats().expired, 0U);
  member.group->acknowledge(*member.member, {std::nullopt, {{Offset{0}, Offset{1}}}});
  member.group->reject(*member.member, {0, {{Offset{1}, Offset{2}}}}, world.now);
  Rejection release{0, {{Offset{2}, Offset{4}}}};
  release.kind = RejectKind::release;
  member.group->reject(*member.member, release, world.now);
  member.consumer.take();
  world.dispatch();
  EXPECT_EQ(member.consumer.take(), Strings{"3"});
  EXPECT_EQ(world.stats().acknowledged, 1U);
  EXPECT_EQ(world.stats().expired, 2U);
  EXPECT_EQ(world.stats().failed, 1U);
  expect_partition(world.stats());
}

TEST(ExpiryTest, MessagesThatWaitForARetryExpire) {
  ExpiryWorld world;
  world.publish({{2'000}, {2'000}, {0}});
  Member member;
  world.join(member);
  world.dispatch();
  member.group->reject(*member.member, {60'000, {{Offset{0}, Offset{2}}}}, world.now);
  EXPECT_EQ(world.stats().retrying, 2U);
  world.live(3s);
  EXPECT_EQ(world.stats().retrying, 0U);
  EXPECT_EQ(world.stats().expired, 2U);
  EXPECT_EQ(world.stats().pending, 1U);
  EXPECT_EQ(world.stats().committed_offset, 2U);
}

TEST(ExpiryTest, ManyScatteredMessagesThatWaitExpireInPieces) {
  ExpiryWorld world(0, 64 * limits::MiB);
  Member member;
  auto open = asked();
  open.ack_timeout_ms = 3'600'000;
  world.join(member, open);
  for (int batch = 0; batch < 16; ++batch) {
    world.publish(1'000, 5'000);
    world.dispatch();
    const std::uint64_t first = static_cast<std::uint64_t>(batch) * 1'000;
    Rejection rejection{static_cast<std::uint32_t>(10'000 * (1 + batch)), {}};
    for (std::uint64_t at = first; at < first + 1'000; at += 2) rejection.ranges.push_back({{at}, {at + 1}});
    member.group->reject(*member.member, rejection, world.now);
  }
  EXPECT_EQ(world.stats().retrying, 8'000U);
  world.pass(6s);
  std::uint64_t most = 0;
  std::uint64_t dispatches = 0;
  for (bool more = true; more; ++dispatches) {
    const std::uint64_t before = TurnWork::bytes();
    more = world.topic->dispatch({.now = world.now, .wall = world.wall}).more;
    most = std::max(most, TurnWork::bytes() - before);
  }
  EXPECT_GT(dispatches, 10U);
  EXPECT_LT(most, 4 * limits::MiB) << "about a millisecond's work";
  EXPECT_EQ(world.stats().retrying, 0U);
  EXPECT_EQ(world.stats().expired, 8'000U);
  EXPECT_EQ(world.stats().in_flight, 8'000U);
}

TEST(ExpiryTest, MessagesThatWaitForAnotherMemberExpireAtTheMomentOfDelivery) {
  ExpiryWorld world;
  world.publish({{200}, {0}});
  Member member;
  world.join(member);
  world.dispatch();
  world.leave(member);
  world.pass(200ms);  // no dispatch in between
  Member next;
  world.join(next);
  world.topic->dispatch({.now = world.now, .wall = world.wall});
  world.dispatch();
  EXPECT_EQ(next.consumer.take().size(), 1U);
  EXPECT_EQ(world.stats().expired, 1U);
}

TEST(ExpiryTest, PlainPullersAndSubscribersReceiveNoExpiredMessages) {
  ExpiryWorld world;
  FakeRecordSink sink{1'000, true};
  FakeRecordSink reads{1'000, true};
  auto& subscriber = world.topic->subscribers().add(Offset{0});
  world.publish({{100}, {0}, {100}, {5'000}});
  world.pass(150ms);
  world.topic->attach_puller(sink);
  world.topic->subscribers().attach(subscriber, reads);
  world.dispatch();
  EXPECT_EQ(sink.taken, Strings({"1", "3"}));
  EXPECT_EQ(reads.taken, Strings({"1", "3"}));
  EXPECT_EQ(world.topic->subscribers().stats(subscriber).expired, 2U);
  EXPECT_EQ(world.topic->subscribers().stats(subscriber).lag, 0U);
  EXPECT_EQ(world.topic->subscribers().stats(subscriber).lost, 0U);
  world.topic->detach_puller(sink);
}

TEST(ExpiryTest, ASubscriberWithoutAConsumerPassesExpiredMessages) {
  ExpiryWorld world;
  auto& subscriber = world.topic->subscribers().add(Offset{0});
  world.publish({{100}, {100}, {0}, {100}});
  world.live(1200ms);
  const auto stats = world.topic->subscribers().stats(subscriber);
  EXPECT_EQ(stats.next_offset, 2U);
  EXPECT_EQ(stats.lag, 1U);
  EXPECT_EQ(stats.expired, 3U);
}

TEST(ExpiryTest, CompressedBatchesAreDeliveredWithoutTheirExpiredMessages) {
  ExpiryWorld world;
  std::vector<TtlMessage> messages(100, TtlMessage{60'000});
  for (std::size_t i = 10; i < 20; ++i) messages[i].ttl_ms = 100;
  world.publish(messages, Codec::lz4);
  world.pass(120ms);
  Member member;
  world.join(member);
  world.dispatch();
  const Strings taken = member.consumer.take();
  EXPECT_EQ(taken.size(), 90U);
  EXPECT_EQ(world.stats().expired, 10U);
}

TEST(ExpiryTest, ALetterDoesNotExpireByItsOwnHeader) {
  ExpiryWorld world;
  world.publish({{100, true}, {100, false}});
  world.open_group();
  world.live(2s);
  EXPECT_EQ(world.stats().expired, 1U);
  EXPECT_EQ(world.stats().pending, 1U);
  world.topic->expiry().set_ttl(1'000);
  world.live(2s);
  EXPECT_EQ(world.stats().pending, 0U);
}

TEST(ExpiryTest, AChangeOfTheTopicsTimeActsOnAllThatIsStored) {
  ExpiryWorld world;
  world.open_group();
  for (int batch = 0; batch < 1'000; ++batch) {
    world.publish(3);
    world.pass(10ms);
  }
  world.dispatch();
  EXPECT_EQ(world.topic->expiry().index(), nullptr);
  world.topic->expiry().set_ttl(5'000);
  world.live(1ms);
  EXPECT_NEAR(static_cast<double>(world.stats().expired), 1500, 6);
  world.topic->expiry().set_ttl(60'000);
  world.live(3s);
  EXPECT_NEAR(static_cast<double>(world.stats().expired), 1500, 6);
  world.topic->expiry().set_ttl(0);
  world.live(60s);
  EXPECT_NEAR(static_cast<double>(world.stats().expired), 1500, 6);
  expect_partition(world.stats());
}

TEST(ExpiryTest, ATopicsTimeActsInPiecesOnTheMessagesBetweenExpiredOnes) {
  ExpiryWorld world(0, 64 * limits::MiB);
  world.open_group();
  std::vector<TtlMessage> messages(1'000);
  for (std::size_t i = 0; i < messages.size(); i += 2) messages[i].ttl_ms = 100;
  messages.back().ttl_ms = 3'600'000;
  for (int batch = 0; batch < 40; ++batch) world.publish(messages);
  world.live(2s);
  EXPECT_EQ(world.stats().expired, 20'000U);
  world.topic->change({.message_ttl_ms = 1'000});
  std::uint64_t most = 0;
  std::uint64_t dispatches = 0;
  for (bool more = true; more; ++dispatches) {
    const std::uint64_t before = TurnWork::bytes();
    more = world.topic->dispatch({.now = world.now, .wall = world.wall}).more;
    most = std::max(most, TurnWork::bytes() - before);
  }
  EXPECT_GT(dispatches, 10U);
  EXPECT_LT(most, 1 * limits::MiB) << "about a quarter of a millisecond's work";
  EXPECT_EQ(world.stats().expired, 40'000U);
  EXPECT_EQ(world.stats().pending, 0U);
}

TEST(ExpiryTest, MessagesThatExpiredStaySoWhenTheClockGoesBack) {
  ExpiryWorld world;
  world.open_group();
  world.publish({{1'000}, {0}});
  world.wall.us += 3'600'000'000;
  world.live(500ms);
  EXPECT_EQ(world.stats().expired, 1U);
  world.wall.us -= 3'600'000'000;
  Member member;
  world.join(member);
  world.dispatch();
  EXPECT_EQ(member.consumer.take(), Strings{"1"});
}

TEST(ExpiryTest, AStartComputesAnewWhatHasExpired) {
  ExpiryWorld world(1'000);
  world.publish(1);
  world.live(2s);
  world.settings.message_ttl_ms = 3'600'000;
  world.topic->change({.message_ttl_ms = 3'600'000});
  world.live(1s);
  EXPECT_TRUE(world.topic->expiry().index()->expired().contains(Offset{0}));
  world.restart();
  world.open_group();
  world.live(1s);
  EXPECT_EQ(world.stats().pending, 1U);
  EXPECT_EQ(world.stats().expired, 0U);
}

TEST(ExpiryTest, AForwardStepOfTheClockIsNoticedWithinASecond) {
  ExpiryWorld world;
  world.open_group();
  world.publish(10, 86'400'000);
  world.live(10s);
  EXPECT_EQ(world.stats().pending, 10U);
  world.wall.us += 86'400'000'000;
  world.live(1s);
  EXPECT_EQ(world.stats().pending, 0U);
}

TEST(ExpiryTest, AfterARestartMessagesExpireAsBefore) {
  ExpiryWorld world;
  world.open_group();
  world.publish(100, 2'000);
  world.publish(100, 200);
  world.publish(100, 7'200'000);
  world.live(1300ms);
  EXPECT_EQ(world.stats().expired, 100U);
  world.restart();
  world.live(100ms);
  EXPECT_EQ(world.stats().pending, 200U);
  world.live(2s);
  EXPECT_EQ(world.stats().pending, 100U);
  world.live(2h);
  EXPECT_EQ(world.stats().pending, 0U);
}

TEST(ExpiryTest, AMessageThatWasDroppedNeedNotBeFoundByTheNextStart) {
  ExpiryWorld world(5'000);
  Member member;
  auto open = asked();
  open.ack_timeout_ms = 3'600'000;
  world.join(member, open);
  world.publish({{4'900}});
  world.publish(1);
  world.dispatch();
  ASSERT_EQ(world.stats().in_flight, 2U);
  EXPECT_EQ(world.topic->expiry().index()->first_noted(), Offset{0});
  member.consumer.is_writable = false;
  world.publish(1);
  world.live(6s);
  member.group->acknowledge(*member.member, {std::nullopt, {{Offset{0}, Offset{1}}}});
  world.dispatch();
  EXPECT_EQ(world.log.first_offset(), Offset{1});
  EXPECT_TRUE(world.topic->expiry().index()->expired().contains(Offset{2}));
  EXPECT_EQ(world.topic->expiry().index()->first_noted(), std::nullopt);
}

TEST(ExpiryTest, TheNextStartReadsFromTheFirstStoredMessageWithATimeOfItsOwn) {
  ExpiryWorld world;
  world.open_group();
  world.publish(1, 200);
  world.publish(1, 60'000);
  world.publish(1, 200);
  world.live(2s);
  EXPECT_EQ(world.log.first_offset(), Offset{1});
  EXPECT_EQ(world.topic->expiry().index()->first_noted(), Offset{1});
}

TEST(ExpiryTest, ASeekCountsNoMessageTwice) {
  ExpiryWorld world;
  ConsumerGroup& group = world.open_group();
  world.publish({{100}, {0}, {100}, {0}});
  world.live(1200ms);
  EXPECT_EQ(world.stats().expired, 2U);
  group.seek(Offset{4});
  EXPECT_EQ(world.stats().expired, 2U);
  group.seek(Offset{0});
  world.live(100ms);
  EXPECT_EQ(world.stats().expired, 2U);
  EXPECT_EQ(world.stats().pending, 2U);
}

TEST(ExpiryTest, DroppedMessagesThatHadExpiredAreNotLost) {
  ExpiryWorld world(0, 16 * limits::KiB, protocol::Overflow::drop_oldest);
  world.open_group();
  world.publish({{0}, {100}, {100}, {100}});
  world.live(1200ms);
  for (int batch = 0; batch < 1'000; ++batch) world.publish(10, 600'000);
  world.dispatch();
  const auto stats = world.stats();
  EXPECT_EQ(stats.expired, 3U);
  EXPECT_EQ(stats.lost + stats.pending, 10'001U);
  EXPECT_EQ(world.topic->stats(world.wall).dropped, stats.lost);
}

TEST(ExpiryTest, AReadShowsExpiredMessagesInSlicesOfTheirOwn) {
  struct Turn {
    static bool has_budget() { return true; }
    static bool can_take() { return true; }
    static SliceLimits limits() { return {}; }
    void take(SliceSource& source, DeliveredSlice& delivered) {
      slices.emplace_back(delivered.slice.range(), delivered.expired);
      source.taken(delivered.slice.count, delivered.slice.records.size());
    }
    std::vector<std::pair<OffsetRange, bool>> slices;
  };
  ExpiryWorld world;
  world.publish({{0}, {100}, {100}, {0}, {100}});
  world.pass(100ms);
  Turn turn;
  RecordReader reader{Offset{0}};
  world.topic->answer_at_once();
  world.topic->read(reader, turn, {.now = world.now, .wall = world.wall});
  const std::vector<std::pair<OffsetRange, bool>> expected = {{{Offset{0}, Offset{1}}, false},
                                                              {{Offset{1}, Offset{3}}, true},
                                                              {{Offset{3}, Offset{4}}, false},
                                                              {{Offset{4}, Offset{5}}, true}};
  EXPECT_EQ(turn.slices, expected);
}

/// Returns the content of a batch of messages that have headers of this name with these values.
HeaderContent content_of(const std::vector<std::string>& values, std::string_view name = "lightq-ttl-ms") {
  BatchBuilder batch;
  for (const std::string& value : values) {
    const Header header{name, value};
    batch.add(as_byte_view("m"), Attributes{.headers = {&header, 1}});
  }
  return header_content(BatchView::trusted(batch.finish().data()));
}

TEST(HeaderContentTest, TellsTheTimeToLiveThatAllMessagesHave) {
  EXPECT_EQ(content_of({"5", "5", "5"}).uniform_ttl_ms, 5);
  EXPECT_EQ(content_of({"5", "6", "5"}).uniform_ttl_ms, 0);
  EXPECT_TRUE(content_of({"5", "6"}).has_ttl);
  EXPECT_FALSE(content_of({"5"}, "another").has_ttl);
  EXPECT_EQ(content_of({"5"}, "lightq-dead-x").uniform_ttl_ms, 0);
  for (const auto& values :
       std::vector<std::vector<std::string>>{{""}, {"5", ""}, {"", "5"}, {"5", "x", "5"}}) {
    EXPECT_TRUE(content_of(values).has_invalid_ttl);
    EXPECT_EQ(content_of(values).uniform_ttl_ms, 0);
  }
  BatchBuilder some;
  const Header header{"lightq-ttl-ms", "5"};
  some.add(as_byte_view("m"), Attributes{.headers = {&header, 1}});
  some.add(as_byte_view("m"), Attributes{}, AttributeKinds(AttributeKinds::headers));
  const HeaderContent content = header_content(BatchView::trusted(some.finish().data()));
  EXPECT_TRUE(content.has_ttl);
  EXPECT_EQ(content.uniform_ttl_ms, 0);
}

}  // namespace
}  // namespace lightq::broker
