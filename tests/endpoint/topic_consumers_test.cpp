/// Tests of the messages from a topic to its session consumers, and of the cursors that it keeps on disk.
#include <gmock/gmock.h>

#include <algorithm>

#include "delivery/consumer_group_harness.hpp"
#include "endpoint/topic_runtime_harness.hpp"
#include "log/saved_state/cursor_file.hpp"

namespace lightq::broker {
namespace {

using test::asked;
using test::FakeConsumer;
using testing::ElementsAre;
using testing::IsEmpty;

bool is_cursor_file(const std::string& path) {
  return path.find("/cursors.") != std::string::npos;
}

/// Reads the cursors on disk when it is admitted. Leaves at that moment if told so, or else with its first
/// message.
class Watcher final : public SessionConsumer {
 public:
  Watcher(FaultyStorage& storage, TopicRuntime& topic) : storage_(storage), topic_(topic) {}
  void admitted(const Opened&) override {
    on_disk = log::CursorFile(storage_, "/topics/1").load().value_or_throw();
    if (leaves_as_admitted) topic_.detach_consumer(*this);
    is_admitted = true;
  }
  [[nodiscard]] bool writable() const override { return true; }
  [[nodiscard]] CodecSet codecs() const override { return {}; }
  void deliver(const DeliveredSlice& delivered) override {
    messages += delivered.slice.count;
    topic_.detach_consumer(*this);
  }
  void flush() override {}
  void end(ClientError, const std::string&) override {}

  bool leaves_as_admitted = false;
  bool is_admitted = false;
  std::uint64_t messages = 0;
  std::vector<log::NamedCursor> on_disk;

