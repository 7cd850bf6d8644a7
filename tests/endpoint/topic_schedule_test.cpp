/// Tests of delayed messages in a topic: publishing, moving, restarts, commands and capacity.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "delayed/schedule_limits.hpp"
#include "delivery/consumer_group_harness.hpp"
#include "endpoint/topic_runtime_harness.hpp"
#include "topic/runtime/topic_schedule.hpp"

namespace lightq::broker {
namespace {

class TopicScheduleTest : public TopicRuntimeTest {
 protected:
  explicit TopicScheduleTest(
      const protocol::TopicSettings& settings = {.broker_type = protocol::BrokerType::file})
      : TopicRuntimeTest(settings, 10) {}
  ~TopicScheduleTest() override {
    if (topic == nullptr) return;
    topic->begin_stop(ClientError::shutting_down);
    run_until([this] { return topic->idle_on_disk(); });
  }

  void open_delayed(std::optional<ProducerIdentity> again = {}) {
    target = topic->schedule().target().value_or_throw();
    const auto opened = target->open(again.value_or(ProducerIdentity{}), producer, {.user = 0});
    ASSERT_EQ(opened.refusal, ClientError::none);
    producer.identity = opened.producer.identity;
    sequence = opened.producer.expected;
    ASSERT_TRUE(run_until([this] { return producer.is_admitted; }));
  }
  PublishOutcome publish(const std::vector<std::string>& payloads, std::int64_t due,
                         Attributes attributes = {}) {
    BatchBuilder builder;
    attributes.delay = std::chrono::microseconds(due < 0 ? -due : 0);
    attributes.deliver_at = {due > 0 ? due : 0};
    for (const auto& payload : payloads)
      builder.add(as_byte_view(payload), attributes,
                  AttributeKinds(AttributeKinds::dues) | AttributeKinds(attributes));
    const auto bytes = builder.finish({producer.identity.id, sequence, producer.identity.epoch});
    EXPECT_EQ(target->fault_of(BatchView::trusted(bytes.data())), nullptr);
    const Sequences sequences{producer.identity, sequence, builder.record_count()};
    EXPECT_EQ(target->admit(sequences), Admission::store);
    const auto outcome = target->store({bytes, builder.record_count(), builder.message_bytes()}, sequences);
    if (outcome == PublishOutcome::accepted) sequence += payloads.size();
    target->want_flush();
    target->published();
    return outcome;
  }
  std::vector<std::string> payloads_in_log() {
    std::vector<std::string> found;

    auto& store = const_cast<TopicStore&>(topic->store());
    log::ReadPosition place{store.first_offset()};
    for (auto read = store.read(place); read.outcome == log::ReadOutcome::batch; read = store.read(place)) {
      for (const auto& each : test::payloads_of(read.batch)) found.push_back(each);
      EXPECT_FALSE(read.batch.kinds().has(AttributeKinds::dues));
      place.offset = read.batch.end_offset();
    }
    return found;
  }
  bool run_until_in_log(std::size_t messages) {
    return run_until([&] {
      context().wall_timers.clock_was_set();
      return payloads_in_log().size() >= messages;
    });
  }

