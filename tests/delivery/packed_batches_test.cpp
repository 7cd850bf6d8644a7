/// Tests of compressed batches and messages with attributes on their way to consumers of every kind.
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "admission/turn_work.hpp"
#include "delivery/consumer_group_harness.hpp"
#include "support/no_memory.hpp"

namespace lightq::broker {
namespace {

using Strings = std::vector<std::string>;
using test::asked;
using test::FakeRecordSink;
using test::GroupWorld;
using test::Member;

struct Kind {
  Codec codec;
  bool with_key;
};

class PackedBatches : public testing::TestWithParam<Kind>, public GroupWorld {
 protected:
  static constexpr int messages = 100;
  PackedBatches() {
    codec = GetParam().codec;
    if (GetParam().with_key) attributes.key = key;
  }
  static Strings numbers(int from, int to) {
    Strings all;
    for (int i = from; i < to; ++i) all.push_back("the message with the number " + std::to_string(i));
    return all;
  }
  void publish_all() { ASSERT_EQ(publish(numbers(0, messages)), PublishOutcome::accepted); }
  /// Returns the bytes of messages [from, to) as the broker counts them.
  [[nodiscard]] static std::uint64_t bytes_of(int from, int to) {
    std::uint64_t bytes = 0;
    for (const auto& payload : numbers(from, to))
      bytes += payload.size() + (GetParam().with_key ? sizeof(std::uint16_t) + key.size() : 0);
    return bytes;
  }

