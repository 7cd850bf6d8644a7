/// Tests of the messages that retention drops, and of the producers that a start must still know.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "endpoint/topic_runtime_harness.hpp"

namespace lightq::broker {
namespace {

constexpr std::size_t message_bytes = 100'000;

class TopicRuntimeThatDrops : public TopicRuntimeTest {
 protected:
  TopicRuntimeThatDrops()
      : TopicRuntimeTest({.broker_type = protocol::BrokerType::file,
                          .overflow = protocol::Overflow::drop_oldest,
                          .capacity_bytes = limits::MiB,
                          .segment_bytes = limits::segment_bytes_min}) {}

  /// Makes writes of the producers' file fail.
  void fail_saves(int error) {
    fail(error, [](FaultyStorage::Call call, const std::string& path) {
      const bool reads = call == FaultyStorage::Call::read || call == FaultyStorage::Call::open;
      return !reads && path.find("/producers.") != std::string::npos;
    });
  }
  /// Sends messages that each fill a segment of their own, which is slightly larger.
  void send_long(const FakeProducer& producer, std::uint64_t count) {
    for (std::uint64_t end = next_ + count; next_ < end; ++next_) {
      auto bytes = test::make_batch_of_producer(producer.identity.id, producer.identity.epoch, next_,
                                                {std::string(message_bytes, 'm')});
      ASSERT_EQ(topic->publishing().store({bytes, 1, message_bytes}, {producer.identity, next_, 1}),
                PublishOutcome::accepted);
      topic->dispatch().published();
      if (next_ % 8 != 0) continue;
      ASSERT_TRUE(run_until([this] { return topic->idle_on_disk(); }));
    }
  }
  void begin(FakeProducer& producer) {
    open(producer);
    ASSERT_TRUE(run_until([&] { return producer.is_admitted; }));
  }
  std::size_t segment_files() {
    const auto paths = storage.paths();
    return static_cast<std::size_t>(std::ranges::count_if(paths, [](const std::string& path) {
      return path.starts_with("/topics/1/") && path.ends_with(".seg");
    }));
  }
  /// The segments of the capacity, one more, and one for unwritten messages.
  static constexpr std::size_t few_files = limits::MiB / message_bytes + 2;

 private:
  std::uint64_t next_ = 0;
};

// A producer must not become unknown because its messages are gone. The broker is killed after all messages
// that the producers' file covers, and many later ones, were dropped.
TEST_F(TopicRuntimeThatDrops, AProducerIsKnownAfterAKillThoughItsMessagesWereDroppedSinceItWasSaved) {
  FakeProducer producer(false);
  begin(producer);
  fail_saves(EIO);
  send_long(producer, 80);
  EXPECT_GT(topic->stats().first_offset, 60U);
  restart(false);
  fail(0, {});
  FakeProducer again(false);
  const auto opened = topic->publishing().open(producer.identity, again, {});
  EXPECT_EQ(opened.refusal, ClientError::none);
  EXPECT_EQ(opened.producer.expected, 80U);
  topic->publishing().detach(again);
}

TEST_F(TopicRuntimeThatDrops, TheFilesGoWhenTheProducersAreSavedWithoutAnyFurtherMessage) {
  FakeProducer producer(false);
  begin(producer);
  send_long(producer, 80);
  EXPECT_TRUE(run_until([this] { return segment_files() <= few_files; })) << segment_files();
  EXPECT_EQ(sink.errors, 0);
  topic->publishing().detach(producer);
}

// Messages of plain producers belong to no known producer, but lie in the same files.
TEST_F(TopicRuntimeThatDrops, MessagesOfUnknownProducersDoNotKeepTheFilesForGood) {
  FakeProducer producer(false);
  begin(producer);
  topic->publishing().detach(producer);
  for (int i = 0; i < 40; ++i) {
    auto bytes = test::make_batch({std::string(message_bytes, 'm')});
    ASSERT_EQ(topic->publishing().store({bytes, 1, message_bytes}, {}), PublishOutcome::accepted);
    topic->dispatch().published();
  }
  EXPECT_TRUE(run_until([this] { return segment_files() <= few_files; })) << segment_files();
}

TEST_F(TopicRuntimeThatDrops, OnAFullDiskDroppedFilesFreeSpace) {
  FakeProducer producer(false);
  begin(producer);
  fail_saves(ENOSPC);
  send_long(producer, 80);
  EXPECT_TRUE(run_until([this] { return segment_files() <= few_files; })) << segment_files();
  topic->publishing().detach(producer);
}

TEST_F(TopicRuntimeThatDrops, IfSavesFailTheFilesAreLimitedAndTheOperatorIsWarned) {
  FakeProducer producer(false);
  begin(producer);
  fail_saves(EIO);
  send_long(producer, 1700);
  constexpr std::size_t most = 128 * limits::MiB / message_bytes + few_files;
  EXPECT_TRUE(run_until([this] { return segment_files() <= most; })) << segment_files();
  EXPECT_GT(segment_files(), most / 2);
  EXPECT_EQ(sink.errors, 2) << "that they cannot be saved, and what that means";
  fail(0, {});
  EXPECT_TRUE(run_until([this] { return segment_files() <= few_files; })) << segment_files();
  topic->publishing().detach(producer);
}

}  // namespace
}  // namespace lightq::broker
