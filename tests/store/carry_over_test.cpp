/// Tests of topics in memory that carry waiting messages over: a ring is not blocked by messages that wait.
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "store/carry_over_world.hpp"
#include "support/batches.hpp"
#include "support/random.hpp"

namespace lightq::broker {
namespace {

using std::chrono::milliseconds;
using test::Random;

// The bar: 1,000 messages wait, half of them parked, and 50 times the ring's bytes pass.
TEST(CarryOver, ARingIsNeverBlockedByMessagesThatWait) {
  CarryOverWorld world(protocol::Overflow::block, 400'000);
  Member member;
  world.join(member);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(world.publish(std::to_string(i)), PublishOutcome::accepted);
  world.dispatch();
  world.kill(member, {{0}, {500}});
  world.reject(member, {{500}, {1000}}, 3'600'000);
  world.stream(member, 50);
  const auto stats = world.stats();
  EXPECT_GT(stats.first_offset, 49 * ring_bytes / 1100);
  EXPECT_EQ(stats.groups.at(0).parked, 500U);
  EXPECT_EQ(stats.groups.at(0).retrying, 500U);
  EXPECT_EQ(stats.groups.at(0).lost, 0U);
  EXPECT_EQ(stats.groups.at(0).committed_offset, 0U);
  EXPECT_EQ(stats.carried_messages, 1000U);
  EXPECT_LE(stats.carried_bytes, 400'000U);
  EXPECT_EQ(stats.log_bytes, world.store.stored_bytes() + stats.carried_bytes);

  // They are delivered as they were.
  for (std::optional<Offset> from = Offset{0}; from;) from = member.group->dead().retry({}, *from).next;
  world.now += std::chrono::hours(2);
  world.dispatch();
  const auto payloads = member.consumer.payloads();
  ASSERT_EQ(payloads.size(), 1000U);
  for (std::size_t i = 0; i < payloads.size(); ++i) EXPECT_EQ(payloads[i], std::to_string(i));
  CarryOverWorld::acknowledge_all(member);
  world.topic.carry_over().sweep();
  EXPECT_EQ(world.stats().carried_messages, 0U);
  EXPECT_EQ(world.group_stats().lost, 0U);
}

TEST(CarryOver, ManyThatWaitHoldTheRing) {
  CarryOverWorld world;
  Member member;
  world.join(member);
  const std::string payload(1000, 'm');
  int sent = 0;
  while (world.publish(payload) == PublishOutcome::accepted) ++sent;
  world.dispatch();
  world.kill(member, {{0}, {static_cast<std::uint64_t>(sent / 2)}});
  CarryOverWorld::acknowledge_all(member);
  world.dispatch();
  EXPECT_EQ(world.publish(payload), PublishOutcome::held) << "half of the ring waits";
  world.topic.set_producers_held(true);
  EXPECT_EQ(world.topic.blocked_by(), "group:default");
  EXPECT_EQ(world.stats().carried_messages, 0U);
}

TEST(CarryOver, CopiesHaveALimitInBytes) {
  CarryOverWorld world(protocol::Overflow::block, 2000);
  Member member;
  world.join(member);
  const std::string payload(1000, 'm');
  for (int i = 0; i < 3; ++i) ASSERT_EQ(world.publish(payload), PublishOutcome::accepted);
  world.dispatch();
  world.kill(member, {{0}, {3}});
  while (world.publish(payload) == PublishOutcome::accepted) {
    world.dispatch();
    CarryOverWorld::acknowledge_all(member);
  }
  const auto stats = world.stats();
  EXPECT_EQ(stats.carried_messages, 1U) << "there is space for one";
  EXPECT_EQ(stats.first_offset, 1U);
  EXPECT_EQ(stats.groups.at(0).lost, 0U);
  EXPECT_EQ(stats.groups.at(0).parked, 3U);
  ASSERT_NE(world.topic.carry_over().fault(), nullptr);
  EXPECT_EQ(world.topic.carry_over().fault()->code, ErrorCode::limit_reached);
  static_cast<void>(member.group->dead().purge({.ranges = {{{0}, {2}}}}, {0}));
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(world.publish(payload), PublishOutcome::accepted) << "there is space for the last one";
    world.dispatch();
    CarryOverWorld::acknowledge_all(member);
  }
  EXPECT_EQ(world.topic.carry_over().fault(), nullptr);
}

TEST(CarryOver, AMessageInFlightHoldsTheRing) {
  CarryOverWorld world;
  Member member;
  world.join(member);
  const std::string payload(1000, 'm');
  while (world.publish(payload) == PublishOutcome::accepted) {
  }
  world.dispatch();
  EXPECT_EQ(world.publish(payload), PublishOutcome::held);
  EXPECT_EQ(world.stats().carried_messages, 0U);
}

TEST(CarryOver, DropOldestCarriesWhatWaits) {
  CarryOverWorld world(protocol::Overflow::drop_oldest);
  Member member;
  world.join(member);
  for (int i = 0; i < 10; ++i) ASSERT_EQ(world.publish(std::to_string(i)), PublishOutcome::accepted);
  world.dispatch();
  world.kill(member, {{2}, {4}});
  // The others stay in flight: the policy drops them.
  const std::string payload(1000, 'm');
  for (int i = 0; i < 2000; ++i) ASSERT_EQ(world.publish(payload), PublishOutcome::accepted);
  const auto stats = world.stats();
  EXPECT_GT(stats.first_offset, 10U);
  EXPECT_EQ(stats.carried_messages, 2U);
  EXPECT_EQ(stats.groups.at(0).parked, 2U);
}

// One call copies a limited number. The drop waits for the others.
TEST(CarryOver, DropOldestLosesNoneOfManyThatWaitInOneBatch) {
  CarryOverWorld world(protocol::Overflow::drop_oldest, 2 * ring_bytes);
  Member member;
  world.join(member);
  constexpr std::uint64_t many = 5000;
  BatchBuilder batch;
  for (std::uint64_t i = 0; i < many; ++i) batch.add(as_byte_view(std::to_string(i)));
  ASSERT_EQ(world.topic.publish(batch, world.wall), PublishOutcome::accepted);
  world.dispatch();
  world.kill(member, {{0}, {many}});
  const std::string payload(1000, 'm');
  std::uint64_t held = 0;
  for (std::uint64_t sent = 0; sent < 2 * ring_bytes / payload.size();) {
    if (world.publish(payload) == PublishOutcome::accepted) {
      ++sent;
      world.dispatch();
      CarryOverWorld::acknowledge_all(member);
      continue;
    }
    ASSERT_LT(++held, 10U);
    EXPECT_TRUE(world.topic.dispatch({.now = world.now, .wall = world.wall}).progress) << "try again";
  }
  EXPECT_GT(held, 0U);
  const auto stats = world.stats();
  EXPECT_GT(stats.first_offset, many);
  EXPECT_EQ(stats.carried_messages, many);
  EXPECT_EQ(stats.groups.at(0).parked, many);
  EXPECT_EQ(stats.groups.at(0).lost, 0U);
}

TEST(CarryOver, AReaderByOffsetMeetsCopiesAndANewGroupDoesNot) {
  CarryOverWorld world;
  Member member;
  world.join(member);
  for (int i = 0; i < 10; ++i) ASSERT_EQ(world.publish(std::to_string(i)), PublishOutcome::accepted);
  world.dispatch();
  world.kill(member, {{3}, {4}});
  world.kill(member, {{7}, {8}});
  CarryOverWorld::acknowledge_all(member);
  world.stream(member, 2);
  log::ReadPosition place{{0}};
  log::ReadResult found = world.store.read(place);
  EXPECT_EQ(found.outcome, log::ReadOutcome::trimmed);
  EXPECT_EQ(found.next, Offset{3});
  place = {found.next};
  found = world.store.read(place);
  ASSERT_EQ(found.outcome, log::ReadOutcome::batch);
  EXPECT_EQ(test::payloads_of(found.batch), std::vector<std::string>{"3"});
  EXPECT_EQ(found.batch.producer_id(), 0U);
  place = {{8}};
  found = world.store.read_header(place);
  EXPECT_EQ(found.next, world.store.first_offset());
  Member late;
  world.join(late, "late");
  EXPECT_EQ(late.group->next(), world.store.first_offset());
}

TEST(CarryOver, AFailedAppendDoesNotReportTheErrorOfACopy) {
  MemoryStore store(std::make_unique<log::RingLog>(log::RingLogOptions{.first_offset = {limits::offset_max}}),
                    std::make_unique<log::CarriedMemory>(1000));
  auto copy = test::make_batch({"copy"});
  stamp_batch(copy, {3}, {}, 0);
  ASSERT_TRUE(store.carried()->add(copy));
  auto long_copy = test::make_batch({std::string(1000, 'c')});
  stamp_batch(long_copy, {4}, {}, 0);
  ASSERT_FALSE(store.carried()->add(long_copy));
  log::ReadPosition place{{3}};
  ASSERT_EQ(store.read(place).outcome, log::ReadOutcome::batch);
  EXPECT_EQ(&store.last_error(), &store.carried()->last_error());
  auto batch = test::make_batch({"message"});
  ASSERT_EQ(store.append(batch, {}).outcome, log::AppendOutcome::failed);
  EXPECT_NE(store.last_error().message.find("used up its offsets"), std::string::npos);
}

TEST(CarryOver, CopiesGoWithTheirMessages) {
  CarryOverWorld world;
  Member member;
  Member other;
  world.join(member);
  world.join(other, "other");
  for (int i = 0; i < 10; ++i) ASSERT_EQ(world.publish(std::to_string(i)), PublishOutcome::accepted);
  world.dispatch();
  world.kill(member, {{3}, {6}});
  world.kill(other, {{5}, {7}});
  const auto finish = [&] {
    CarryOverWorld::acknowledge_all(member);
    CarryOverWorld::acknowledge_all(other);
  };
  const std::string payload(1000, 'm');
  for (int i = 0; i < 2000; ++i) {
    ASSERT_EQ(world.publish(payload), PublishOutcome::accepted);
    world.dispatch();
    finish();
  }
  EXPECT_EQ(world.stats().carried_messages, 4U);
  static_cast<void>(member.group->dead().purge({.ranges = {{{4}, {6}}}}, {0}));
  world.topic.carry_over().sweep();
  EXPECT_EQ(world.stats().carried_messages, 3U) << "the other group needs 5";
  world.topic.groups().pass_over(*other.group);
  world.topic.carry_over().sweep();
  EXPECT_EQ(world.stats().carried_messages, 1U);
  EXPECT_TRUE(world.topic.groups().seek(*member.group, {StartPosition::From::offset, 0}).ok());
  EXPECT_EQ(member.group->next(), world.store.first_offset());
  world.topic.carry_over().sweep();
  EXPECT_EQ(world.stats().carried_messages, 0U) << "the group has forgotten them";
}

TEST(CarryOver, CompressedBatchesAreCarriedMessageByMessage) {
  CarryOverWorld world;
  Member member;
  world.join(member);
  BatchBuilder batch;
  for (int i = 0; i < 20; ++i) batch.add(as_byte_view(std::string(500, 'a') + std::to_string(i)));
  test::pack(batch, Codec::lz4);
  ASSERT_EQ(world.topic.publish(batch, world.wall), PublishOutcome::accepted);
  world.dispatch();
  world.kill(member, {{5}, {7}});
  CarryOverWorld::acknowledge_all(member);
  world.stream(member, 2);
  EXPECT_EQ(world.stats().carried_messages, 2U);
  static_cast<void>(member.group->dead().retry({}, {0}));
  world.dispatch();
  EXPECT_EQ(member.consumer.payloads(),
            (std::vector<std::string>{std::string(500, 'a') + "5", std::string(500, 'a') + "6"}));
}

using OpenMessages = std::map<std::uint64_t, std::string>;

/// Lets all messages that wait be delivered, and compares them with those that are not finished.
void expect_all_come(CarryOverWorld& world, Member (&members)[2], OpenMessages (&open)[2]) {
  world.now += std::chrono::hours(1);
  for (int i = 0; i < 2; ++i) {
    for (std::optional<Offset> from = Offset{0}; from;) from = members[i].group->dead().retry({}, *from).next;
  }
  world.dispatch();
  for (int i = 0; i < 2; ++i) {
    for (const auto& frame : members[i].consumer.frames) {
      for (std::size_t at = 0; at < frame.payloads.size(); ++at)
        ASSERT_EQ(frame.payloads[at], open[i].at((frame.range.begin + at).value));
      for (Offset at = frame.range.begin; at < frame.range.end; at = at + 1) open[i].erase(at.value);
    }
    EXPECT_TRUE(open[i].empty()) << open[i].size();
    CarryOverWorld::acknowledge_all(members[i]);
  }
  for (int i = 0; i < 50; ++i) world.topic.carry_over().sweep();
  EXPECT_EQ(world.stats().carried_messages, 0U);
}

/// Random publications, failures and acknowledgements in two groups under a full ring. A model keeps all
/// messages that are not finished.
class CarryOverModel : public testing::TestWithParam<int> {};

TEST_P(CarryOverModel, NothingIsLostAndNothingHoldsTheRing) {
  Random random(GetParam());
  CarryOverWorld world(protocol::Overflow::block, 600'000);
  Member members[2];
  world.join(members[0]);
  world.join(members[1], "second");
  OpenMessages open[2];
  std::uint64_t published = 0;
  std::uint64_t held = 0;
  for (int step = 0; step < 6000; ++step) {
    const std::uint64_t choice = random.below(100);
    if (choice < 60) {
      const std::string payload = std::to_string(published) + std::string(random.below(4000), 'p');
      if (world.publish(payload) != PublishOutcome::accepted) {
        ++held;
        continue;
      }
      for (auto& each : open) each[published] = payload;
      ++published;
    } else if (choice < 80) {
      world.now += milliseconds(random.below(100));
      world.dispatch();
      for (int i = 0; i < 2; ++i) {
        for (auto& frame : std::exchange(members[i].consumer.frames, {})) {
          for (std::size_t at = 0; at < frame.payloads.size(); ++at) {
            const Offset offset = frame.range.begin + at;
            ASSERT_EQ(frame.payloads[at], open[i].at(offset.value));
            const OffsetRange one{offset, offset + 1};
            if (random.one_in(100)) {
              world.kill(members[i], one);
            } else if (random.one_in(100)) {
              world.reject(members[i], one, static_cast<std::uint32_t>(random.below(20'000)));
            } else {
              members[i].group->acknowledge(*members[i].member, {std::nullopt, {one}});
              open[i].erase(offset.value);
            }
          }
        }
      }
    } else if (choice < 90) {
      world.topic.carry_over().sweep();
    } else if (choice < 92) {
      auto& member = members[random.below(2)];
      const OffsetRange some{{random.below(published + 1)}, {published}};
      if (some.begin < some.end) static_cast<void>(member.group->dead().retry({.ranges = {some}}, {0}));
    }
    for (int i = 0; i < 2; ++i) {
      const auto& messages = members[i].group->messages();
      ASSERT_EQ(messages.ready(world.store.first_offset(), world.store.next_offset()) + messages.retrying() +
                    messages.in_flight() + messages.parked(),
                open[i].size())
          << "step " << step;
    }
  }
  EXPECT_GT(world.store.first_offset().value, published / 2) << "most messages have passed";
  EXPECT_LT(held, 600U);
  for (const auto& group : world.stats().groups) EXPECT_EQ(group.lost, 0U);
  expect_all_come(world, members, open);
}

INSTANTIATE_TEST_SUITE_P(Seeds, CarryOverModel, testing::Range(0, 10));

}  // namespace
}  // namespace lightq::broker