  FakeProducer producer{false};
  ProduceTarget* target = nullptr;
  std::uint64_t sequence = 0;
};

TEST_F(TopicScheduleTest, MessagesReachTheLogWhenTheyAreDueInTheirOrder) {
  open_delayed();
  ASSERT_EQ(publish({"later"}, -3'000'000), PublishOutcome::accepted);
  ASSERT_EQ(publish({"soon", "soon too"}, -1'000'000), PublishOutcome::accepted);
  ASSERT_EQ(publish({"now"}, 0), PublishOutcome::accepted);
  ASSERT_TRUE(run_until_in_log(4));
  EXPECT_EQ(payloads_in_log(), (std::vector<std::string>{"now", "soon", "soon too", "later"}));
  EXPECT_EQ(topic->schedule().stats().moved, 4U);
  EXPECT_EQ(topic->schedule().stats().messages, 0U);
  EXPECT_EQ(topic->stats().publishers_count, 1U);
}

TEST_F(TopicScheduleTest, ARestartKeepsMessagesProducersAndTheOrder) {
  open_delayed();
  ASSERT_EQ(publish({"a"}, -500'000'000), PublishOutcome::accepted);
  ASSERT_EQ(publish({"b"}, -400'000'000), PublishOutcome::accepted);
  ASSERT_EQ(publish({"now"}, 0), PublishOutcome::accepted);
  ASSERT_TRUE(run_until_in_log(1));
  const ProducerIdentity identity = producer.identity;
  for (const bool cleanly : {true, false}) {
    restart(cleanly);
    EXPECT_EQ(topic->schedule().stats().messages, 2U);
    EXPECT_EQ(payloads_in_log().size(), 1U);
    producer.is_admitted = false;
    open_delayed(identity);
    EXPECT_EQ(sequence, 3U);
  }
  step_clock(std::chrono::seconds(600));
  ASSERT_TRUE(run_until_in_log(3));
  EXPECT_EQ(payloads_in_log(), (std::vector<std::string>{"now", "b", "a"}));
  restart(false);
  turn(std::chrono::milliseconds(20));
  EXPECT_EQ(payloads_in_log().size(), 3U);
}

TEST_F(TopicScheduleTest, ATimeToLiveCountsFromTheDueTimeAlsoAfterRestarts) {
  using std::chrono::seconds;
  test::FakeConsumer consumer;
  ASSERT_EQ(topic->open_consumer(test::asked("workers"), consumer).code, ClientError::none);
  ASSERT_TRUE(run_until([&] { return consumer.opened_at.has_value(); }));
  topic->detach_consumer(consumer);
  open_delayed();
  ASSERT_EQ(publish({"short"}, -500'000'000, {.id = "7", .ttl = seconds(300)}), PublishOutcome::accepted);
  ASSERT_EQ(publish({"long"}, -500'000'000, {.ttl = seconds(3600)}), PublishOutcome::accepted);
  const auto group = [&] {
    topic->dispatch().published();
    return topic->stats().groups.at(0);
  };
  restart(true);
  step_clock(seconds(501));  // the delay is longer than the time to live
  ASSERT_TRUE(run_until_in_log(2));
  EXPECT_EQ(group().pending, 2U);
  restart(false);
  step_clock(seconds(200));
  ASSERT_TRUE(run_until([&] { return group().ready == 2; }));
  step_clock(seconds(100));
  ASSERT_TRUE(run_until([&] { return group().ready == 1; }));
  EXPECT_EQ(group().pending, 1U);
  EXPECT_EQ(group().lost, 0U);
}

TEST_F(TopicScheduleTest, CommandsAreAnsweredWhenTheyAreDurable) {
  open_delayed();
  for (int each = 0; each < 3; ++each)
    ASSERT_EQ(publish({"m" + std::to_string(each)}, -500'000'000), PublishOutcome::accepted);
  const auto list = topic->schedule().list({}, {}, 10).value_or_throw();
  ASSERT_EQ(list.messages.size(), 3U);
  const DelayedFilter first{.numbers = {{list.messages[0].number, list.messages[0].number + 1}}};
  const DelayedFilter second{.numbers = {{list.messages[1].number, list.messages[1].number + 1}}};
  EXPECT_EQ(topic->schedule().act(DelayedAction::cancel, first, {}, {}).value_or_throw().done, 1U);
  EXPECT_EQ(topic->schedule().act(DelayedAction::hurry, second, {}, {}).value_or_throw().done, 1U);
  std::optional<std::uint64_t> answered;
  topic->schedule().answer_when_durable(2, [&](const Result<std::uint64_t>& result) { answered = *result; });
  ASSERT_TRUE(run_until([&] { return answered.has_value(); }));
  EXPECT_EQ(answered, 2U);
  ASSERT_TRUE(run_until_in_log(1));
  EXPECT_EQ(payloads_in_log(), std::vector<std::string>{"m1"});
  EXPECT_EQ(topic->schedule().act(DelayedAction::hurry, second, {}, {}).value_or_throw().too_late, 1U);
  EXPECT_FALSE(topic->schedule().act(DelayedAction::reschedule, {}, {}, {INT64_MAX}));
  restart(false);
  EXPECT_EQ(topic->schedule().stats().messages, 1U);
}

TEST_F(TopicScheduleTest, AScheduleThatCannotBeReadAtTheStartIsOpenedLater) {
  open_delayed();
  ASSERT_EQ(publish({"m"}, -500'000'000), PublishOutcome::accepted);
  // The start reads a log with a record of a newer version; later attempts read the topic's own.
  on_open = [&](FoundTopic& found) {
    log::SegmentLogOptions options;
    options.directory = "/newer";
    auto newer = log::SegmentLog::open(options, storage, *pool, wall_time()).value_or_throw();
    auto batch = test::make_batch({"\x09"});
    ASSERT_EQ(newer->append(batch, wall_time()).outcome, log::AppendOutcome::appended);
    found.schedule->segments = std::move(newer);
  };
  restart(false);
  EXPECT_TRUE(topic->schedule().is_made());
  ASSERT_TRUE(topic->stats().delayed.has_value());
  EXPECT_NE(topic->stats().delayed->waiting_by, "");
  EXPECT_FALSE(topic->schedule().list({}, {}, 10));
  const DelayedFilter first{.numbers = {{0, 1}}};
  EXPECT_FALSE(topic->schedule().act(DelayedAction::cancel, first, {}, {}));
  EXPECT_FALSE(topic->schedule().target());
  ASSERT_TRUE(run_until([&] { return topic->schedule().stats().messages == 1; }));
  EXPECT_EQ(topic->schedule().stats().waiting_by, "");
  step_clock(std::chrono::seconds(600));
  ASSERT_TRUE(run_until_in_log(1));
}

class CapacityScheduleTest : public TopicScheduleTest {
 protected:
  CapacityScheduleTest()
      : TopicScheduleTest({.broker_type = protocol::BrokerType::file,
                           .capacity_bytes = 16 * limits::MiB,
                           .segment_bytes = 1 * limits::MiB}) {}
  /// Publishes 32 MiB to the log, which drops its oldest messages. Returns the bytes that it has then.
  std::uint64_t fill() {
    const std::string payload(256 * limits::KiB, 'x');
    for (int each = 0; each < 128; ++each) {
      auto batch = test::make_batch({payload});
      EXPECT_EQ(topic->publishing().store({batch, 1, payload.size()}, {{1, 0}, 0, 1}),
                PublishOutcome::accepted);
    }
    return topic->store().stored_bytes();
  }
};

TEST_F(CapacityScheduleTest, AScheduleThatCannotBeReadKeepsAShareOfTheCapacity) {
  open_delayed();
  ASSERT_EQ(publish({"m"}, -500'000'000), PublishOutcome::accepted);
  constexpr std::uint64_t stored = 12 * limits::MiB;
  on_open = [&](FoundTopic& found) {
    log::SegmentLogOptions options;
    options.directory = "/newer";
    auto newer = log::SegmentLog::open(options, storage, *pool, wall_time()).value_or_throw();
    auto record = test::make_batch({"\x09"});
    ASSERT_EQ(newer->append(record, wall_time()).outcome, log::AppendOutcome::appended);
    while (newer->stored_bytes() < stored) {
      auto batch = test::make_batch({std::string(limits::MiB, 'x')});
      ASSERT_EQ(newer->append(batch, wall_time()).outcome, log::AppendOutcome::appended);
    }
    found.schedule->segments = std::move(newer);
  };
  restart(false);
  const std::uint64_t share = ScheduleLimits().least_charge(stored);
  EXPECT_GE(share, 4 * limits::MiB);
  const std::uint64_t kept = fill();
  EXPECT_LE(kept, 16 * limits::MiB - share);
  EXPECT_GT(kept, 8 * limits::MiB);
  ASSERT_TRUE(run_until([&] { return topic->schedule().stats().messages == 1; }));
  EXPECT_GT(fill(), 16 * limits::MiB - share);
}

class RejectingScheduleTest : public TopicScheduleTest {
 protected:
  RejectingScheduleTest()
      : TopicScheduleTest(
            {.broker_type = protocol::BrokerType::file, .overflow = protocol::Overflow::reject}) {}
};

TEST_F(RejectingScheduleTest, FurtherAttemptsOfTheMoverCountAsNoRejectedMessages) {
  open_delayed();
  ASSERT_EQ(publish({"m"}, -500'000'000), PublishOutcome::accepted);
  fail(ENOSPC, [](FaultyStorage::Call call, const std::string& path) {
    return call == FaultyStorage::Call::write && path.find("/delayed/") == std::string::npos;
  });
  step_clock(std::chrono::seconds(600));
  ASSERT_TRUE(run_until([&] {
    context().wall_timers.clock_was_set();
    return !topic->schedule().stats().waiting_by.empty();
  }));
  EXPECT_EQ(topic->stats().rejected, 0U);
  fail(0, {});
  ASSERT_TRUE(run_until_in_log(1));
  EXPECT_EQ(topic->schedule().stats().waiting_by, "");
}

TEST_F(TopicScheduleTest, DuesBeyondTenYearsAndBatchesWithoutDuesAreRefused) {
  open_delayed();
  auto plain = test::make_batch({"m"});
  EXPECT_NE(target->fault_of(BatchView::trusted(plain.data())), nullptr);
  BatchBuilder builder;
  builder.add(as_byte_view("m"),
              Attributes{.deliver_at = {wall_time().us + limits::delay_us_max + 1'000'000}},
              AttributeKinds(AttributeKinds::dues));
  const auto bytes = builder.finish({1, 0, 0});
  EXPECT_NE(target->fault_of(BatchView::trusted(bytes.data())), nullptr);
}

TEST_F(TopicScheduleTest, TwoHundredThousandDueAtOnceLeaveInOrder) {
  open_delayed();
  const std::int64_t due = wall_time().us + 3'600'000'000;
  for (int batch = 0; batch < 200; ++batch) {
    std::vector<std::string> payloads;
    for (int each = 0; each < 1'000; ++each) payloads.push_back(std::to_string(batch * 1'000 + each));
    ASSERT_EQ(publish(payloads, due), PublishOutcome::accepted);
  }
  step_clock(std::chrono::hours(1));
  const auto begun = std::chrono::steady_clock::now();
  ASSERT_TRUE(run_until([&] {
    context().wall_timers.clock_was_set();
    return topic->store().next_offset().value >= 200'000;
  }));
  const auto took = std::chrono::steady_clock::now() - begun;
  RecordProperty("ms", std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(took).count()));
  const auto found = payloads_in_log();
  ASSERT_EQ(found.size(), 200'000U);
  for (std::size_t each = 0; each < found.size(); ++each) ASSERT_EQ(found[each], std::to_string(each));
}

class RingScheduleTest : public TopicScheduleTest {
 protected:
  RingScheduleTest()
      : TopicScheduleTest({.broker_type = protocol::BrokerType::queue,
                           .ring_bytes = 64 * limits::KiB,
                           .overflow = protocol::Overflow::reject}) {}
};

TEST_F(RingScheduleTest, DelayedMessagesShareTheRingsCapacityAndAlwaysFindSpaceWhenDue) {
  open_delayed();
  const std::string payload(1'000, 'x');
  std::size_t stored = 0;
  while (publish({payload}, -5'000'000) == PublishOutcome::accepted) ++stored;
  EXPECT_GT(stored, 50U);
  EXPECT_LE(topic->schedule().stats().bytes, 64 * limits::KiB);
  // The log has no space either.
  auto batch = test::make_batch({payload});
  EXPECT_EQ(topic->publishing().store({batch, 1, 1'000}, {{1, 0}, 0, 1}), PublishOutcome::rejected);
  step_clock(std::chrono::seconds(10));
  ASSERT_TRUE(run_until_in_log(stored));
  EXPECT_EQ(topic->schedule().stats().bytes, 0U);
}

class DirectScheduleTest : public TopicScheduleTest {
 protected:
  DirectScheduleTest() : TopicScheduleTest({.broker_type = protocol::BrokerType::direct}) {}
};

TEST_F(DirectScheduleTest, HasNoSchedule) {
  const auto refused = topic->schedule().target();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::not_supported);
}

}  // namespace
}  // namespace lightq::broker
