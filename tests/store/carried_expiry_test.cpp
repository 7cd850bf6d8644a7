/// Tests of messages that expire after they were carried over.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "delivery/fake_record_sink.hpp"
#include "store/carry_over_world.hpp"
#include "store/durable_carry_over_fixture.hpp"
#include "support/random.hpp"

namespace lightq::broker {
namespace {

using namespace std::chrono_literals;
using protocol::BrokerType;
using test::Random;

void expect_sum(const protocol::GroupStats& stats) {
  EXPECT_EQ(stats.pending,
            stats.ready + stats.in_flight + stats.retrying + stats.parked + stats.dead_waiting);
}

/// Publishes ten messages, lets the first five wait for `delay_ms`, finishes the others, and lets the log
/// drop all ten.
void carry_five(CarryOverWorld& world, Member& member, const Attributes& attributes,
                std::uint32_t delay_ms = 3'600'000) {
  world.join(member);
  for (int i = 0; i < 10; ++i)
    ASSERT_EQ(world.publish(std::to_string(i), attributes), PublishOutcome::accepted);
  world.dispatch();
  world.reject(member, {{0}, {5}}, delay_ms);
  world.stream(member, 3);
  const auto stats = world.stats();
  ASSERT_EQ(stats.carried_messages, 5U);
  ASSERT_GT(stats.first_offset, 10U);
  ASSERT_EQ(stats.groups.at(0).retrying, 5U);
}

/// Expects that the group has finished the copies because they expired.
void expect_five_expired(CarryOverWorld& world) {
  const auto group = world.group_stats();
  EXPECT_EQ(group.expired, 5U);
  EXPECT_EQ(group.retrying, 0U);
  EXPECT_EQ(group.pending, 0U);
  EXPECT_EQ(group.lost, 0U);
  world.topic.carry_over().sweep();
  EXPECT_EQ(world.stats().carried_messages, 0U);
}

TEST(CarriedExpiry, CopiesExpireByTheirOwnTime) {
  CarryOverWorld world;
  Member member;
  carry_five(world, member, {.ttl = 5s});
  world.pass(4900ms);
  world.dispatch();
  EXPECT_EQ(world.group_stats().retrying, 5U);
  world.pass(1100ms);
  world.dispatch();
  expect_five_expired(world);
}

TEST(CarriedExpiry, CopiesExpireByATimeOfManyHours) {
  CarryOverWorld world;
  Member member;
  carry_five(world, member, {.ttl = 30h}, 200'000'000);
  for (int hour = 0; hour < 29; ++hour) {
    world.pass(1h);
    world.dispatch();
  }
  EXPECT_EQ(world.group_stats().retrying, 5U);
  world.pass(1h + 1s);
  world.dispatch();
  expect_five_expired(world);
}

TEST(CarriedExpiry, CopiesExpireByATopicsTimeThatIsSetLater) {
  CarryOverWorld world;
  Member member;
  carry_five(world, member, {});
  world.pass(10s);
  world.dispatch();
  EXPECT_EQ(world.group_stats().retrying, 5U);
  world.topic.expiry().set_ttl(60'000);
  world.pass(49s);
  world.dispatch();
  EXPECT_EQ(world.group_stats().retrying, 5U);
  world.pass(1s);
  world.dispatch();
  expect_five_expired(world);
}

TEST(CarriedExpiry, ACopyIsNotDeliveredAfterItsTime) {
  CarryOverWorld world;
  Member member;
  carry_five(world, member, {.ttl = 2s}, 1000);
  world.pass(1500ms);
  world.dispatch();
  EXPECT_EQ(member.consumer.payloads().size(), 5U);
  world.reject(member, {{0}, {5}}, 0);
  member.consumer.frames.clear();
  world.pass(500ms);
  world.dispatch();
  EXPECT_TRUE(member.consumer.payloads().empty());
  expect_five_expired(world);
}

TEST(CarriedExpiry, ACopyThatIsDeadDoesNotExpire) {
  CarryOverWorld world;
  Member member;
  world.join(member);
  for (int i = 0; i < 10; ++i)
    ASSERT_EQ(world.publish(std::to_string(i), {.ttl = 5s}), PublishOutcome::accepted);
  world.dispatch();
  world.kill(member, {{3}, {5}});
  world.stream(member, 3);
  ASSERT_EQ(world.stats().carried_messages, 2U);
  world.pass(10s);
  world.dispatch();
  EXPECT_EQ(world.group_stats().parked, 2U);
  EXPECT_EQ(world.group_stats().expired, 0U);
  // Nor when it is given back.
  static_cast<void>(member.group->dead().retry({}, {0}));
  world.dispatch();
  EXPECT_EQ(member.consumer.payloads(), std::vector<std::string>({"3", "4"}));
  EXPECT_EQ(world.group_stats().parked, 0U);
  EXPECT_EQ(world.group_stats().expired, 0U);
}

// A group that is behind the log's first message receives the copies that another group needs, and counts
// each message before that once: as expired or as lost.
TEST(CarriedExpiry, AGroupThatFallsBehindCountsEachMessageOnce) {
  CarryOverWorld world(protocol::Overflow::drop_oldest);
  Member member;
  Member slow;
  world.join(member);
  world.join(slow, "slow");
  slow.consumer.is_writable = false;
  for (int i = 0; i < 30; ++i)
    ASSERT_EQ(world.publish(std::to_string(i), i % 3 == 0 ? Attributes{.ttl = 1s} : Attributes{}),
              PublishOutcome::accepted);
  world.dispatch();
  world.reject(member, {{10}, {12}}, 3'600'000);
  CarryOverWorld::acknowledge_all(member);
  world.pass(2s);
  world.dispatch();
  ASSERT_EQ(slow.group->next(), Offset{1}) << "behind the first, which has expired";
  world.stream(member, 3);
  ASSERT_EQ(world.stats().carried_messages, 2U);
  const auto groups = world.stats().groups;
  const auto found = std::ranges::find(groups, "slow", &protocol::GroupStats::group);
  ASSERT_NE(found, groups.end());
  EXPECT_EQ(found->expired, 10U);
  expect_sum(*found);
  EXPECT_EQ(found->lost + found->pending + found->expired, world.stats().next_offset);
  slow.consumer.is_writable = true;
  slow.member->wake();
  world.dispatch();
  const auto payloads = slow.consumer.payloads();
  ASSERT_GE(payloads.size(), 2U);
  EXPECT_EQ(payloads[0], "10");
  EXPECT_EQ(payloads[1], "11");
}

// So does a subscriber, which receives the copies too.
TEST(CarriedExpiry, ASubscriberThatFallsBehindCountsEachMessageOnce) {
  CarryOverWorld world;
  Member member;
  Subscribers& subscribers = world.topic.subscribers();
  Subscriber& slow = subscribers.add(Offset{0});
  world.join(member);
  for (int i = 0; i < 20; ++i)
    ASSERT_EQ(world.publish(std::to_string(i), i < 10 ? Attributes{.ttl = 2s} : Attributes{}),
              PublishOutcome::accepted);
  world.dispatch();
  world.reject(member, {{12}, {15}}, 3'600'000);
  CarryOverWorld::acknowledge_all(member);
  const auto check = [&](std::uint64_t expired, std::uint64_t lost) {
    const auto stats = subscribers.stats(slow);
    EXPECT_EQ(stats.expired, expired);
    EXPECT_EQ(stats.lost, lost);
    EXPECT_EQ(stats.delivered + stats.expired + stats.lost + stats.lag, world.stats().next_offset);
  };
  check(0, 0);
  world.pass(3s);
  world.dispatch();
  check(10, 0);
  world.stream(member, 3);
  ASSERT_EQ(world.stats().carried_messages, 3U);
  const std::uint64_t lost = world.stats().first_offset - 10 - 3;
  check(10, lost);
  test::FakeRecordSink sink(4);
  subscribers.attach(slow, sink);
  world.dispatch();
  ASSERT_EQ(sink.taken.size(), 4U);
  EXPECT_EQ(sink.taken[0], "12");
  EXPECT_EQ(sink.taken[2], "14");
  check(10, lost);
}

/// Random publications with times to live, failures and acknowledgements under a full ring. A model keeps all
/// messages that are not finished, and when each expires.
class CarriedExpiryModel : public testing::TestWithParam<int> {};

struct ModelMessage {
  std::string payload;
  std::int64_t expiry_us = 0;
  bool is_dead = false;
};

/// A topic and a member that does anything with its messages, compared with a map.
class CarriedExpirySteps {
 public:
  explicit CarriedExpirySteps(int seed) : random_(seed) {
    world.topic.expiry().set_ttl(60'000);
    world.join(member);
  }

  void step() {
    const std::uint64_t choice = random_.below(100);
    if (choice < 60) {
      publish();
    } else if (choice < 85) {
      world.pass(std::chrono::milliseconds(random_.below(200)));
      world.dispatch();
      ASSERT_NO_FATAL_FAILURE(take([&](Offset offset) { return answer(offset); }));
      compare();
    } else if (choice < 95) {
      world.topic.carry_over().sweep();
    } else if (choice < 96) {
      static_cast<void>(member.group->dead().retry({}, {0}));
      revive_all();
    }
  }
  /// Gives dead messages back, and lets all others expire. Acknowledges those that were given back.
  void finish() {
    for (std::optional<Offset> from = Offset{0}; from;) from = member.group->dead().retry({}, *from).next;
    revive_all();
    for (int turn = 0; turn < 100 && world.group_stats().pending != 0; ++turn) {
      world.pass(2min);
      world.dispatch();
      ASSERT_NO_FATAL_FAILURE(take([&](Offset offset) {
        acknowledge(offset);
        return true;
      }));
    }
  }

  CarryOverWorld world{protocol::Overflow::block, 600'000};
  Member member;
  std::uint64_t published = 0;
  std::uint64_t acknowledged = 0;
  std::uint64_t carried_expired = 0;

 private:
  void publish() {
    ModelMessage message{std::to_string(published) + std::string(random_.below(4000), 'p')};
    Attributes attributes;
    if (random_.one_in(2)) attributes.ttl = std::chrono::milliseconds(1 + random_.below(40'000));
    const std::int64_t ttl_ms = attributes.ttl.count() == 0 ? 60'000 : attributes.ttl.count();
    message.expiry_us = world.wall.us + ttl_ms * 1000;
    if (world.publish(message.payload, attributes) != PublishOutcome::accepted) return;
    open_[published++] = std::move(message);
  }
  void acknowledge(Offset offset) {
    member.group->acknowledge(*member.member, {std::nullopt, {{offset, offset + 1}}});
    ++acknowledged;
  }
  /// Returns true if the message is finished.
  bool answer(Offset offset) {
    const OffsetRange one{offset, offset + 1};
    if (random_.one_in(100)) {
      world.kill(member, one);
      open_.at(offset.value).is_dead = true;
    } else if (random_.one_in(20)) {
      world.reject(member, one, static_cast<std::uint32_t>(random_.below(30'000)));
    } else {
      acknowledge(offset);
      return true;
    }
    return false;
  }
  /// Calls `ends(offset)` for each message that was delivered.
  template <typename Ends>
  void take(Ends&& ends) {
    for (auto& frame : std::exchange(member.consumer.frames, {})) {
      for (std::size_t at = 0; at < frame.payloads.size(); ++at) {
        const Offset offset = frame.range.begin + at;
        const auto found = open_.find(offset.value);
        ASSERT_NE(found, open_.end());
        ASSERT_EQ(frame.payloads[at], found->second.payload);
        ASSERT_LT(world.wall.us, found->second.expiry_us) << "delivered after its time";
        if (ends(offset)) open_.erase(found);
      }
    }
  }
  /// Messages that are given back do not expire any more.
  void revive_all() {
    for (auto& [offset, message] : open_) {
      if (std::exchange(message.is_dead, false)) message.expiry_us = std::numeric_limits<std::int64_t>::max();
    }
  }
  void compare() {
    // Messages that expired more than a second ago have ended; those that expire later have not.
    for (auto at = open_.begin(); at != open_.end();) {
      const bool is_over = at->second.expiry_us <= world.wall.us - 1'000'000 && !at->second.is_dead;
      if (is_over && at->first < world.store.first_offset().value) ++carried_expired;
      at = is_over ? open_.erase(at) : std::next(at);
    }
    const auto pending = world.group_stats().pending;
    ASSERT_LE(pending, open_.size());
    const auto surely = std::ranges::count_if(open_, [&](const auto& each) {
      return each.second.is_dead || world.wall.us < each.second.expiry_us;
    });
    ASSERT_GE(pending, static_cast<std::uint64_t>(surely));
    expect_sum(world.group_stats());
  }

  Random random_;
  std::map<std::uint64_t, ModelMessage> open_;
};

TEST_P(CarriedExpiryModel, EachMessageEndsOnce) {
  CarriedExpirySteps model(GetParam());
  for (int step = 0; step < 16'000; ++step) ASSERT_NO_FATAL_FAILURE(model.step()) << "step " << step;
  EXPECT_GT(model.carried_expired, 10U);
  EXPECT_GT(model.world.store.first_offset().value, model.published / 2);
  // In the end each has expired, or was acknowledged.
  ASSERT_NO_FATAL_FAILURE(model.finish());
  const auto group = model.world.group_stats();
  EXPECT_EQ(group.pending, 0U);
  EXPECT_EQ(group.lost, 0U);
  EXPECT_EQ(group.expired + model.acknowledged, model.published);
  for (int i = 0; i < 50; ++i) model.world.topic.carry_over().sweep();
  EXPECT_EQ(model.world.stats().carried_messages, 0U);
}

INSTANTIATE_TEST_SUITE_P(Seeds, CarriedExpiryModel, testing::Range(0, 10));

class DurableCarriedExpiry : public DurableCarryOver, public testing::WithParamInterface<BrokerType> {
 protected:
  DurableCarriedExpiry() : DurableCarryOver(settings_with_retention(GetParam())) {}

  /// Lets four messages wait, two of them with a time to live of an hour, and retention drop the log around
  /// them.
  void carry_four() {
    join();
    send_some(10);
    send_some(10, {.ttl = 1h});
    for (const std::uint64_t message : {5, 7, 15, 17}) delay(message);
    acknowledge_all();
    stream(20'000);
    const auto is_carried = [](const protocol::TopicStats& stats) {
      return stats.carried_messages == 4 && stats.first_offset > 18'000 && stats.groups.at(0).retrying == 4;
    };
    ASSERT_TRUE(settles(is_carried));
    wait_until_saved();
  }
};

TEST_P(DurableCarriedExpiry, CopiesExpireByTheirOwnTimeAfterRestarts) {
  carry_four();
  for (const bool cleanly : {true, false, true}) start_again(cleanly);
  ASSERT_TRUE(settles([](const auto& stats) { return stats.groups.at(0).retrying == 4; }));
  step_clock(2h);
  EXPECT_TRUE(settles([](const auto& stats) {
    const auto& group = stats.groups.at(0);
    return group.pending == 2 && group.lost == 0 && stats.carried_messages == 2;
  }));
}

TEST_P(DurableCarriedExpiry, CopiesExpireByTheTopicsTimeAfterARestart) {
  carry_four();
  start_again(false);
  ASSERT_TRUE(topic->commands().change({.message_ttl_ms = 30 * 60'000}).ok());
  ASSERT_TRUE(settles([](const auto& stats) { return stats.groups.at(0).retrying == 4; }));
  step_clock(35min);
  EXPECT_TRUE(settles([](const auto& stats) {
    const auto& group = stats.groups.at(0);
    return group.retrying == 0 && group.pending == 0 && group.lost == 0 && stats.carried_messages == 0;
  }));
}

INSTANTIATE_TEST_SUITE_P(Types, DurableCarriedExpiry,
                         testing::Values(BrokerType::file, BrokerType::queue_file));

}  // namespace
}  // namespace lightq::broker
