/// Tests of session producers, consumers and readers that were moved from: they are closed, and use nothing
/// of the object that they were moved to.
#include <lightq/base/reset_by_move.hpp>
#include <lightq/consumer.hpp>
#include <lightq/producer.hpp>
#include <lightq/reader.hpp>

#include <gmock/gmock.h>

#include <optional>
#include <span>
#include <string>
#include <utility>

#include "session_consumer_fixture.hpp"
#include "session_fixture.hpp"

// Most lines use objects that were moved from.
// NOLINTBEGIN(bugprone-use-after-move,hicpp-invalid-access-moved,clang-analyzer-cplusplus.Move)
namespace lightq::test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

template <typename T>
void expect_moved(const Result<T>& result) {
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::closed);
  EXPECT_THAT(result.error().message, HasSubstr("was moved from"));
}

TEST(ResetByMove, ResetsTheSourceOnly) {
  int number = 5;
  ResetByMove<int*> from(&number);
  ResetByMove<int*> to(std::move(from));
  EXPECT_EQ(from, nullptr);
  EXPECT_EQ(to, &number);
  from = std::move(to);
  EXPECT_EQ(from, &number);
  EXPECT_EQ(to, nullptr);
  ResetByMove<int*>& same = from;
  from = std::move(same);
  EXPECT_EQ(from, &number);
  ResetByMove<std::optional<std::string>> text(std::optional<std::string>("text"));
  const ResetByMove<std::optional<std::string>> text_too(std::move(text));
  EXPECT_FALSE(text.get().has_value());
  EXPECT_EQ(*text_too.get(), "text");
}

