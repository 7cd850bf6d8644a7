/// Tests the named cursors of the embedded queue.
#include <thread>

#include "queue/queue_support.hpp"

namespace lightq::test {
namespace {

TEST_F(QueueTest, ANewCursorBeginsAtTheGivenStart) {
  Queue queue = open({.segment_bytes = 4 * limits::KiB, .drop_committed = false});
  enqueue_numbers(queue, 0, 3000);
  ASSERT_TRUE(queue.trim(Offset{1000}).ok());
  const Offset oldest = queue.first_offset();
  ASSERT_LT(Offset{0}, oldest);
  auto at_first = queue.cursor("at_first").value_or_throw();
  EXPECT_EQ(oldest, at_first.next().value_or_throw()->offset);
  auto at_next = queue.cursor("at_next", Start::next()).value_or_throw();
  EXPECT_FALSE(at_next.next().value_or_throw());
  auto at_offset = queue.cursor("at_offset", Start::at(Offset{2000})).value_or_throw();
  EXPECT_EQ("2000", at_offset.dequeue().value_or_throw()->text());
  EXPECT_EQ("2001", at_offset.next().value_or_throw()->text());
  auto copy = queue.cursor("copy", Start::copy_of("at_offset")).value_or_throw();
  EXPECT_EQ("2001", copy.next().value_or_throw()->text()) << "what is committed counts";
  auto before_all = queue.cursor("before_all", Start::at(Offset{0})).value_or_throw();
  EXPECT_EQ(oldest, before_all.committed());
  auto past_all = queue.cursor("past_all", Start::at(Offset{1'000'000})).value_or_throw();
  EXPECT_EQ(queue.next_offset(), past_all.committed());
  const auto none = queue.cursor("none", Start::copy_of("nobody"));
  EXPECT_EQ(ErrorCode::invalid_argument, none.error().code);
  EXPECT_TRUE(queue.cursor("none").ok());
}

TEST_F(QueueTest, ANewCursorBeginsAtATime) {
  Queue queue = open({.flush = FlushPolicy::every_append()});
  queue.enqueue("0").value_or_throw();
  const Timestamp early = queue.peek().value_or_throw()->time;
  Timestamp late = early;
  while (late <= early) {
    queue.enqueue("1").value_or_throw();
    auto newest = queue.reader(Start::at(Offset{queue.next_offset().value - 1})).value_or_throw();
    late = newest.next().value_or_throw()->time;
  }
  auto cursor = queue.cursor("cursor", Start::at(late)).value_or_throw();
  EXPECT_EQ(Offset{queue.next_offset().value - 1}, cursor.committed());
}

TEST_F(QueueTest, ACursorContinuesAtItsCommittedOffset) {
  {
    Queue queue = open();
    enqueue_numbers(queue, 0, 10);
    auto cursor = queue.cursor("worker").value_or_throw();
    EXPECT_EQ("worker", cursor.name());
    EXPECT_EQ("0", cursor.next().value_or_throw()->text());
    EXPECT_EQ("1", cursor.next().value_or_throw()->text());
    EXPECT_EQ(Offset{0}, cursor.committed());
    EXPECT_EQ(Offset{2}, cursor.delivered());
    cursor.commit();
    EXPECT_EQ(Offset{2}, cursor.committed());
    EXPECT_EQ(3U, cursor.next_batch(3).value_or_throw().size());
    EXPECT_EQ(Offset{5}, cursor.delivered());
    cursor.commit(Offset{4});
  }
  Queue queue = open();
  const QueueStats stats = queue.stats();
  ASSERT_EQ(1U, stats.cursors.size());
  EXPECT_EQ("worker", stats.cursors[0].name);
  EXPECT_EQ(Offset{4}, stats.cursors[0].committed);
  EXPECT_EQ(Offset{5}, stats.cursors[0].delivered);
  auto cursor = queue.cursor("worker", Start::next()).value_or_throw();
  EXPECT_EQ(Offset{4}, cursor.committed()) << "`start` is for new ones";
  EXPECT_EQ(Offset{5}, cursor.delivered());
  EXPECT_EQ("4", cursor.dequeue().value_or_throw()->text());
  EXPECT_EQ(Offset{5}, cursor.committed());
}

TEST_F(QueueTest, ACommitSurvivesAKilledProcess) {
  in_killed_process([&] {
    Queue& queue = *new Queue(open());  // never closed
    enqueue_numbers(queue, 0, 10);
    auto cursor = queue.cursor("worker").value_or_throw();
    for (int i = 0; i < 7; ++i) cursor.dequeue().value_or_throw();
    cursor.next().value_or_throw();
  });
  Queue queue = open();
  auto cursor = queue.cursor("worker").value_or_throw();
  EXPECT_EQ(Offset{7}, cursor.committed());
  EXPECT_EQ(Offset{8}, cursor.delivered());
  EXPECT_EQ("7", cursor.next().value_or_throw()->text());
}

TEST_F(QueueTest, ACommitIsClampedToTheStoredMessages) {
  Queue queue = open({.segment_messages_max = 10, .drop_committed = false});
  enqueue_numbers(queue, 0, 100);
  auto cursor = queue.cursor("worker").value_or_throw();
  cursor.commit(Offset{1000});
  EXPECT_EQ(Offset{100}, cursor.committed());
  ASSERT_TRUE(queue.trim(Offset{50}).ok());
  cursor.commit(Offset{3});
  EXPECT_EQ(Offset{50}, cursor.committed());
}

TEST_F(QueueTest, ACursorRewindsAndCommitsThat) {
  Queue queue = open({.drop_committed = false});
  enqueue_numbers(queue, 0, 10);
  auto cursor = queue.cursor("worker").value_or_throw();
  auto other = queue.cursor("other", Start::at(Offset{6})).value_or_throw();
  for (int i = 0; i < 8; ++i) cursor.dequeue().value_or_throw();
  ASSERT_TRUE(cursor.rewind(Start::at(Offset{3})).ok());
  EXPECT_EQ(Offset{3}, cursor.committed());
  EXPECT_EQ("3", cursor.next().value_or_throw()->text());
  ASSERT_TRUE(cursor.rewind(Start::copy_of("other")).ok());
  EXPECT_EQ(Offset{6}, cursor.committed());
  ASSERT_TRUE(cursor.rewind(Start::next()).ok());
  EXPECT_EQ(Offset{10}, cursor.committed());
  EXPECT_EQ(ErrorCode::invalid_argument, cursor.rewind(Start::copy_of("nobody")).error().code);
  EXPECT_EQ(Offset{10}, cursor.committed());
  ASSERT_TRUE(cursor.rewind(Start::first()).ok());
  EXPECT_EQ("0", cursor.next().value_or_throw()->text());
}

TEST_F(QueueTest, ACursorIsOpenOnce) {
  Queue queue = open();
  enqueue_numbers(queue, 0, 3);
  {
    auto cursor = queue.cursor("worker").value_or_throw();
    EXPECT_EQ(ErrorCode::in_use, queue.cursor("worker").error().code);
    EXPECT_EQ(ErrorCode::in_use, queue.remove_cursor("worker").error().code);
    auto moved = std::move(cursor);
    EXPECT_EQ("0", moved.dequeue().value_or_throw()->text());
    EXPECT_EQ(ErrorCode::in_use, queue.cursor("worker").error().code);
  }
  auto again = queue.cursor("worker").value_or_throw();
  EXPECT_EQ("1", again.next().value_or_throw()->text());
}

TEST_F(QueueTest, ARemovedCursorIsForgotten) {
  {
    Queue queue = open({.drop_committed = false});
    enqueue_numbers(queue, 0, 3);
    EXPECT_EQ(ErrorCode::invalid_argument, queue.remove_cursor("worker").error().code);
    queue.cursor("worker").value_or_throw().dequeue().value_or_throw();
    queue.cursor("other").value_or_throw().dequeue().value_or_throw();
    ASSERT_TRUE(queue.remove_cursor("worker").ok());
    EXPECT_EQ(ErrorCode::invalid_argument, queue.remove_cursor("worker").error().code);
    EXPECT_EQ(1U, queue.stats().cursors.size());
  }
  Queue queue = open({.drop_committed = false});
  EXPECT_EQ(1U, queue.stats().cursors.size());
  EXPECT_EQ(Offset{0}, queue.cursor("worker").value_or_throw().committed());
  queue.dequeue().value_or_throw();
  ASSERT_TRUE(queue.remove_cursor("default").ok()) << "the queue's own is given back first";
  EXPECT_EQ("0", queue.dequeue().value_or_throw()->text());
}

TEST_F(QueueTest, RefusesInvalidNames) {
  Queue queue = open();
  for (const std::string& name :
       {std::string(), std::string("a b"), std::string("a/b"), std::string(".hidden"), std::string("-dash"),
        std::string("a\0b", 3), std::string(129, 'x')}) {
    EXPECT_EQ(ErrorCode::invalid_argument, queue.cursor(name).error().code) << name;
  }
  EXPECT_TRUE(queue.cursor(std::string(128, 'x')).ok());
  EXPECT_TRUE(queue.cursor("A-z_0.9").ok());
}

TEST_F(QueueTest, HasAtMost1024Cursors) {
  Queue queue = open();
  for (std::size_t i = 0; i < limits::cursors_max; ++i) {
    ASSERT_TRUE(queue.cursor("cursor" + std::to_string(i)).ok()) << i;
  }
  EXPECT_EQ(ErrorCode::limit_reached, queue.cursor("more").error().code);
  ASSERT_TRUE(queue.remove_cursor("cursor512").ok());
  EXPECT_TRUE(queue.cursor("more").ok());
}

TEST_F(QueueTest, ACursorMayBeMadeBeforeTheFirstMessage) {
  {
    Queue queue = open();
    EXPECT_FALSE(queue.dequeue().value_or_throw());
    auto cursor = queue.cursor("early", Start::next()).value_or_throw();
    EXPECT_FALSE(cursor.wait(0ms));
    queue.enqueue("0").value_or_throw();
    EXPECT_TRUE(cursor.wait(0ms));
    EXPECT_EQ("0", cursor.dequeue().value_or_throw()->text());
  }
  Queue queue = open();
  EXPECT_EQ(Offset{1}, queue.cursor("early").value_or_throw().committed());
  EXPECT_EQ("0", queue.dequeue().value_or_throw()->text());
}

TEST_F(QueueTest, EachCursorGetsEveryMessage) {
  Queue queue = open({.segment_bytes = 4 * limits::KiB});
  std::vector<std::thread> consumers;
  std::vector<QueueCursor> cursors;
  for (int i = 0; i < 4; ++i) cursors.push_back(queue.cursor("cursor" + std::to_string(i)).value_or_throw());
  constexpr int count = 20'000;
  std::atomic<int> wrong = 0;
  for (auto& cursor : cursors) {
    consumers.emplace_back([&cursor, &wrong] {
      for (int i = 0; i < count; ++i) {
        if (!cursor.wait(10s)) return static_cast<void>(++wrong);
        const auto message = cursor.dequeue().value_or_throw();
        if (!message || message->text() != std::to_string(i)) return static_cast<void>(++wrong);
      }
    });
  }
  enqueue_numbers(queue, 0, count);
  for (auto& consumer : consumers) consumer.join();
  EXPECT_EQ(0, wrong);
  for (const CursorState& cursor : queue.stats().cursors) EXPECT_EQ(Offset{count}, cursor.committed);
}

}  // namespace
}  // namespace lightq::test
