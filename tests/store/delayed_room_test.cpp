/// Tests of topics in memory that share their capacity with delayed messages.
#include "delivery/delayed_room.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "delivery/consumer_group_harness.hpp"
#include "log/carried/carried_memory.hpp"
#include "store/memory_store.hpp"
#include "support/batches.hpp"

namespace lightq::broker {
namespace {

using protocol::Overflow;

constexpr std::uint64_t shared_bytes = 1 * limits::MiB;
constexpr Timestamp shared_time{1'000'000};

/// A topic in a ring that shares its capacity with a schedule.
class SharedRing {
 public:
  explicit SharedRing(Overflow overflow)
      : store(std::make_unique<log::RingLog>(log::RingLogOptions{.capacity_bytes = shared_bytes}),
              std::make_unique<log::CarriedMemory>(shared_bytes / 10)),
        topic({TopicId{1}, *TopicName::parse("t"), {.ring_bytes = shared_bytes, .overflow = overflow}}, store,
              shared_time) {}

  /// Lets a group hold all messages.
  void hold_all() {
    const auto asked = test::asked("group");
    const auto opened = topic.groups().open(asked, lives);
    ASSERT_EQ(opened.refusal, ClientError::none);
  }
  PublishOutcome publish(std::size_t payload_bytes) {
    const std::string payload(payload_bytes, 's');
    BatchBuilder batch;
    batch.add(as_byte_view(payload));
    return topic.publish(batch, shared_time);
  }
  /// Publishes messages of 1,000 bytes until about `bytes` are stored.
  void fill(std::uint64_t bytes) {
    while (store.stored_bytes() < bytes) ASSERT_EQ(publish(1000), PublishOutcome::accepted);
  }

  const LogLives lives{77};
  MemoryStore store;
  Topic topic;
};

// A batch of a session is checked in the ring's memory before it is published.
TEST(DelayedRoom, ABatchInTheRingSurvivesDropsForTheSchedule) {
  SharedRing ring(Overflow::drop_oldest);
  ring.fill(10'000);
  const auto batch = test::make_batch({std::string(64'000, '\xff')});
  const auto place = ring.topic.place_for_next(batch.size());
  ASSERT_FALSE(place.empty());
  std::copy(batch.begin(), batch.end(), place.begin());
  DelayedRoom(ring.topic).set_bytes(shared_bytes - 70'000);
  EXPECT_TRUE(ring.topic.place_for_next(batch.size()).empty()) << "messages would have to go first";
  const Offset next = ring.topic.log().next_offset();
  ASSERT_EQ(ring.topic.publish(OfferedBatch{place, 1, 64'000}, shared_time), PublishOutcome::accepted);
  EXPECT_EQ(ring.topic.log().next_offset(), next + 1);
  log::ReadPosition at{next};
  const auto read = ring.store.read(at);
  ASSERT_EQ(read.outcome, log::ReadOutcome::batch);
  EXPECT_EQ(BatchView::check(read.batch.bytes()), std::nullopt);
}

TEST(DelayedRoom, AMessageDropsNoMoreThanItNeeds) {
  for (const Overflow overflow : {Overflow::drop_oldest, Overflow::block}) {
    SharedRing ring(overflow);
    ring.fill(550'000);
    const std::uint64_t stored = ring.store.stored_bytes();
    DelayedRoom(ring.topic).set_bytes(shared_bytes - stored);
    ASSERT_EQ(ring.publish(100), PublishOutcome::accepted);
    EXPECT_EQ(ring.store.first_offset(), Offset{1});
  }
}

TEST(DelayedRoom, NothingIsDroppedForAMessageThatHasNoRoom) {
  SharedRing ring(Overflow::drop_oldest);
  ring.hold_all();
  ring.fill(10'000);
  DelayedRoom(ring.topic).set_bytes(shared_bytes - 12'000);
  EXPECT_EQ(ring.publish(20'000), PublishOutcome::held);
  EXPECT_EQ(ring.store.first_offset(), Offset{0});
  EXPECT_EQ(ring.topic.blocked_by(), "");
  ring.topic.set_producers_held(true);
  EXPECT_EQ(ring.topic.blocked_by(), "delayed");
  ring.topic.set_producers_held(false);
  DelayedRoom(ring.topic).set_held(true);
  EXPECT_EQ(ring.topic.blocked_by(), "delayed") << "producers of delayed messages wait, too";
  DelayedRoom(ring.topic).set_held(false);
  DelayedRoom(ring.topic).set_bytes(0);
  EXPECT_EQ(ring.publish(20'000), PublishOutcome::accepted);
}

// Messages that become due need no more capacity than they had.
TEST(DelayedRoom, MovedMessagesTakeTheirOwnRoom) {
  SharedRing ring(Overflow::block);
  ring.hold_all();
  ring.fill(500'000);
  const std::uint64_t left = shared_bytes - ring.store.stored_bytes();
  ASSERT_EQ(DelayedRoom(ring.topic).make(left, 1), PublishOutcome::accepted);
  DelayedRoom(ring.topic).set_bytes(left);
  ASSERT_EQ(DelayedRoom(ring.topic).make(1, 1), PublishOutcome::held);
  EXPECT_EQ(ring.publish(1000), PublishOutcome::held);
  ring.topic.set_producers_held(true);
  EXPECT_EQ(ring.topic.blocked_by(), "group:group");
  const std::uint64_t moved = batch_layout::header_bytes + record_bytes(1000);
  DelayedRoom(ring.topic).set_bytes(left - moved);
  EXPECT_EQ(ring.publish(1000), PublishOutcome::accepted);
  EXPECT_EQ(ring.store.first_offset(), Offset{0});
}

}  // namespace
}  // namespace lightq::broker