  static constexpr std::string_view key = "tea";
};
INSTANTIATE_TEST_SUITE_P(, PackedBatches,
                         testing::Values(Kind{Codec::none, false}, Kind{Codec::none, true},
                                         Kind{Codec::lz4, false}, Kind{Codec::lz4, true},
                                         Kind{Codec::zstd, true}),
                         [](const auto& test) {
                           return std::string(to_word(test.param.codec)) +
                                  (test.param.with_key ? "_with_keys" : "");
                         });

TEST_P(PackedBatches, ArriveWholeIfAllRecordsAreWanted) {
  Member member;
  join(member, asked());
  publish_all();
  dispatch();
  ASSERT_EQ(member.consumer.frames.size(), 1U);
  EXPECT_TRUE(member.consumer.frames[0].whole);
  EXPECT_EQ(member.consumer.packed, GetParam().codec == Codec::none ? 0 : 1);
  EXPECT_EQ(member.consumer.message_bytes, bytes_of(0, messages));
  EXPECT_EQ(member.consumer.payloads(), numbers(0, messages));
  EXPECT_EQ(topic.stats(wall).total_bytes_written, bytes_of(0, messages));
}

TEST_P(PackedBatches, ComeInPartsAsCreditOfMessagesGoes) {
  Member member;
  auto open = asked();
  open.credit.messages = 7;
  join(member, open);
  publish_all();
  for (int sent = 7; sent < messages; sent += 7) {
    dispatch();
    ASSERT_EQ(member.consumer.payloads(), numbers(0, sent));
    ASSERT_TRUE(member.member->add_credit({7, 0}));
  }
  dispatch();
  EXPECT_EQ(member.consumer.payloads(), numbers(0, messages));
  EXPECT_EQ(member.consumer.packed, 0);
  EXPECT_EQ(member.consumer.message_bytes, bytes_of(0, messages));
  EXPECT_TRUE(member.consumer.ends_with_its_bytes);
}

TEST(PackedBatchesOfManyGroups, AreUnpackedABoundedAmountAPumpAndEveryGroupGetsItsTurn) {
  constexpr int groups = 12;
  constexpr std::size_t each = 100'000;
  GroupWorld world(protocol::BrokerType::queue, protocol::Overflow::block, 16 * limits::MiB);
  world.topic.answer_at_once();
  world.codec = Codec::lz4;
  std::vector<std::unique_ptr<Member>> members;
  for (int i = 0; i < groups; ++i) {
    // Each group starts at another batch and takes one of its messages. The other messages keep the batch
    // from being delivered whole.
    const std::uint64_t at = world.topic.log().next_offset().value;
    world.publish({std::string(each, 'a'), std::string(each, 'b'), std::string(9 * each, 'c')});
    auto open = asked("g" + std::to_string(i), GroupMode::own);
    open.start = {StartPosition::From::offset, at};
    open.credit.messages = 0;
    members.push_back(std::make_unique<Member>());
    ASSERT_EQ(world.join(*members.back(), open), ClientError::none);
  }
  for (const auto& member : members) ASSERT_TRUE(member->member->add_credit({1, 0}));
  int dispatches = 0;
  for (bool more = true; more; ++dispatches) {
    const std::uint64_t before = TurnWork::bytes();
    more = world.topic.dispatch({.now = world.now}).more;
    EXPECT_LE(TurnWork::bytes() - before, 3 * limits::MiB) << "of about 13 MB";
  }
  EXPECT_GT(dispatches, 4);
  for (const auto& member : members) EXPECT_EQ(member->consumer.payloads().size(), 1U);
}

/// Requires: runs in a new thread, which has no buffer for unpacking yet.
void wait_for_memory_and_lose_nothing(Codec codec, const Strings& payloads) {
  GroupWorld world(protocol::BrokerType::queue, protocol::Overflow::block, 16 * limits::MiB);
  world.codec = codec;
  world.publish(payloads);
  Member member;
  auto open = asked();
  open.credit.messages = 1;  // the batch must be cut
  ASSERT_EQ(world.join(member, open), ClientError::none);
  {
    const test::NoMemory none;
    EXPECT_NO_THROW(world.dispatch());
  }
  EXPECT_TRUE(member.consumer.frames.empty());
  ASSERT_NE(world.topic.unavailable(), nullptr);
  EXPECT_EQ(world.topic.unavailable()->code, ErrorCode::limit_reached);
  world.pass(std::chrono::seconds(1));
  world.dispatch();
  EXPECT_EQ(member.consumer.payloads(), Strings{payloads[0]});
  EXPECT_EQ(world.stats().lost, 0U);
  EXPECT_EQ(world.topic.unavailable(), nullptr);
}

TEST(PackedBatchesWithoutMemory, WaitForItAndLoseNothing) {
  if (!test::NoMemory::is_possible) GTEST_SKIP() << "sanitizers need address space without end";
  constexpr std::size_t long_each = 1'700'000;
  const Strings long_ones = {std::string(long_each, 'a'), std::string(long_each, 'b')};
  std::jthread([&] { wait_for_memory_and_lose_nothing(Codec::lz4, long_ones); }).join();
  // With Zstandard, the library's own context finds no memory.
  const Strings short_ones = {std::string(5'000, 'a'), std::string(5'000, 'b')};
  std::jthread([&] { wait_for_memory_and_lose_nothing(Codec::zstd, short_ones); }).join();
}

TEST_P(PackedBatches, ComeInPartsAsCreditOfBytesGoes) {
  for (const std::uint64_t credit :
       {std::uint64_t{1}, bytes_of(0, 10), bytes_of(0, 10) + 1, bytes_of(0, 99)}) {
    GroupWorld world;
    world.codec = codec;
    world.attributes = attributes;
    Member member;
    auto open = asked();
    open.credit.bytes = credit;
    world.join(member, open);
    world.publish(numbers(0, messages));
    world.dispatch();
    int expected = 0;
    while (bytes_of(0, expected) < credit) ++expected;
    EXPECT_EQ(member.consumer.payloads(), numbers(0, expected)) << credit;
  }
}

TEST_P(PackedBatches, ComeFromTheirMiddleOn) {
  publish_all();
  for (const int from : {0, 1, 50, 99}) {
    Member member;
    auto open = asked("from_" + std::to_string(from), GroupMode::own);
    open.start = {StartPosition::From::offset, static_cast<std::uint64_t>(from)};
    ASSERT_EQ(join(member, open), ClientError::none);
    dispatch();
    EXPECT_EQ(member.consumer.payloads(), numbers(from, messages));
    leave(member);
  }
}

TEST_P(PackedBatches, GoToPlainConsumersAsPayloads) {
  FakeRecordSink puller(30), subscriber;
  Subscriber& cursor = topic.subscribers().add(std::nullopt);
  topic.open_group();
  topic.attach_puller(puller);
  topic.subscribers().attach(cursor, subscriber);
  publish_all();
  dispatch();
  EXPECT_EQ(puller.taken, numbers(0, 30));
  puller.give_room(1000);
  dispatch();
  EXPECT_EQ(puller.taken, numbers(0, messages));
  EXPECT_EQ(subscriber.taken, numbers(0, messages)) << "from its join on";
  topic.detach_puller(puller);
  topic.subscribers().detach(cursor);
}

TEST_P(PackedBatches, GoToAPlainConsumerAfterARequeue) {
  topic.open_group();
  Member member;
  join(member, asked());
  publish_all();
  dispatch();
  acknowledge(member, {{Offset{3}, Offset{97}}});
  leave(member);
  FakeRecordSink puller;
  topic.attach_puller(puller);
  dispatch();
  Strings expected = numbers(0, 3);
  for (const auto& last : numbers(97, messages)) expected.push_back(last);
  EXPECT_EQ(puller.taken, expected);
  topic.detach_puller(puller);
}

TEST_P(PackedBatches, ArriveUnpackedAtClientsThatCannotReadThem) {
  const Codec other = GetParam().codec == Codec::lz4 ? Codec::zstd : Codec::lz4;
  for (const CodecSet reads : {CodecSet(), CodecSet(1U << static_cast<unsigned>(other))}) {
    GroupWorld world;
    world.codec = codec;
    world.attributes = attributes;
    Member member;
    member.consumer.reads = reads;
    world.join(member, asked());
    world.publish(numbers(0, messages));
    world.dispatch();
    ASSERT_EQ(member.consumer.frames.size(), 1U);
    EXPECT_EQ(member.consumer.frames[0].whole, codec == Codec::none);
    EXPECT_EQ(member.consumer.packed, 0);
    EXPECT_EQ(member.consumer.payloads(), numbers(0, messages));
  }
}

/// A batch with valid checksums, but with records that do not decompress. Only a manipulated file has such a
/// batch.
class UnreadableBatch : public testing::Test, public GroupWorld {
 protected:
  void publish_unreadable() {
    BatchBuilder batch;
    for (int i = 0; i < 3; ++i) batch.add(as_byte_view(std::string(100, 'x')));
    batch.replace_records(Codec::lz4, as_byte_view("no compressed records"));
    ASSERT_EQ(topic.publish(batch, wall), PublishOutcome::accepted);
  }
};

TEST_F(UnreadableBatch, IsTakenForDamageByEachConsumerThatCannotHaveItAsItIs) {
  FakeRecordSink puller, subscriber;
  Subscriber& cursor = topic.subscribers().add(std::nullopt);
  topic.open_group();
  topic.attach_puller(puller);
  topic.subscribers().attach(cursor, subscriber);
  Member member;
  member.consumer.reads = {};
  join(member, asked("other"));
  publish({"before"});
  publish_unreadable();
  publish({"behind"});
  dispatch();
  const Strings expected = {"before", "behind"};
  EXPECT_EQ(puller.taken, expected);
  EXPECT_EQ(subscriber.taken, expected);
  EXPECT_EQ(member.consumer.payloads(), expected);
  EXPECT_EQ(member.consumer.frames.back().lost, 3U);
  EXPECT_EQ(cursor.lost(), 3U);
  EXPECT_EQ(topic.stats(wall).corrupt, 3U) << "once, whoever comes to it";
  topic.detach_puller(puller);
  topic.subscribers().detach(cursor);
}

TEST_F(UnreadableBatch, ARequeuedBatchIsTakenForDamageToo) {
  topic.open_group();
  Member member;
  join(member, asked());
  publish_unreadable();
  publish({"behind"});
  dispatch();
  EXPECT_EQ(member.consumer.frames.size(), 2U) << "a consumer that reads such batches receives it unchanged";
  leave(member);
  FakeRecordSink puller;
  topic.attach_puller(puller);
  dispatch();
  EXPECT_EQ(puller.taken, Strings{"behind"});
  EXPECT_EQ(topic.stats(wall).corrupt, 3U);
  topic.detach_puller(puller);
}

}  // namespace
}  // namespace lightq::broker