 private:
  FaultyStorage& storage_;
  TopicRuntime& topic_;
};

class TopicConsumersTest : public TopicRuntimeTest {
 protected:
  void publish(int messages) {
    FakeProducer producer(false);
    open(producer);
    ASSERT_TRUE(run_until([&] { return producer.is_admitted; }));
    for (int i = 0; i < messages; ++i) send(producer, static_cast<std::uint64_t>(i));
    topic->publishing().detach(producer);
  }
  /// Publishes messages in one batch.
  void publish_batch(std::uint64_t count) {
    FakeProducer producer(false);
    open(producer);
    ASSERT_TRUE(run_until([&] { return producer.is_admitted; }));
    auto bytes = test::make_batch_of_producer(producer.identity.id, producer.identity.epoch, 0,
                                              std::vector<std::string>(count, "x"));
    ASSERT_EQ(topic->publishing().store({bytes, static_cast<std::uint32_t>(count), count},
                                        {producer.identity, 0, count}),
              PublishOutcome::accepted);
    topic->publishing().detach(producer);
  }
  /// Opens the consumer, and waits until it is admitted.
  void join(SessionConsumer& consumer, const ConsumeRequest& open, const bool& done) {
    ASSERT_EQ(topic->open_consumer(open, consumer), ClientError::none);
    ASSERT_TRUE(run_until([&] { return done; }));
  }
  void join(FakeConsumer& consumer, const ConsumeRequest& open) {
    ASSERT_EQ(topic->open_consumer(open, consumer), ClientError::none);
    ASSERT_TRUE(run_until([&] { return consumer.opened_at.has_value(); }));
  }
  Result<std::uint64_t> delete_group(const std::string& group) {
    std::optional<Result<std::uint64_t>> answer;
    topic->commands().delete_group(group, [&](const Result<std::uint64_t>& result) { answer = result; });
    EXPECT_TRUE(run_until([&] { return answer.has_value(); }));
    return *answer;
  }
  void expect_to_have(FakeConsumer& consumer, std::vector<std::uint64_t> offsets) {
    const auto has = [&] {
      std::vector<std::uint64_t> found;
      for (const auto& frame : consumer.frames) {
        for (Offset at = frame.range.begin; at < frame.range.end; at = at + 1) found.push_back(at.value);
      }
      return found;
    };
    EXPECT_TRUE(run_until([&] { return has().size() >= offsets.size(); }));
    EXPECT_EQ(has(), offsets);
  }
  protocol::GroupStats stats_of(const std::string& group) {
    for (const auto& stats : topic->stats().groups) {
      if (stats.group == group) return stats;
    }
    return {};
  }
};

TEST_F(TopicConsumersTest, AConsumerOfANewGroupIsAdmittedWhenTheGroupIsOnTheDisk) {
  for (const auto& open : {asked("new"), asked("mine", GroupMode::own), asked("default")}) {
    Watcher consumer(storage, *topic);
    ASSERT_EQ(topic->open_consumer(open, consumer), ClientError::none);
    EXPECT_FALSE(consumer.is_admitted) << "not within the call";
    ASSERT_TRUE(run_until([&] { return consumer.is_admitted; }));
    const bool found = std::any_of(consumer.on_disk.begin(), consumer.on_disk.end(), [&](const auto& cursor) {
      return cursor.name == (open.mode == GroupMode::own ? "own:" : "group:") + open.group;
    });
    EXPECT_TRUE(found) << open.group;
    topic->detach_consumer(consumer);
  }
}

TEST_F(TopicConsumersTest, AGroupThatCannotBeKeptIsRefusedAndForgotten) {
  for (const auto& [error, code] :
       {std::pair{ENOSPC, ClientError::no_space}, std::pair{EIO, ClientError::io_error}}) {
    fail(error, [](FaultyStorage::Call call, const std::string& path) {
      return call != FaultyStorage::Call::read && is_cursor_file(path);
    });
    FakeConsumer consumer;
    ASSERT_EQ(topic->open_consumer(asked("g"), consumer), ClientError::none);
    EXPECT_TRUE(run_until([&] { return consumer.ended.has_value(); }));
    EXPECT_EQ(consumer.ended, code);
    EXPECT_FALSE(consumer.opened_at);
    EXPECT_THAT(topic->stats().groups, IsEmpty());
  }
  FakeConsumer nameless;
  join(nameless, asked("", GroupMode::own));
  fail(0, {});
  FakeConsumer consumer;
  join(consumer, asked("g"));
  EXPECT_FALSE(consumer.ended);
  fail(EIO, [](FaultyStorage::Call, const std::string& path) { return is_cursor_file(path); });
  FakeConsumer second;
  join(second, asked("g"));  // its group is already on disk
  for (FakeConsumer* const each : {&nameless, &consumer, &second}) topic->detach_consumer(*each);
}

TEST_F(TopicConsumersTest, OnlyUnacknowledgedMessagesAreDeliveredAfterARestart) {
  publish(6);
  FakeConsumer consumer;
  join(consumer, asked("g"));
  expect_to_have(consumer, {0, 1, 2, 3, 4, 5});
  broker::acknowledge(*topic, consumer, {std::nullopt, {{{0}, {1}}, {{2}, {4}}}});
  restart(true);
  EXPECT_EQ(consumer.ended, ClientError::shutting_down);
  EXPECT_EQ(stats_of("g").committed_offset, 1U);
  FakeConsumer next;
  join(next, asked("g"));
  expect_to_have(next, {1, 4, 5});
  EXPECT_EQ(next.frames.front().delivery, 2U) << "delivery numbers outlive the broker";
  topic->detach_consumer(next);
}

TEST_F(TopicConsumersTest, AcknowledgementsOfASecondBeforeACrashAreKept) {
  publish(4);
  FakeConsumer consumer;
  join(consumer, asked("g"));
  expect_to_have(consumer, {0, 1, 2, 3});
  broker::acknowledge(*topic, consumer, {std::nullopt, {{{1}, {3}}}});
  ASSERT_TRUE(run_until([&] {
    const auto stored = log::CursorFile(storage, "/topics/1").load().value_or_throw();
    return !stored.empty() && stored[0].unfinished.next == Offset{4} &&
           stored[0].unfinished.processed({0}, 9) == std::vector<OffsetRange>{{{1}, {3}}};
  }));
  restart(false);
  FakeConsumer next;
  join(next, asked("g"));
  expect_to_have(next, {0, 3});
  topic->detach_consumer(next);
}

TEST_F(TopicConsumersTest, OpeningAnOwnCursorAgainTakesItOver) {
  publish(3);
  FakeConsumer former, next;
  join(former, asked("mine", GroupMode::own));
  expect_to_have(former, {0, 1, 2});
  broker::acknowledge(*topic, former, {Offset{1}, {}});
  ASSERT_EQ(topic->open_consumer(asked("mine", GroupMode::own), next), ClientError::none);
  EXPECT_FALSE(former.ended) << "not within the call";
  broker::acknowledge(*topic, former, {Offset{3}, {}});
  ASSERT_TRUE(run_until([&] { return former.ended && next.opened_at; }));
  EXPECT_EQ(former.ended, ClientError::fenced);
  EXPECT_EQ(next.opened_at->next, Offset{1});
  EXPECT_EQ(next.opened_at->committed, Offset{1});
  expect_to_have(next, {1, 2});
  EXPECT_EQ(next.frames.front().delivery, 2U);
  EXPECT_EQ(stats_of("mine").consumers, 1U);
  topic->detach_consumer(next);
  EXPECT_EQ(stats_of("mine").committed_offset, 1U) << "it stays";
}

TEST_F(TopicConsumersTest, ACursorWithoutANameEndsWithItsConsumer) {
  FakeConsumer one, other;
  join(one, asked("", GroupMode::own));
  join(other, asked("", GroupMode::own));
  EXPECT_EQ(topic->stats().groups.size(), 2U);
  topic->detach_consumer(one);
  EXPECT_EQ(topic->stats().groups.size(), 1U);
  topic->detach_consumer(other);
  EXPECT_THAT(topic->stats().groups, IsEmpty());
  EXPECT_FALSE(one.ended || other.ended);
}

TEST_F(TopicConsumersTest, ATimeoutRedeliversWithoutOtherEvents) {
  publish(1);
  FakeConsumer consumer;
  auto open = asked("g");
  open.ack_timeout_ms = 30;
  join(consumer, open);
  expect_to_have(consumer, {0, 0});
  EXPECT_EQ(consumer.frames[1].delivery, 2U);
  broker::acknowledge(*topic, consumer, {Offset{1}, {}});
  topic->detach_consumer(consumer);
}

TEST_F(TopicConsumersTest, AConsumerMayLeaveWhileItIsSpokenTo) {
  publish(2);
  Watcher at_once(storage, *topic), with_the_first(storage, *topic);
  at_once.leaves_as_admitted = true;
  join(at_once, asked("", GroupMode::own), at_once.is_admitted);
  join(with_the_first, asked("", GroupMode::own), with_the_first.is_admitted);
  EXPECT_TRUE(run_until([&] { return with_the_first.messages > 0; }));
  EXPECT_EQ(at_once.messages, 0U);
  EXPECT_EQ(with_the_first.messages, 1U);
  EXPECT_THAT(topic->stats().groups, IsEmpty());
}

TEST_F(TopicConsumersTest, AGroupWithoutConsumersIsDeleted) {
  FakeConsumer consumer;
  join(consumer, asked("g"));
  EXPECT_EQ(delete_group("g").error().code, ErrorCode::group_in_use);
  topic->detach_consumer(consumer);
  EXPECT_TRUE(delete_group("g").ok());
  EXPECT_EQ(delete_group("g").error().code, ErrorCode::group_not_found);
  restart(true);
  EXPECT_THAT(topic->stats().groups, IsEmpty());
  FakeConsumer again;
  join(again, asked("g"));
  topic->detach_consumer(again);
  ASSERT_TRUE(delete_group("g").ok());
  FakeConsumer third;
  join(third, asked("g"));  // although the name is still on disk
  topic->detach_consumer(third);
}

TEST_F(TopicConsumersTest, ADeletedGroupIsNotBackAfterAKill) {
  FakeConsumer consumer;
  join(consumer, asked("g"));
  topic->detach_consumer(consumer);
  ASSERT_TRUE(delete_group("g").ok());
  restart(false);
  EXPECT_THAT(topic->stats().groups, IsEmpty());
}

TEST_F(TopicConsumersTest, ADeletionThatCannotBeWrittenFails) {
  FakeConsumer consumer;
  join(consumer, asked("g"));
  topic->detach_consumer(consumer);
  fail(ENOSPC, [](FaultyStorage::Call, const std::string& path) { return is_cursor_file(path); });
  EXPECT_EQ(delete_group("g").error().code, ErrorCode::no_space);
}

// The topic's own user has another number with a new password, and must still reach its cursors.
TEST_F(TopicConsumersTest, AnOwnCursorStaysWithTheTopicsOwnUserAfterANewPassword) {
  set_own_user(7);
  FakeConsumer before;
  ASSERT_EQ(topic->open_consumer(asked("dash", GroupMode::own), before, 7), ClientError::none);
  ASSERT_TRUE(run_until([&] { return before.opened_at.has_value(); })) << "it is kept";
  topic->detach_consumer(before);
  set_own_user(8);
  FakeConsumer after;
  EXPECT_EQ(topic->open_consumer(asked("dash", GroupMode::own), after, 8), ClientError::none);
  FakeConsumer mallory;
  put_user(9);
  EXPECT_EQ(topic->open_consumer(asked("dash", GroupMode::own), mallory, 9),
            ClientError::unauthorized_access);
  topic->detach_consumer(after);
}

TEST_F(TopicConsumersTest, AnOwnCursorOfADeletedUserHasNoOwner) {
  put_user(7);
  FakeConsumer before;
  ASSERT_EQ(topic->open_consumer(asked("dash", GroupMode::own), before, 7), ClientError::none);
  ASSERT_TRUE(run_until([&] { return before.opened_at.has_value(); })) << "it is kept";
  topic->detach_consumer(before);
  put_user(8);
  FakeConsumer other;
  EXPECT_EQ(topic->open_consumer(asked("dash", GroupMode::own), other, 8), ClientError::unauthorized_access);
  remove_user(7);
  EXPECT_EQ(topic->open_consumer(asked("dash", GroupMode::own), other, 8), ClientError::none);
  topic->detach_consumer(other);
}

TEST_F(TopicConsumersTest, AStateOfManyRangesIsSavedInPiecesAndWhole) {
  constexpr std::uint64_t count = 12'000;
  publish_batch(count);
  FakeConsumer consumer;
  join(consumer, asked("g"));
  ASSERT_TRUE(run_until([&] { return !consumer.frames.empty(); }));
  std::vector<OffsetRange> every_second;
  for (std::uint64_t i = 0; i < count; i += 2) every_second.push_back({{i}, {i + 1}});
  broker::acknowledge(*topic, consumer, {std::nullopt, every_second});
  ASSERT_TRUE(run_until([&] {
    const auto stored = log::CursorFile(storage, "/topics/1").load().value_or_throw();
    return !stored.empty() && stored[0].unfinished.messages.size() == count / 2;
  }));
  restart(false);
  FakeConsumer next;
  join(next, asked("g"));
  ASSERT_TRUE(run_until([&] { return next.frames.size() == count / 2; }));
  for (std::uint64_t i = 0; i < count / 2; ++i) {
    ASSERT_EQ(next.frames[i].range, (OffsetRange{{2 * i + 1}, {2 * i + 2}}));
    ASSERT_EQ(next.frames[i].delivery, 2U);
  }
  topic->detach_consumer(next);
}

TEST_F(TopicConsumersTest, AFailedSaveAtAStopIsRepeated) {
  publish(3);
  FakeConsumer consumer;
  join(consumer, asked("g"));
  expect_to_have(consumer, {0, 1, 2});
  broker::acknowledge(*topic, consumer, {Offset{2}, {}});
  topic->begin_stop(ClientError::shutting_down);
  ASSERT_TRUE(run_until([&] { return topic->idle_on_disk(); }));
  fail(EIO, [](FaultyStorage::Call, const std::string& path) { return is_cursor_file(path); });
  topic->flush_for_stop();
  fail(0, nullptr);
  topic->flush_for_stop();
  const auto stored = log::CursorFile(storage, "/topics/1").load().value_or_throw();
  EXPECT_EQ(log::offset_of_cursor(stored, "group:g"), Offset{2});
}

TEST_F(TopicConsumersTest, DelaysOutliveTheBroker) {
  publish(3);
  FakeConsumer consumer;
  join(consumer, asked("g"));
  expect_to_have(consumer, {0, 1, 2});
  broker::reject(*topic, consumer, {3'600'000, {{{0}, {1}}}}, EventLoop::Clock::now());
  broker::reject(*topic, consumer, {600'000, {{{2}, {3}}}}, EventLoop::Clock::now());
  restart(true);
  EXPECT_EQ(stats_of("g").retrying, 2U);
  on_open = [&](FoundTopic&) { step_clock(std::chrono::seconds(700)); };
  restart(true);
  FakeConsumer next;
  join(next, asked("g"));
  expect_to_have(next, {1, 2});
  for (const auto& frame : next.frames) EXPECT_EQ(frame.delivery, 2U);
  EXPECT_EQ(stats_of("g").retrying, 1U);
  topic->detach_consumer(next);
}

TEST_F(TopicConsumersTest, NothingIsWrittenWhileNothingChanges) {
  publish(3);
  FakeConsumer consumer;
  join(consumer, asked("g"));
  expect_to_have(consumer, {0, 1, 2});
  broker::acknowledge(*topic, consumer, {std::nullopt, {{{1}, {2}}}});
  const auto stored = [&] { return log::CursorFile(storage, "/topics/1").load().value_or_throw(); };
  ASSERT_TRUE(run_until([&] { return !stored().empty() && stored()[0].unfinished.messages.size() == 2; }));
  std::atomic<int> writes = 0;
  fail(0, [&](FaultyStorage::Call call, const std::string& path) {
    writes += call == FaultyStorage::Call::write && is_cursor_file(path) ? 1 : 0;
    return false;
  });
  pass_time(std::chrono::seconds(2));
  topic->want_dispatch();
  broker::acknowledge(*topic, consumer, {std::nullopt, {{{1}, {2}}}});
  broker::extend(*topic, consumer, {60'000, {{{0}, {3}}}}, EventLoop::Clock::now());
  for (int i = 0; i < 20; ++i) {
    pass_time(std::chrono::seconds(1));
    topic->tick();
    turn(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(writes, 0);
  fail(0, {});
  topic->detach_consumer(consumer);
}

TEST_F(TopicConsumersTest, AClockThatIsSetBackDelaysNoSave) {
  publish(3);
  FakeConsumer consumer;
  join(consumer, asked("g"));
  expect_to_have(consumer, {0, 1, 2});
  const auto left = [&] {
    const auto stored = log::CursorFile(storage, "/topics/1").load().value_or_throw();
    return stored.empty() ? 0 : stored[0].unfinished.messages.size();
  };
  ASSERT_TRUE(run_until([&] { return left() == 3; }));
  // The next save may begin a second after the last one, in ten turns. Each time the clock shows the same.
  broker::acknowledge(*topic, consumer, {std::nullopt, {{{1}, {2}}}});
  constexpr int turns_max = 1000;
  for (int turns = 0; turns < turns_max && left() != 2; ++turns) {
    step_clock(-std::chrono::milliseconds(100));
    turn(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(left(), 2U);
  topic->detach_consumer(consumer);
}

TEST_F(TopicConsumersTest, AConsumerWithTooManyUnacknowledgedRangesEnds) {
  const std::uint64_t count = 2 * limits::outstanding_ranges_max + 4;
  publish_batch(count);
  FakeConsumer consumer;
  join(consumer, asked("g"));
  ASSERT_TRUE(run_until([&] { return !consumer.frames.empty(); }));
  std::vector<OffsetRange> every_second;
  for (std::uint64_t i = 0; i < count; i += 2) every_second.push_back({{i}, {i + 1}});
  broker::acknowledge(*topic, consumer, {std::nullopt, every_second});
  EXPECT_FALSE(consumer.ended) << "not within the call";
  ASSERT_TRUE(run_until([&] { return consumer.ended.has_value(); }));
  EXPECT_EQ(consumer.ended, ClientError::limit_reached);
}

/// Reads messages below offset 4 one by one.
struct SingleReads {
  static bool has_budget() { return true; }
  static bool can_take() { return true; }
  static SliceLimits limits() { return {.end = Offset{4}, .message_bytes = 1}; }
  void take(SliceSource& source, const DeliveredSlice& delivered) {
    begins.push_back(delivered.slice.range().begin.value);
    source.taken(delivered.slice.count, delivered.slice.records.size());
    context = source.context();
  }
  std::vector<std::uint64_t> begins;
  DeliveryContext context;
};

TEST_F(TopicConsumersTest, RangesAreReadWithoutAGroup) {
  publish(5);
  RecordReader reader(Offset{1});
  SingleReads reads;
  EXPECT_EQ(topic->reads().read(reader, reads), TurnEnd::no_message);
  EXPECT_THAT(reads.begins, ElementsAre(1, 2, 3));
  EXPECT_EQ(reader.offset(), Offset{4});
  EXPECT_EQ(reads.context.wall, wall_time());
  EXPECT_NE(reads.context.now, SteadyTime{});
  EXPECT_THAT(topic->stats().groups, IsEmpty());
}

TEST_F(TopicConsumersTest, NoConsumerJoinsAfterTheStopBegan) {
  FakeConsumer consumer, late;
  join(consumer, asked("g"));
  topic->begin_stop(ClientError::topic_deleted);
  EXPECT_EQ(consumer.ended, ClientError::topic_deleted);
  EXPECT_EQ(topic->open_consumer(asked("g"), late), ClientError::shutting_down);
}

TEST_F(TopicConsumersTest, ConsumersWaitForASegmentThatCannotBeOpenedAndContinueByThemselves) {
  for (int i = 0; i < 40; ++i) {
    auto bytes = lightq::test::make_batch({std::string(1000, 'm')});
    ASSERT_EQ(topic->publishing().store({bytes, 1, 1000}, {}), PublishOutcome::accepted);
  }
  topic->dispatch().published();
  restart(true);  // no segment is open
  ASSERT_GT(segments().size(), 1U);
  const std::string second = segments()[1];
  fail(EMFILE, [second](FaultyStorage::Call call, const std::string& path) {
    return call == FaultyStorage::Call::open && path == second;
  });
  FakeConsumer consumer;
  join(consumer, asked("g"));
  ASSERT_TRUE(run_until([&] { return sink.errors > 0; }));
  EXPECT_THAT(sink.lines.back(),
              testing::HasSubstr("consumers wait, because their messages cannot be read now: "));
  EXPECT_THAT(sink.lines.back(), testing::HasSubstr(second));
  const auto told = consumer.payloads().size();
  EXPECT_LT(told, 40U);
  const auto waiting = stats_of("g");
  EXPECT_EQ(waiting.next_offset, told);
  EXPECT_EQ(waiting.lost, 0U);
  EXPECT_EQ(waiting.blocked_by, "disk: Too many open files");
  fail(0, {});
  ASSERT_TRUE(run_until([&] { return consumer.payloads().size() == 40; }));
  const auto is_told = [&] { return sink.lines.back().find("no consumer waits") != std::string::npos; };
  EXPECT_TRUE(run_until(is_told)) << sink.lines.back();
  EXPECT_EQ(sink.errors, 1) << "one line for all of it";
  EXPECT_EQ(stats_of("g").lost, 0U);
  EXPECT_EQ(stats_of("g").blocked_by, "");
  topic->detach_consumer(consumer);
}

}  // namespace
}  // namespace lightq::broker
