/// Tests of the selection of dead messages by key: the messages found, the pieces, and unreadable messages.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "broker/dead_work.hpp"
#include "delivery/consumer_group_harness.hpp"
#include "delivery/fake_consumer.hpp"
#include "endpoint/topic_runtime_harness.hpp"
#include "support/late_store.hpp"
#include "topic/runtime/dead_keys.hpp"

namespace lightq::broker {
namespace {

using test::FakeConsumer;
using Offsets = std::vector<std::uint64_t>;
using Keys = std::vector<std::string>;

constexpr const char* group_of_keys = "billing";

class DeadKeysTest : public TopicRuntimeTest {
 protected:
  /// The sums over all pieces of a command.
  struct Sum {
    std::uint64_t messages = 0;
    std::uint64_t unreadable = 0;
    int pieces = 0;
    int waits = 0;
  };

  /// Publishes a batch with a message for each key. The payload of message 7 begins with "message 7".
  void publish(const Keys& keys, Codec codec = Codec::none) {
    BatchBuilder batch;
    for (const std::string& key : keys)
      batch.add(as_byte_view("message " + std::to_string(published_++) + std::string(100, '.')),
                {.key = key});
    if (codec != Codec::none) test::pack(batch, codec);
    topic->publishing().publish(batch);
    topic->dispatch().published();
  }
  /// Receives all messages, and says that they are dead.
  void kill_all() {
    FakeConsumer consumer;
    ASSERT_EQ(topic->open_consumer(test::asked(group_of_keys), consumer), ClientError::none);
    std::uint64_t received = 0;
    ASSERT_TRUE(run_until([&] {
      arrive();
      for (const auto& frame : std::exchange(consumer.frames, {})) {
        received += distance(frame.range.begin, frame.range.end);
        reject(*topic, consumer, {.ranges = {frame.range}, .kind = RejectKind::dead},
               EventLoop::Clock::now());
      }
      return received == published_;
    }));
    topic->detach_consumer(consumer);
    turn(std::chrono::microseconds(0));
  }
  Offsets list(const DeadFilter& filter, std::uint64_t* unreadable = nullptr, std::size_t page = 1000) {
    Offsets offsets;
    for (Offset from{0};;) {
      const auto listed = topic->commands().list_dead(group_of_keys, filter, from, page).value_or_throw();
      EXPECT_LE(listed.messages.size(), page);
      for (const DeadMessage& message : listed.messages) offsets.push_back(message.offset.value);
      if (unreadable != nullptr) *unreadable += listed.unreadable;
      if (!listed.next) return offsets;
      if (listed.is_pending) arrive();
      from = *listed.next;
    }
  }
  Sum act(DeadAction action, const DeadFilter& filter) {
    Sum sum;
    for (Offset from{0};;) {
      const auto piece = topic->commands().act_on_dead(group_of_keys, action, filter, from).value_or_throw();
      ++sum.pieces;
      sum.messages += piece.messages;
      sum.unreadable += piece.unreadable;
      if (!piece.next) return sum;
      sum.waits += piece.is_pending ? 1 : 0;
      if (piece.is_pending) arrive();
      from = *piece.next;
    }
  }
  /// Changes a byte of a message in the segment's file.
  void damage(const std::string& payload) {
    ASSERT_TRUE(run_until([this] { return topic->idle_on_disk(); })) << "its thread reads the same bytes";
    auto& bytes = storage.bytes_of(segments().at(0));
    const ByteView wanted = as_byte_view(payload);
    const auto at = std::search(bytes.begin(), bytes.end(), wanted.begin(), wanted.end());
    ASSERT_NE(at, bytes.end());
    *at ^= std::byte{1};
  }
  void arrive() {
    while (late_ != nullptr && late_->arrive()) {
    }
  }