class MovedProducerTest : public SessionProducerTest {
 protected:
  /// Checks every call of a producer that was moved from.
  static void expect_closed(Producer& moved) {
    const auto write = [](std::span<std::byte>) { FAIL() << "there is nothing to write to"; };
    const auto settled = [](Fate, const Error*) { FAIL() << "the message was not accepted"; };
    expect_moved(moved.send("x"));
    expect_moved(moved.send("x", settled));
    expect_moved(moved.send("x", Attributes{.key = "tea"}));
    expect_moved(moved.send_in_place(1, write));
    expect_moved(moved.send_in_place(1, write, {}, settled));
    expect_moved(moved.flush(Timeout(10'000)));
    expect_moved(moved.wait_settled(0, Timeout(10'000)));
    expect_moved(moved.wait_open(Timeout(10'000)));
    expect_moved(moved.poll(Timeout(10'000)));
    EXPECT_TRUE(moved.close(Timeout(10'000)).ok()) << "as a second close";
    moved.resolve(true);
    moved.on_report([](const SendReport&) {});
    EXPECT_EQ(moved.state(), SessionState::closed);
    EXPECT_EQ(moved.topic(), "");
    EXPECT_THAT(moved.last_error().message, HasSubstr("was moved from"));
    EXPECT_EQ(moved.in_doubt() + moved.confirmed() + moved.unconfirmed(), 0U);
    EXPECT_EQ(moved.stats().sent, 0U);
    EXPECT_EQ(moved.identity().id, 0U);
    EXPECT_FALSE(moved.opened());
    EXPECT_EQ(moved.fd(), -1);
    EXPECT_FALSE(moved.wants_write());
    EXPECT_EQ(moved.next_timer(), session_never);
  }
};

TEST_F(MovedProducerTest, IsClosedBesideItsSuccessorAndAfterIt) {
  options.eager_batches = 0;
  Producer from = make();
  connect(from);
  ASSERT_TRUE(from.send("first").ok());
  {
    Producer to = std::move(from);
    expect_closed(from);
    ASSERT_TRUE(to.send("second").ok());
    EXPECT_FALSE(to.flush(Timeout(0)).ok()) << "sent, and not confirmed yet";
    EXPECT_EQ(next_batch(to).payloads, (std::vector<std::string>{"first", "second"}));
    EXPECT_EQ(to.stats().sent, 2U);
  }
  expect_closed(from);
}

TEST_F(MovedProducerTest, CanBeAssignedTo) {
  Producer from = make();
  connect(from);
  Producer to = make();
  to = std::move(from);
  expect_closed(from);
  from = std::move(to);
  expect_closed(to);
  ASSERT_TRUE(from.send("x").ok());
  EXPECT_FALSE(from.flush(Timeout(0)).ok()) << "sent, and not confirmed yet";
  EXPECT_EQ(next_batch(from).payloads, std::vector<std::string>{"x"});
}

class MovedConsumerTest : public SessionConsumerTest {
 protected:
  /// Checks every call of a consumer that was moved from.
  static void expect_closed(Consumer& moved) {
    expect_moved(moved.receive(Timeout(10'000)));
    expect_moved(moved.receive_batch(Timeout(10'000)));
    for (const Delivered& message : moved.messages(Timeout(10'000))) FAIL() << message.text();
    EXPECT_EQ(*moved.for_each([](const Delivered&) {}, Timeout(10'000)), 0U);
    EXPECT_EQ(moved.acknowledge(Offset{0}), 0U);
    EXPECT_EQ(moved.acknowledge_before(Offset{100}), 0U);
    EXPECT_THAT(moved.take_late(), IsEmpty());
    moved.reject(Offset{0});
    moved.extend(Offset{0}, Timeout(1000));
    expect_moved(moved.seek(From::first(), Timeout(10'000)));
    moved.pause();
    moved.resume();
    EXPECT_FALSE(moved.committed());
    expect_moved(moved.poll());
    EXPECT_FALSE(moved.is_ready());
    expect_moved(moved.wait_open(Timeout(10'000)));
    expect_moved(moved.flush(Timeout(10'000)));
    EXPECT_TRUE(moved.close(Timeout(10'000)).ok()) << "as a second close";
    EXPECT_TRUE(moved.finished());
    EXPECT_EQ(moved.topic(), "");
    EXPECT_EQ(moved.state(), SessionState::closed);
    EXPECT_FALSE(moved.connected());
    EXPECT_THAT(moved.last_error().message, HasSubstr("was moved from"));
    EXPECT_EQ(moved.unacknowledged(), 0U);
    EXPECT_EQ(moved.stats().received, 0U);
    EXPECT_FALSE(moved.opened());
    EXPECT_EQ(moved.fd(), -1);
    EXPECT_FALSE(moved.wants_write());
    EXPECT_EQ(moved.next_timer(), session_never);
  }
};

TEST_F(MovedConsumerTest, IsClosedBesideItsSuccessorAndAfterIt) {
  Consumer from = make();
  connect(from);
  deliver(0, {"a", "b", "c"});
  EXPECT_EQ(next_text(from), "a");
  ASSERT_TRUE(from.is_ready()) << "the rest of the batch";
  {
    Consumer to = std::move(from);
    expect_closed(from);
    EXPECT_EQ(next_text(to), "b");
    EXPECT_EQ(to.acknowledge(OffsetRange{{0}, {2}}), 2U);
    EXPECT_EQ(to.stats().acknowledged, 2U);
  }
  expect_closed(from);
}

TEST_F(MovedConsumerTest, CanBeAssignedTo) {
  Consumer from = make();
  connect(from);
  deliver(0, {"a", "b"});
  EXPECT_EQ(next_text(from), "a");
  Consumer to = make();
  to = std::move(from);
  expect_closed(from);
  from = std::move(to);
  expect_closed(to);
  EXPECT_EQ(next_text(from), "b");
}

TEST(MovedReader, IsClosed) {
  const SessionJoin join = []() -> Result<SessionAddress> {
    return Error{ErrorCode::topic_not_found, "no such topic"};
  };
  Reader from = std::move(Reader::open("orders", join)).value_or_throw();
  const auto expect_closed = [](Reader& moved) {
    expect_moved(moved.wait_open(Timeout(10'000)));
    expect_moved(moved.read({{0}, {1}}, [](const Delivered&) {}, Timeout(10'000)));
    EXPECT_EQ(moved.topic(), "");
    EXPECT_THAT(moved.last_error().message, HasSubstr("was moved from"));
    EXPECT_FALSE(moved.connected());
  };
  {
    const Reader to = std::move(from);
    expect_closed(from);
    EXPECT_EQ(to.topic(), "orders");
  }
  expect_closed(from);
}

}  // namespace
}  // namespace lightq::test
// NOLINTEND(bugprone-use-after-move,hicpp-invalid-access-moved,clang-analyzer-cplusplus.Move)
