/// Tests of durable topics that carry waiting messages over when retention drops the others: over kills,
/// power cuts and failures of the disk.
#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "store/durable_carry_over_fixture.hpp"
#include "support/random.hpp"

namespace lightq::broker {
namespace {

using protocol::BrokerType;
using test::FakeConsumer;
using test::Random;

class DurableCarryOverOf : public DurableCarryOver, public testing::WithParamInterface<BrokerType> {
 protected:
  DurableCarryOverOf() : DurableCarryOver(settings_with_retention(GetParam())) {}
};

TEST_P(DurableCarryOverOf, RetentionTakesTheRestAndRestartsChangeNothing) {
  join();
  send_some(20);
  kill(5);
  delay(7);
  kill(8);
  acknowledge_all();
  stream(20'000);
  const auto is_carried = [](const protocol::TopicStats& stats) {
    const auto& group = stats.groups.at(0);
    return stats.carried_messages == 3 && stats.first_offset > 18'000 && group.parked == 2 &&
           group.retrying == 1 && group.lost == 0;
  };
  EXPECT_TRUE(settles(is_carried));
  EXPECT_LT(topic->stats().log_bytes, 4 * limits::MiB) << "20 MB have passed";
  EXPECT_TRUE(run_until([&] { return log_files() < 30; })) << log_files();
  wait_until_saved();
  for (const bool cleanly : {false, true, false}) {
    start_again(cleanly);
    EXPECT_TRUE(settles(is_carried)) << cleanly;
  }
  EXPECT_EQ(dead(), (std::set<std::uint64_t>{5, 8}));
  const auto revived = revive();
  EXPECT_EQ(revived.at(5), payload_of(5));
  EXPECT_EQ(revived.at(8), payload_of(8));
  EXPECT_EQ(revived.count(7), 0U) << "its delay has not passed";
  kill(5);
  EXPECT_EQ(dead(), (std::set<std::uint64_t>{5})) << "a copy can die again";
  EXPECT_EQ(topic->stats().groups.at(0).lost, 0U);
  acknowledge_all();
  EXPECT_TRUE(settles([](const auto& stats) { return stats.carried_messages == 2; })) << "5 and 7";
}

TEST_P(DurableCarryOverOf, TheFilesGoWithTheMessages) {
  join();
  send_some(20);
  kill(5);
  acknowledge_all();
  stream(2000);
  EXPECT_TRUE(settles([](const auto& stats) { return stats.carried_messages == 1; }));
  bool purged = false;
  topic->commands().purge([&](const Result<std::uint64_t>& done) { purged = done.ok(); });
  ASSERT_TRUE(run_until([&] { return purged; }));
  EXPECT_TRUE(settles([](const auto& stats) { return stats.carried_messages == 0; }));
  start_again(false);
  EXPECT_EQ(topic->stats().carried_messages, 0U);
}

TEST_P(DurableCarryOverOf, ManyThatWaitHoldTheLog) {
  join();
  send_some(200);
  for (std::uint64_t i = 0; i < 200; ++i) kill(i);
  acknowledge_all();
  stream(1200);
  for (int i = 0; i < 20; ++i) turn(std::chrono::microseconds(0));
  EXPECT_EQ(topic->stats().first_offset, 0U) << "more than a tenth of what retention would drop waits";
  EXPECT_EQ(topic->stats().carried_messages, 0U);
  stream(4000);
  EXPECT_TRUE(settles([](const auto& stats) { return stats.carried_messages == 200; }));
  EXPECT_EQ(topic->stats().groups.at(0).parked, 200U);
  EXPECT_EQ(topic->stats().groups.at(0).lost, 0U);
  EXPECT_GT(topic->stats().first_offset, 4000U);
}

// The originals stay on the disk until their copies are durable, though the log does not read them any more.
TEST_P(DurableCarryOverOf, OriginalsStayUntilTheirCopiesAreDurable) {
  join();
  send_some(20);
  kill(5);
  acknowledge_all();
  wait_until_saved();
  fail(EIO, [](FaultyStorage::Call call, const std::string& path) {
    return call == FaultyStorage::Call::sync && path.starts_with("/topics/1/carried/");
  });
  stream(3000);
  EXPECT_TRUE(settles([](const auto& stats) { return stats.carried_messages == 1; }));
  EXPECT_GT(log_files(), 40U);
  leave();
  drop();
  storage.power_cut([] { return false; });
  fail(0, {});
  start();
  EXPECT_EQ(dead(), (std::set<std::uint64_t>{5}));
  EXPECT_EQ(revive().at(5), payload_of(5));
}

INSTANTIATE_TEST_SUITE_P(Types, DurableCarryOverOf, testing::Values(BrokerType::file, BrokerType::queue_file),
                         [](const auto& each) { return std::string(to_word(each.param)); });

class RetentionOverPending : public DurableCarryOver {
 protected:
  RetentionOverPending() : DurableCarryOver(settings_with_retention(BrokerType::file, true)) {}
};

TEST_F(RetentionOverPending, RemovesWhatWaitsAndCountsIt) {
  join();
  send_some(20);
  kill(5);
  delay(7);
  acknowledge_all();
  stream(3000);
  EXPECT_TRUE(settles([](const auto& stats) { return stats.groups.at(0).lost == 2; }));
  const auto stats = topic->stats();
  EXPECT_EQ(stats.carried_messages, 0U);
  EXPECT_EQ(stats.groups.at(0).parked, 0U);
  EXPECT_EQ(stats.groups.at(0).retrying, 0U);
}

class CapacityCarries : public DurableCarryOver {
 protected:
  CapacityCarries()
      : DurableCarryOver({.broker_type = BrokerType::file,
                          .capacity_bytes = limits::MiB,
                          .segment_bytes = limits::segment_bytes_min}) {}
};

TEST_F(CapacityCarries, AFullLogIsNotHeldByMessagesThatWait) {
  join();
  send_some(20);
  kill(5);
  delay(7);
  acknowledge_all();
  stream(10'000);
  const auto stats = topic->stats();
  EXPECT_EQ(stats.next_offset, 10'020U) << "no producer was held";
  EXPECT_EQ(stats.carried_messages, 2U);
  EXPECT_GT(stats.first_offset, 8000U);
  EXPECT_EQ(stats.groups.at(0).lost, 0U);
}

// One burst of appends copies the message, drops its segment, and finds the disk full. Files of dropped
// segments are removed then, but not this one: a power cut would take the copy.
TEST_F(CapacityCarries, AFullDiskDoesNotTakeTheOriginalOfACopyThatIsNotDurable) {
  join();
  send_some(20);
  kill(5);
  acknowledge_all();
  stream(800);
  wait_until_saved();
  ASSERT_TRUE(run_until([&] { return topic->stats().durable_offset >= published && topic->idle_on_disk(); }));
  ASSERT_EQ(topic->stats().first_offset, 0U);
  fail(ENOSPC, [copied = false](FaultyStorage::Call call, const std::string& path) mutable {
    const bool is_copy = path.starts_with("/topics/1/carried/");
    copied = copied || is_copy;
    return copied && !is_copy && call == FaultyStorage::Call::allocate;
  });
  for (int i = 0; i < 600; ++i) {
    BatchBuilder batch;
    batch.add(as_byte_view(payload_of(published)));
    if (topic->publishing().publish(batch) != PublishOutcome::accepted) break;
    ++published;
  }
  ASSERT_GT(topic->stats().first_offset, 20U);
  ASSERT_EQ(topic->stats().carried_messages, 1U);
  leave();
  fail(EIO, [](FaultyStorage::Call call, const std::string&) {
    return call != FaultyStorage::Call::read && call != FaultyStorage::Call::map;
  });
  drop();
  storage.power_cut([] { return false; });
  fail(0, {});
  start();
  EXPECT_EQ(dead(), (std::set<std::uint64_t>{5}));
  EXPECT_EQ(revive().at(5), payload_of(5));
}

/// Random failures and acknowledgements, kills and power cuts at random calls. Dead messages that were saved
/// stay, with their bytes, until they are acknowledged.
class CarryOverPowerCuts : public DurableCarryOver, public testing::WithParamInterface<int> {
 protected:
  CarryOverPowerCuts()
      : DurableCarryOver(
            settings_with_retention(GetParam() % 2 == 0 ? BrokerType::file : BrokerType::queue_file)) {}

  /// Lets all calls that change the disk fail after `calls` of them.
  void arm(std::uint64_t calls) {
    fail(EIO, [left = calls](FaultyStorage::Call call, const std::string&) mutable {
      if (call == FaultyStorage::Call::read || call == FaultyStorage::Call::map) return false;
      if (left > 0) --left;
      return left == 0;
    });
  }
};

TEST_P(CarryOverPowerCuts, LoseNoDeadMessage) {
  Random random(GetParam());
  std::set<std::uint64_t> expected;
  for (int life = 0; life < 12; ++life) {
    join();
    const std::uint64_t begin = topic->stats().next_offset;
    published = begin;
    send_some(random.between(10, 40));
    // A power cut may have taken the save after thousands of acknowledgements: the group delivers those
    // again.
    wait_until_delivered();
    std::set<std::uint64_t> killed;
    for (std::uint64_t at = begin; at < published; ++at) {
      if (!random.one_in(10)) continue;
      kill(at);
      killed.insert(at);
    }
    acknowledge_all();
    wait_until_saved();
    // A power cut may take messages that are not durable, with their offsets.
    ASSERT_TRUE(run_until([&] { return topic->stats().durable_offset >= published; }));
    expected.merge(killed);
    ASSERT_EQ(dead(), expected);
    if (random.one_in(2)) arm(random.between(1, 400));
    stream(random.between(500, 2500));
    for (std::uint64_t i = random.below(5); i > 0; --i) turn(std::chrono::microseconds(100));
    leave();
    const bool cut = random.one_in(2);
    if (cut) {
      drop();
      storage.power_cut([&] { return random.one_in(2); });
      fail(0, {});
      start();
    } else {
      drop();
      fail(0, {});
      start();
    }
    ASSERT_EQ(dead(), expected) << "life " << life << (cut ? ", after a power cut" : ", after a kill");
    ASSERT_TRUE(settles([](const auto&) { return true; }));
    ASSERT_EQ(dead(), expected) << "after the first dispatch of life " << life + 1;
  }
  const auto revived = revive();
  for (const std::uint64_t each : expected) {
    ASSERT_TRUE(revived.contains(each)) << each;
    EXPECT_EQ(revived.at(each), payload_of(each));
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, CarryOverPowerCuts, testing::Range(0, 12));

}  // namespace
}  // namespace lightq::broker