  test::LateStore* late_ = nullptr;
  std::uint64_t published_ = 0;
};

TEST_F(DeadKeysTest, AKeyMeansTheMessagesThatHaveExactlyThisKey) {
  publish({"tea", "te", "", "tea"});
  publish({"teas", "tea", "Tea"}, Codec::lz4);
  publish({"tea"}, Codec::zstd);
  kill_all();
  EXPECT_EQ(list({}), (Offsets{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(list({.key = "tea"}), (Offsets{0, 3, 5, 7}));
  EXPECT_EQ(list({.key = "tea"}, nullptr, 1), (Offsets{0, 3, 5, 7})) << "in pages of one message";
  EXPECT_EQ(list({.key = ""}), Offsets{2});
  EXPECT_EQ(list({.key = "coffee"}), Offsets{});
  EXPECT_EQ(list({.key = "tea", .ranges = {{{1}, {6}}}}), (Offsets{3, 5}));
  EXPECT_EQ(list({.cause = DeathCause::attempts, .key = "tea"}), Offsets{});
}

TEST_F(DeadKeysTest, ACommandCountsThenChangesOnlyMessagesWithTheKey) {
  publish({"tea", "milk", "tea"});
  publish({"milk", "tea"});
  kill_all();
  EXPECT_EQ(act(DeadAction::count, {.key = "tea"}).messages, 3U);
  EXPECT_EQ(list({}).size(), 5U) << "a count changes nothing";
  EXPECT_EQ(act(DeadAction::retry, {.key = "tea", .ranges = {{{2}, {5}}}}).messages, 2U);
  EXPECT_EQ(list({}), (Offsets{0, 1, 3}));
  EXPECT_EQ(act(DeadAction::purge, {.key = "milk"}).messages, 2U);
  EXPECT_EQ(list({}), Offsets{0});
  FakeConsumer consumer;
  ASSERT_EQ(topic->open_consumer(test::asked(group_of_keys), consumer), ClientError::none);
  std::vector<std::string> payloads;
  ASSERT_TRUE(run_until([&] {
    for (const auto& frame : std::exchange(consumer.frames, {}))
      for (const auto& payload : frame.payloads) payloads.push_back(payload.substr(0, 9));
    return payloads.size() >= 2;
  }));
  EXPECT_EQ(payloads, (std::vector<std::string>{"message 2", "message 4"}));
  topic->detach_consumer(consumer);
}

TEST_F(DeadKeysTest, OnePieceReadsABoundedNumberOfMessages) {
  constexpr std::uint64_t messages_of_piece = 256;
  Keys keys;
  for (int i = 0; i < 1000; ++i) keys.push_back(i % 100 == 99 ? "rare" : "usual");
  publish(keys);
  kill_all();
  const Sum sum = act(DeadAction::count, {.key = "rare"});
  EXPECT_EQ(sum.messages, 10U);
  EXPECT_EQ(sum.pieces, 4);
  const auto first =
      topic->commands().act_on_dead(group_of_keys, DeadAction::count, {.key = "rare"}, Offset{0});
  EXPECT_EQ(first->next, Offset{messages_of_piece});
}

TEST_F(DeadKeysTest, OnePieceReadsABoundedNumberOfBytes) {
  for (int i = 0; i < 40; ++i) {
    BatchBuilder batch;
    batch.add(as_byte_view(std::string(100'000, 'x')), {.key = "long"});
    topic->publishing().publish(batch);
    ++published_;
  }
  topic->dispatch().published();
  kill_all();
  const Sum sum = act(DeadAction::count, {.key = "long"});
  EXPECT_EQ(sum.messages, 40U);
  EXPECT_EQ(sum.pieces, 4) << "11 batches are more than a MiB";
}

TEST_F(DeadKeysTest, AMessageThatCannotBeReadDoesNotMatchAndIsCounted) {
  publish({"tea", "tea"});
  publish({"tea"});
  publish({"tea", "milk"});
  kill_all();
  damage("message 1");
  restart(true);  // a log does not check its own writes again
  std::uint64_t unreadable = 0;
  EXPECT_EQ(list({.key = "tea"}, &unreadable), (Offsets{2, 3}));
  EXPECT_EQ(unreadable, 2U) << "the messages of a batch have one checksum";
  const Sum counted = act(DeadAction::count, {.key = "tea"});
  EXPECT_EQ(counted.messages, 2U);
  EXPECT_EQ(counted.unreadable, 2U);
  const Sum purged = act(DeadAction::purge, {.key = "tea"});
  EXPECT_EQ(purged.messages, 2U);
  EXPECT_EQ(purged.unreadable, 2U);
  EXPECT_EQ(list({}), (Offsets{0, 1, 4})) << "unreadable messages stay";
  EXPECT_EQ(act(DeadAction::count, {.key = "tea", .ranges = {{{1}, {2}}}}).unreadable, 1U)
      << "only those that the command means";
  EXPECT_EQ(act(DeadAction::purge, {}).unreadable, 0U) << "without a key nothing is read";
}

class DeadKeysOfALateStore : public DeadKeysTest {
 protected:
  DeadKeysOfALateStore() {
    change_store = [this](std::unique_ptr<TopicStore> store) {
      auto late = std::make_unique<test::LateStore>(std::move(store));
      late_ = late.get();
      return late;
    };
    drop();
    start();
  }
  struct Work {
    Offset from;
    std::uint64_t messages = 0;
    int calls = 0;
    int waits = 0;
    bool is_done = false;
    std::optional<ErrorCode> failure;
  };

  /// Begins to count the messages with the key "tea".
  void begin_work() {
    const auto piece = [this](TopicRuntime& found) {
      ++work_.calls;
      const auto counted =
          found.commands().act_on_dead(group_of_keys, DeadAction::count, {.key = "tea"}, work_.from);
      work_.messages += counted->messages;
      work_.is_done = !counted->next.has_value();
      if (work_.is_done) return DeadWork::Then::done;
      work_.from = *counted->next;
      work_.waits += counted->is_pending ? 1 : 0;
      return counted->is_pending ? DeadWork::Then::readable : DeadWork::Then::next_turn;
    };
    const auto find = [this]() -> Result<TopicRuntime*> {
      if (is_gone_) return Error{ErrorCode::topic_not_found, "topic not found"};
      return topic.get();
    };
    DeadWork::begin({.loop = loop(),
                     .find = find,
                     .piece = piece,
                     .failed =
                         [this](const Error& why) {
                           EXPECT_EQ(work_.failure, std::nullopt) << "it fails once";
                           work_.failure = why.code;
                         }},
                    *topic);
  }

  Work work_ = {};
  bool is_gone_ = false;
};

TEST_F(DeadKeysOfALateStore, AreFoundAlthoughMessagesArePending) {
  for (int i = 0; i < 5; ++i) publish({"tea", "milk"});
  kill_all();
  EXPECT_EQ(list({.key = "tea"}), (Offsets{0, 2, 4, 6, 8}));
  const Sum counted = act(DeadAction::count, {.key = "milk"});
  EXPECT_EQ(counted.messages, 5U);
  EXPECT_EQ(counted.unreadable, 0U) << "a pending message is waited for";
  EXPECT_EQ(act(DeadAction::purge, {.key = "tea"}).messages, 5U);
  EXPECT_EQ(list({}), (Offsets{1, 3, 5, 7, 9}));
}

TEST_F(DeadKeysOfALateStore, APendingMessageEndsThePieceAndIsReadNext) {
  publish({"tea"});
  publish({"tea"});
  kill_all();
  std::vector<Offset> ends;
  DeadPiece piece{.next = Offset{0}};
  while (piece.next) {
    piece = topic->commands()
                .act_on_dead(group_of_keys, DeadAction::count, {.key = "tea"}, *piece.next)
                .value_or_throw();
    if (!piece.is_pending) continue;
    ends.push_back(*piece.next);
    arrive();
  }
  EXPECT_TRUE(std::ranges::is_sorted(ends));
}

TEST_F(DeadKeysOfALateStore, AWorkWaitsForPendingMessagesAndGoesOnWhenTheStoreReportsThem) {
  for (int i = 0; i < 20; ++i) publish({"tea", "milk"});
  kill_all();
  arrive();  // and about half of the batches that were read are away again
  begin_work();
  for (; !work_.is_done; arrive()) {
    const int calls = work_.calls;
    turn(std::chrono::microseconds(0));
    if (work_.is_done) break;
    turn(std::chrono::microseconds(0));
    ASSERT_LE(work_.calls, calls + 1) << "it is not called while messages are pending";
    ASSERT_LT(work_.calls, 100);
  }
  EXPECT_EQ(work_.messages, 20U);
  EXPECT_GE(work_.waits, 1);
  EXPECT_EQ(work_.failure, std::nullopt);
}

TEST_F(DeadKeysOfALateStore, AWorkThatWaitsEndsWithItsTopic) {
  for (int i = 0; i < 20; ++i) publish({"tea", "milk"});
  kill_all();
  arrive();  // and about half of the batches that were read are away again
  begin_work();
  ASSERT_FALSE(work_.is_done);
  ASSERT_GE(work_.waits, 1);
  is_gone_ = true;
  topic->begin_stop(ClientError::topic_deleted);
  turn(std::chrono::microseconds(0));
  EXPECT_EQ(work_.failure, ErrorCode::topic_not_found);
  EXPECT_FALSE(work_.is_done);
}

}  // namespace
}  // namespace lightq::broker
