/// Tests of the messages from a topic to its session producers when its disk fails.
#include <cstdint>

#include "endpoint/topic_runtime_harness.hpp"

namespace lightq::broker {
namespace {

bool is_producer_file(const std::string& path) {
  return path.find("/producers.") != std::string::npos;
}

TEST_F(TopicRuntimeTest, AProducerThatCannotBeSavedReceivesTheReason) {
  for (const auto& [error, code] :
       {std::pair{ENOSPC, ClientError::no_space}, std::pair{EIO, ClientError::io_error}}) {
    fail(error, [](FaultyStorage::Call call, const std::string& path) {
      return call != FaultyStorage::Call::read && is_producer_file(path);
    });
    FakeProducer producer(true);
    open(producer);
    EXPECT_TRUE(run_until([&] { return producer.ended.has_value(); }));
    EXPECT_EQ(producer.ended, code);
    EXPECT_FALSE(producer.is_admitted);
    EXPECT_EQ(topic->producers().connected(), 0U);
    FakeProducer again(true);
    EXPECT_EQ(topic->publishing().open(producer.identity, again, {}).refusal, ClientError::unknown_producer)
        << "an id that nobody was told of takes no place";
  }
  fail(0, {});
  FakeProducer producer(true);
  open(producer);
  EXPECT_TRUE(run_until([&] { return producer.is_admitted; })) << "the disk is well again";
  topic->publishing().detach(producer);
}

TEST_F(TopicRuntimeTest, AfterAFailedSyncNoProducerWaitsForDurability) {
  FakeProducer durable(true), quick(false);
  open(durable);
  open(quick);
  ASSERT_TRUE(run_until([&] { return durable.is_admitted && quick.is_admitted; }));
  fail(EIO, [](FaultyStorage::Call call, const std::string& path) {
    return call == FaultyStorage::Call::sync && !is_producer_file(path);
  });
  send(durable, 0);
  EXPECT_TRUE(run_until([&] { return durable.ended.has_value(); }));
  EXPECT_EQ(durable.ended, ClientError::io_error);
  EXPECT_EQ(sink.errors, 1) << "the operator is told, once";
  fail(0, {});  // no effect: the state of the disk stays unknown
  EXPECT_FALSE(quick.ended) << "that it is in the log is all that it wants to know";
  send(quick, 0);

  FakeProducer again(true), takes_over(false);
  open(again, durable.identity);
  open(takes_over, {quick.identity.id, 1});
  EXPECT_EQ(quick.ended, ClientError::fenced);
  EXPECT_TRUE(run_until([&] { return again.ended && takes_over.ended; }));
  EXPECT_EQ(again.ended, ClientError::io_error);
  EXPECT_EQ(takes_over.ended, ClientError::io_error) << "that it has the id cannot be made durable";
  EXPECT_FALSE(again.is_admitted || takes_over.is_admitted);
  EXPECT_EQ(topic->producers().connected(), 0U);
  EXPECT_EQ(sink.errors, 1);
}

// Another user must not take a producer over. That user knows the id and has a grant to produce to the topic.
TEST_F(TopicRuntimeTest, AProducerIsOpenedOnlyByItsUserAlsoAfterARestart) {
  FakeProducer alice(false), mallory(false);
  open(alice, {}, 42);
  ASSERT_TRUE(run_until([&] { return alice.is_admitted; }));
  send(alice, 0);
  for (int start = 0; start < 2; ++start) {
    for (const std::uint16_t epoch : std::initializer_list<std::uint16_t>{0, 1, 32'767, 65'535}) {
      EXPECT_EQ(topic->publishing().open({alice.identity.id, epoch}, mallory, {.user = 43}).refusal,
                ClientError::unknown_producer);
    }
    if (start == 0) {
      EXPECT_FALSE(alice.ended);
      restart(true);
    }
  }
  FakeProducer again(false);
  open(again, alice.identity, 42);
  EXPECT_TRUE(run_until([&] { return again.is_admitted; }));
  topic->publishing().detach(again);
}

TEST_F(TopicRuntimeTest, TheTopicsOwnUserKeepsItsProducersAfterANewPassword) {
  set_own_user(42);
  FakeProducer producer(false);
  open(producer, {}, 42);
  ASSERT_TRUE(run_until([&] { return producer.is_admitted; }));
  topic->publishing().detach(producer);
  set_own_user(57);
  FakeProducer former(false), again(false);
  EXPECT_EQ(topic->publishing().open(producer.identity, former, {.user = 42}).refusal,
            ClientError::unknown_producer);
  open(again, producer.identity, 57);
  topic->publishing().detach(again);
}

// A connected producer must not count as idle. This one is silent for 8 days; then its connection breaks, and
// it opens again immediately.
TEST_F(TopicRuntimeTest, AProducerThatWasConnectedUntilNowIsRemembered) {
  FakeProducer silent(false);
  open(silent);
  ASSERT_TRUE(run_until([&] { return silent.is_admitted; }));
  send(silent, 0);
  for (int day = 0; day < 8; ++day) {
    step_clock(std::chrono::hours(24));
    FakeProducer other(false);
    open(other);
    topic->publishing().detach(other);
  }
  topic->publishing().detach(silent);
  FakeProducer other(false);
  open(other);
  topic->publishing().detach(other);
  const auto opened = topic->publishing().open(silent.identity, silent, {});
  EXPECT_EQ(opened.refusal, ClientError::none);
  EXPECT_EQ(opened.producer.expected, 1U);
  topic->publishing().detach(silent);
}

}  // namespace
}  // namespace lightq::broker
