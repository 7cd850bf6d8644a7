/// Tests of the commands of the control socket on a topic, with a failing disk and over restarts of the
/// broker.
#include <atomic>
#include <cstdint>

#include "delivery/consumer_group_harness.hpp"
#include "delivery/fake_consumer.hpp"
#include "endpoint/topic_runtime_harness.hpp"

namespace lightq::broker {
namespace {

using test::FakeConsumer;

bool holds_cursors(const std::string& path) {
  return path.find("/cursors.") != std::string::npos;
}
bool holds_producers(const std::string& path) {
  return path.find("/producers.") != std::string::npos;
}

class TopicRuntimeCommandsTest : public TopicRuntimeTest {
 protected:
  using Answer = std::optional<Result<std::uint64_t>>;

  /// Opens a group and leaves it. The group stays.
  void make_group(const std::string& name) {
    FakeConsumer consumer;
    ASSERT_EQ(topic->open_consumer(test::asked(name), consumer), ClientError::none);
    ASSERT_TRUE(run_until([&] { return consumer.opened_at.has_value(); }));
    topic->detach_consumer(consumer);
  }
  void publish(std::uint64_t messages) {
    for (std::uint64_t i = 0; i < messages; ++i) {
      auto bytes = test::make_batch({"message"});
      ASSERT_EQ(topic->publishing().store({bytes, 1, 7}, {}), PublishOutcome::accepted);
    }
    topic->dispatch().published();
  }
  static TopicCommands::Answered into(Answer& answer) {
    return [&answer](const Result<std::uint64_t>& result) {
      EXPECT_FALSE(answer.has_value()) << "answered twice";
      answer = result;
    };
  }
  Answer pause(const std::string& group, bool paused = true) {
    Answer answer;
    topic->commands().set_group_paused(group, paused, into(answer));
    EXPECT_TRUE(run_until([&] { return answer.has_value(); }));
    return answer;
  }
  Answer purge() {
    Answer answer;
    topic->commands().purge(into(answer));
    EXPECT_TRUE(run_until([&] { return answer.has_value(); }));
    return answer;
  }
  Answer purge_of(const std::string& group) {
    Answer answer;
    topic->commands().purge_group(group, into(answer));
    EXPECT_TRUE(run_until([&] { return answer.has_value(); }));
    return answer;
  }
  Answer seek(const std::string& group, Offset to) {
    Answer answer;
    topic->commands().seek_group(group, to, into(answer));
    EXPECT_TRUE(run_until([&] { return answer.has_value(); }));
    return answer;
  }
  [[nodiscard]] protocol::GroupStats group(const std::string& name) {
    for (const auto& stats : topic->stats().groups) {
      if (stats.group == name) return stats;
    }
    return {};
  }
};

TEST_F(TopicRuntimeCommandsTest, AChangedTimeToLiveIsInTheDefinitionAndTheStatistics) {
  ASSERT_TRUE(topic->commands().change({.message_ttl_ms = 5'000}).ok());
  EXPECT_EQ(topic->definition().settings.message_ttl_ms, 5'000U);
  EXPECT_EQ(topic->stats().settings.message_ttl_ms, 5'000U);
}

TEST_F(TopicRuntimeCommandsTest, AMovedGroupIsOnTheDiskWhenItIsAnswered) {
  using From = protocol::GroupPlace::From;
  make_group("g");
  publish(5);
  ASSERT_EQ(purge_of("g")->value(), 5U);
  const auto move = topic->commands().group_move("g", {From::offset, 3});
  ASSERT_TRUE(move.ok());
  EXPECT_EQ(*move, (protocol::GroupMove{5, 3, 0, 2}));
  EXPECT_EQ(group("g").pending, 0U) << "a look moves nothing";
  EXPECT_TRUE(seek("g", {3})->ok());
  EXPECT_EQ(group("g").pending, 2U);
  restart(false);
  EXPECT_EQ(group("g").committed_offset, 3U);
  EXPECT_EQ(topic->commands().group_move("g", {From::first})->offset, 0U);
  EXPECT_EQ(topic->commands().group_move("g", {From::next})->pending, 0U);
  EXPECT_EQ(topic->commands().group_move("g", {From::offset, 99})->offset, 5U);
  EXPECT_EQ(topic->commands().group_move("g", {From::time, 0})->offset, 0U);
  EXPECT_EQ(topic->commands().group_move("absent", {From::next}).error().code, ErrorCode::group_not_found);
  EXPECT_EQ(seek("absent", {0})->error().code, ErrorCode::group_not_found);
}

TEST_F(TopicRuntimeCommandsTest, ASmallerCapacityAppliesToTheNextMessage) {
  make_group("g");  // it holds the log
  publish(3);
  ASSERT_TRUE(topic->commands().change({.overflow = protocol::Overflow::reject, .capacity_bytes = 1}).ok());
  auto bytes = test::make_batch({"message"});
  EXPECT_EQ(topic->publishing().store({bytes, 1, 7}, {}), PublishOutcome::rejected);
  ASSERT_TRUE(topic->commands().change({.capacity_bytes = 0}).ok());
  publish(1);
  EXPECT_EQ(topic->store().next_offset(), Offset{4});
}

TEST_F(TopicRuntimeCommandsTest, AGroupsPauseIsOnTheDiskWhenItIsAnswered) {
  make_group("g");
  EXPECT_TRUE(pause("g")->ok());
  restart(false);
  EXPECT_TRUE(group("g").paused);
  EXPECT_TRUE(pause("g", false)->ok());
  restart(false);
  EXPECT_FALSE(group("g").paused);
  EXPECT_EQ(pause("absent")->error().code, ErrorCode::group_not_found);
}

TEST_F(TopicRuntimeCommandsTest, APauseThatCannotBeSavedIsReportedAndInForce) {
  make_group("g");
  for (const auto& [error, code] :
       {std::pair{ENOSPC, ErrorCode::no_space}, std::pair{EIO, ErrorCode::io_error}}) {
    fail(error, [](FaultyStorage::Call call, const std::string& path) {
      return call != FaultyStorage::Call::read && holds_cursors(path);
    });
    const auto answer = pause("g");
    ASSERT_FALSE(answer->ok());
    EXPECT_EQ(answer->error().code, code);
    EXPECT_TRUE(group("g").paused);
  }
  fail(0, {});
  EXPECT_TRUE(pause("g")->ok()) << "the disk is well again";
  restart(false);
  EXPECT_TRUE(group("g").paused);
}

TEST_F(TopicRuntimeCommandsTest, AStartMakesRetriedMessagesReadyWithoutAnyClient) {
  FakeConsumer consumer;
  ASSERT_EQ(topic->open_consumer(test::asked("workers"), consumer), ClientError::none);
  publish(1);
  ASSERT_TRUE(run_until([&] { return !consumer.frames.empty(); }));
  reject(*topic, consumer, {.delay_ms = 500, .ranges = {{{0}, {1}}}}, EventLoop::Clock::now());
  ASSERT_EQ(group("workers").retrying, 1U);
  topic->detach_consumer(consumer);
  restart(true);
  EXPECT_TRUE(run_until([&] { return group("workers").ready == 1; }));
  EXPECT_EQ(group("workers").retrying, 0U);
}

TEST_F(TopicRuntimeCommandsTest, AStopAfterNothingWasDoneAsksNothingOfTheDisk) {
  make_group("g");
  make_group("another");
  EXPECT_TRUE(pause("g")->ok());
  publish(5);
  restart(true);
  std::atomic<int> asked = 0;
  fail(0, [&asked](FaultyStorage::Call call, const std::string&) {
    using Call = FaultyStorage::Call;
    asked += call != Call::read && call != Call::open && call != Call::map ? 1 : 0;
    return false;
  });
  restart(true);
  restart(true);
  EXPECT_EQ(asked, 0);
  EXPECT_TRUE(group("g").paused);
  EXPECT_FALSE(group("another").paused);
  EXPECT_EQ(topic->stats().next_offset, 5U);
  restart(false);  // without a clean stop, the files' state is unknown to the next start
  publish(1);
  restart(false);
  asked = 0;
  restart(true);
  EXPECT_GT(asked, 0);
  fail(0, {});
}

TEST_F(TopicRuntimeCommandsTest, ATopicWithUnsavedCursorsIsNotClosed) {
  make_group("g");
  publish(5);
  fail(EIO, [](FaultyStorage::Call call, const std::string& path) {
    return call != FaultyStorage::Call::read && holds_cursors(path);
  });
  EXPECT_FALSE(pause("g")->ok());
  topic->begin_stop(ClientError::shutting_down);
  ASSERT_TRUE(run_until([this] { return topic->idle_on_disk(); }));
  topic->flush_for_stop();
  topic.reset();
  fail(0, {});
  auto log = log::SegmentLog::open({.directory = "/topics/1"}, storage, *pool, Timestamp{1'000'000});
  ASSERT_TRUE(log.ok());
  EXPECT_EQ((*log)->durable_offset(), Offset{5});
  EXPECT_FALSE((*log)->recovery().closed) << "its mark would say that the cursors are on disk";
  log->reset();
  start();
}

TEST_F(TopicRuntimeCommandsTest, FilesOfADeletedTopicAreRemovedOnTheDiskThread) {
  publish(3);
  topic->begin_stop(ClientError::topic_deleted);
  ASSERT_TRUE(run_until([this] { return topic->idle_on_disk(); }));
  std::unique_ptr<TopicStore> files;
  topic->pass_store_to([&](std::unique_ptr<TopicStore> left) { files = std::move(left); });
  topic.reset();
  ASSERT_NE(files, nullptr);
  StoreRemovalJob job(std::move(files));
  EXPECT_FALSE(segments().empty()) << "the reactor's thread removes none";
  job.run();
  EXPECT_TRUE(job.result().ok());
  EXPECT_TRUE(segments().empty());
  start();
  EXPECT_EQ(topic->stats().next_offset, 0U);
}

TEST_F(TopicRuntimeCommandsTest, CommandsDuringAStopReceiveShuttingDown) {
  make_group("g");
  Answer paused, purged;
  topic->commands().set_group_paused("g", true, into(paused));
  topic->commands().purge(into(purged));
  topic->begin_stop(ClientError::shutting_down);
  ASSERT_TRUE(paused && purged);
  EXPECT_EQ(paused->error().code, ErrorCode::shutting_down);
  EXPECT_EQ(purged->error().code, ErrorCode::shutting_down);
  Answer late;
  topic->commands().purge(into(late));
  EXPECT_EQ(late->error().code, ErrorCode::shutting_down);
}

TEST_F(TopicRuntimeCommandsTest, PurgedMessagesDoNotReappearAfterAnyCrash) {
  make_group("g");
  FakeProducer producer(true);
  open(producer);
  ASSERT_TRUE(run_until([&] { return producer.is_admitted; }));
  for (std::uint64_t at = 0; at < 5; ++at) send(producer, at);
  EXPECT_EQ(purge()->value(), 5U);
  EXPECT_EQ(topic->stats().first_offset, topic->stats().next_offset);
  topic->begin_stop(ClientError::shutting_down);
  ASSERT_TRUE(run_until([this] { return topic->idle_on_disk(); }));
  topic.reset();
  storage.power_cut([] { return false; });
  start();
  const auto stats = topic->stats();
  EXPECT_EQ(stats.first_offset, stats.next_offset);
  EXPECT_EQ(stats.next_offset, 5U) << "the log was synced before the producers' file";
  EXPECT_EQ(group("g").next_offset, 5U);
  FakeProducer again(true);
  const auto opened = topic->publishing().open(producer.identity, again, {});
  EXPECT_EQ(opened.refusal, ClientError::none) << "it is known though its messages are gone";
  EXPECT_EQ(opened.producer.expected, 5U);
  topic->publishing().detach(again);
}

TEST_F(TopicRuntimeCommandsTest, FilesThatAreStillThereAreDroppedAtTheNextStart) {
  make_group("g");
  publish(5);
  fail(EIO, [](FaultyStorage::Call call, const std::string& path) {  // no segment can be removed
    const bool goes = call == FaultyStorage::Call::unlink || call == FaultyStorage::Call::rename;
    return goes && path.ends_with(log::segment_name(Offset{0}));
  });
  EXPECT_EQ(purge()->value(), 5U);
  publish(2);
  restart(false);
  ASSERT_TRUE(storage.exists("/topics/1/" + log::segment_name(Offset{0})));
  EXPECT_EQ(topic->stats().first_offset, 5U);
  EXPECT_EQ(topic->stats().next_offset, 7U);
  EXPECT_EQ(group("g").next_offset, 5U);
  EXPECT_EQ(group("g").lost, 0U);
  fail(0, {});
  publish(1);
  EXPECT_TRUE(run_until([&] { return !storage.exists("/topics/1/" + log::segment_name(Offset{0})); }));
}

TEST_F(TopicRuntimeCommandsTest, NothingIsDroppedBeforeAStartCanDoWithoutIt) {
  make_group("g");
  FakeProducer producer(false);
  open(producer);
  ASSERT_TRUE(run_until([&] { return producer.is_admitted; }));
  for (std::uint64_t at = 0; at < 5; ++at) send(producer, at);
  for (const auto& which : {holds_producers, holds_cursors}) {
    fail(EIO, [which](FaultyStorage::Call call, const std::string& path) {
      return call != FaultyStorage::Call::read && which(path);
    });
    const auto answer = purge();
    ASSERT_FALSE(answer->ok());
    EXPECT_EQ(answer->error().code, ErrorCode::io_error);
    EXPECT_EQ(topic->stats().first_offset, 0U);
    EXPECT_EQ(group("g").next_offset, 5U) << "it has gone on all the same";
  }
  fail(0, {});
  EXPECT_EQ(purge()->value(), 5U);
  EXPECT_EQ(topic->stats().first_offset, 5U);
  topic->publishing().detach(producer);
}

TEST_F(TopicRuntimeCommandsTest, OnAFullDiskAPurgeFreesSpaceAndReportsIt) {
  make_group("g");
  FakeProducer producer(false);
  open(producer);
  ASSERT_TRUE(run_until([&] { return producer.is_admitted; }));
  std::uint64_t sent = 0;
  for (const auto& which : {holds_producers, holds_cursors}) {
    send(producer, sent++);
    fail(ENOSPC, [which](FaultyStorage::Call call, const std::string& path) {
      return call != FaultyStorage::Call::read && which(path);
    });
    const auto answer = purge();
    ASSERT_FALSE(answer->ok());
    EXPECT_EQ(answer->error().code, ErrorCode::no_space);
    EXPECT_EQ(topic->stats().first_offset, sent);
    EXPECT_EQ(topic->stats().next_offset, sent);
    fail(0, {});
  }
  EXPECT_EQ(purge()->value(), 0U);
  topic->publishing().detach(producer);
}

TEST_F(TopicRuntimeCommandsTest, AfterAFailedSyncAPurgeIsRefusedImmediately) {
  FakeProducer producer(false);
  open(producer);
  ASSERT_TRUE(run_until([&] { return producer.is_admitted; }));
  fail(EIO, [](FaultyStorage::Call call, const std::string& path) {
    return call == FaultyStorage::Call::sync && !holds_producers(path) && !holds_cursors(path);
  });
  send(producer, 0);
  const auto answer = purge();
  ASSERT_FALSE(answer->ok());
  EXPECT_EQ(answer->error().code, ErrorCode::io_error);
  topic->publishing().detach(producer);
}

TEST_F(TopicRuntimeCommandsTest, ATraceVisitsTheGroupsInSeveralTurns) {
  for (const auto* name : {"first", "removed", "second", "third"}) make_group(name);
  publish(1);
  ASSERT_TRUE(run_until([this] { return topic->idle_on_disk(); }));
  MessageTracing tracing(Offset{0}, 0);  // one group in each turn
  const auto then = [&] {
    return topic->commands().trace(tracing, {EventLoop::Clock::now(), {}}).value_or_throw();
  };
  ASSERT_EQ(then(), MessageTracing::Then::next_turn);
  Answer removed;
  topic->commands().delete_group("removed", into(removed));
  ASSERT_TRUE(run_until([&] { return removed.has_value(); }));
  ASSERT_TRUE(removed->ok());
  ASSERT_EQ(then(), MessageTracing::Then::next_turn);
  ASSERT_EQ(then(), MessageTracing::Then::done);
  EXPECT_GT(tracing.work_bytes(), 0U);
  std::vector<std::string> names;
  for (const TracedInGroup& group : tracing.take().groups) names.push_back(group.trace.group);
  EXPECT_EQ(names, (std::vector<std::string>{"first", "second", "third"}));

  MessageTracing whole(Offset{0});
  const auto all = topic->commands().trace(whole, {EventLoop::Clock::now(), {}}).value_or_throw();
  EXPECT_EQ(all, MessageTracing::Then::done) << "few groups are one piece";
  EXPECT_EQ(whole.take().groups.size(), 3U);
}

}  // namespace
}  // namespace lightq::broker
