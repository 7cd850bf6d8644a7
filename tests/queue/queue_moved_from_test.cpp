/// Tests of embedded queues, readers, cursors and views that were moved from: they are closed.
#include <gmock/gmock.h>

#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "queue/queue_support.hpp"

// Most lines use objects that were moved from.
// NOLINTBEGIN(bugprone-use-after-move,hicpp-invalid-access-moved,clang-analyzer-cplusplus.Move)
namespace lightq::test {
namespace {

using QueueMovedFrom = QueueTest;

template <typename T>
void expect_moved_from(const Result<T>& result) {
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::closed);
  EXPECT_THAT(result.error().message, testing::HasSubstr("moved from"));
}

TEST_F(QueueMovedFrom, AQueueIsClosed) {
  Queue from = open();
  from.enqueue("a").value_or_throw();
  ASSERT_TRUE(from.peek().ok()) << "opens the default cursor";
  const auto check = [](Queue& moved) {
    const std::array<std::string_view, 1> texts = {"x"};
    const std::array<ByteView, 1> views = {as_byte_view("x")};
    BatchBuilder batch;
    batch.add(as_byte_view("x"));
    expect_moved_from(moved.enqueue("x"));
    expect_moved_from(moved.enqueue(texts));
    expect_moved_from(moved.enqueue(views));
    expect_moved_from(moved.enqueue(batch));
    expect_moved_from(moved.dequeue());
    expect_moved_from(moved.peek());
    expect_moved_from(moved.is_empty());
    expect_moved_from(moved.reader());
    expect_moved_from(moved.cursor("worker"));
    expect_moved_from(moved.remove_cursor("worker"));
    expect_moved_from(moved.flush());
    expect_moved_from(moved.wait_durable({0}, 10s));
    expect_moved_from(moved.durable({0}).get());
    int called = 0;
    moved.on_durable({0}, [&](const Result<void>& result) {
      expect_moved_from(result);
      ++called;
    });
    EXPECT_EQ(called, 1);
    expect_moved_from(moved.trim({0}));
    moved.maintain();
    expect_moved_from(moved.close());
    EXPECT_EQ(moved.first_offset().value + moved.next_offset().value + moved.durable_offset().value, 0U);
    EXPECT_EQ(moved.stats().segments, 0U);
    EXPECT_EQ(moved.recovery().scanned_bytes, 0U);
  };
  {
    Queue to = std::move(from);
    check(from);
    EXPECT_EQ(to.dequeue().value_or_throw()->text(), "a");
  }
  check(from);
  from = open();
  EXPECT_TRUE(from.enqueue("b").ok());
}

TEST_F(QueueMovedFrom, AReaderIsClosed) {
  Queue queue = open();
  queue.enqueue("a").value_or_throw();
  QueueReader from = queue.reader().value_or_throw();
  const auto check = [](QueueReader& moved) {
    expect_moved_from(moved.next());
    expect_moved_from(moved.peek());
    expect_moved_from(moved.next_batch());
    expect_moved_from(moved.range({0}, {1}));
    EXPECT_FALSE(moved.wait(10s));
    EXPECT_EQ(moved.position(), Offset{0});
    expect_moved_from(moved.seek(Start::first()));
    static_cast<void>(moved.pin());
  };
  {
    QueueReader to = std::move(from);
    check(from);
    EXPECT_EQ(to.next().value_or_throw()->text(), "a");
  }
  check(from);
}

TEST_F(QueueMovedFrom, ACursorIsClosed) {
  Queue queue = open();
  queue.enqueue("a").value_or_throw();
  QueueCursor from = queue.cursor("worker").value_or_throw();
  const auto check = [](QueueCursor& moved) {
    expect_moved_from(moved.next());
    expect_moved_from(moved.peek());
    expect_moved_from(moved.next_batch());
    EXPECT_FALSE(moved.wait(10s));
    moved.commit();
    moved.commit({1});
    expect_moved_from(moved.rewind(Start::first()));
    expect_moved_from(moved.dequeue());
    EXPECT_EQ(moved.name(), "");
    EXPECT_EQ(moved.committed().value + moved.delivered().value, 0U);
  };
  {
    QueueCursor to = std::move(from);
    check(from);
    EXPECT_EQ(to.dequeue().value_or_throw()->text(), "a");
    EXPECT_EQ(to.committed(), Offset{1});
  }
  check(from);
}

TEST_F(QueueMovedFrom, AViewIsClosed) {
  Queue queue = open();
  queue.enqueue("a").value_or_throw();
  queue.flush().value_or_throw();
  QueueView from = QueueView::open(directory).value_or_throw();
  const auto check = [](QueueView& moved) {
    expect_moved_from(moved.refresh());
    expect_moved_from(moved.reader());
    EXPECT_EQ(moved.stats().segments, 0U);
  };
  QueueView to = QueueView::open(directory).value_or_throw();
  to = std::move(from);
  check(from);
  EXPECT_EQ(to.reader().value_or_throw().next().value_or_throw()->text(), "a");
}

}  // namespace
}  // namespace lightq::test
// NOLINTEND(bugprone-use-after-move,hicpp-invalid-access-moved,clang-analyzer-cplusplus.Move)
