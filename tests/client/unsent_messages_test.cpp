/// Tests of UnsentMessages: it counts and keeps unsent messages, wakes a waiting sender, and may end before
/// or after the socket.
#include <lightq/detail/unsent_messages.hpp>

#include <cerrno>
#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <zmq.hpp>

namespace lightq {
namespace {

using namespace std::chrono_literals;

auto in(std::chrono::milliseconds span) {
  return std::chrono::steady_clock::now() + span;
}

/// A producer's socket and its peer in one process. libzmq releases a message when the peer receives it.
class Unsent : public ::testing::Test {
 protected:
  Unsent() {
    push_.set(zmq::sockopt::linger, 0);
    push_.set(zmq::sockopt::sndhwm, 8);
    pull_.set(zmq::sockopt::linger, 0);
    pull_.set(zmq::sockopt::rcvhwm, 8);
    pull_.set(zmq::sockopt::rcvtimeo, 10'000);
  }
  void connect() {
    pull_.bind("inproc://unsent");
    push_.connect("inproc://unsent");
  }
  bool give(const std::string& text) { return unsent_.send(push_, as_byte_view(text)); }
  /// Sends once there is space again. libzmq only notices the space when it is asked.
  bool give_in_time(const std::string& text) {
    zmq_pollitem_t item{push_.handle(), 0, ZMQ_POLLOUT, 0};
    return zmq_poll(&item, 1, 10'000) == 1 && give(text);
  }
  std::string take() {
    zmq::message_t message;
    return pull_.recv(message) ? message.to_string() : "(nothing)";
  }
  std::string kept() {
    std::deque<std::vector<std::byte>> messages;
    unsent_.copy_to(messages);
    std::string text;
    for (const auto& message : messages)
      text += std::string(reinterpret_cast<const char*>(message.data()), message.size()) + ";";
    return text;
  }

  zmq::context_t context_;
  zmq::socket_t pull_{context_, zmq::socket_type::pull};
  zmq::socket_t push_{context_, zmq::socket_type::push};
  UnsentMessages unsent_;
};

TEST_F(Unsent, KeepsUnsentMessages) {
  connect();
  for (const char* text : {"first", "", "third"}) ASSERT_TRUE(give(text));
  EXPECT_EQ(kept(), "first;;third;");
  EXPECT_EQ(take(), "first");
  EXPECT_EQ(take(), "");
  EXPECT_EQ(kept(), "first;;third;") << "nobody has said yet that it has not been dropped";
  unsent_.forget_passed();
  EXPECT_EQ(kept(), "third;");
  EXPECT_EQ(take(), "third");
  unsent_.forget_passed();
  EXPECT_EQ(kept(), "");
}

TEST_F(Unsent, AnUnacceptedMessageChangesNothing) {
  EXPECT_FALSE(give("to nobody"));
  EXPECT_EQ(zmq_errno(), EAGAIN);
  EXPECT_EQ(kept(), "");
  connect();
  int given = 0;
  while (give(std::to_string(given))) ASSERT_LT(++given, 100);
  EXPECT_EQ(zmq_errno(), EAGAIN);
  for (int i = 0; i < given; ++i) EXPECT_EQ(take(), std::to_string(i));
  unsent_.forget_passed();
  EXPECT_EQ(kept(), "");
  EXPECT_TRUE(give_in_time("again"));
  EXPECT_EQ(kept(), "again;");
  EXPECT_EQ(take(), "again");
  unsent_.forget_passed();
  for (const std::size_t size : {50'000U, 3U, 60'000U}) {  // after the queue was empty
    ASSERT_TRUE(give_in_time(std::string(size, 'x')));
    EXPECT_EQ(kept().size(), size + 1);
    EXPECT_EQ(take().size(), size);
    unsent_.forget_passed();
  }
}

TEST_F(Unsent, CountsTheBytesOfLargeOnesUntilTheyHaveLeft) {
  connect();
  ASSERT_TRUE(give(std::string(limits::counted_message_bytes_min - 1, 'x')));
  EXPECT_EQ(unsent_.bytes(), 0U);
  ASSERT_TRUE(give(std::string(5000, 'x')));
  EXPECT_EQ(unsent_.bytes(), 5000U);
  EXPECT_TRUE(unsent_.is_below(5001));
  EXPECT_FALSE(unsent_.is_below(5000));
  EXPECT_EQ(take().size(), limits::counted_message_bytes_min - 1);
  EXPECT_EQ(unsent_.bytes(), 5000U);
  EXPECT_EQ(take().size(), 5000U);
  EXPECT_EQ(unsent_.bytes(), 0U);
}

TEST_F(Unsent, EachMessageIsCompleteAfterMessagesOfAnySize) {
  connect();
  std::string expected;
  for (const std::size_t size : {0U, 1U, 40'000U, 7U, 32'768U, 100U, 0U, 20'000U, 20'000U, 3U}) {
    const std::string text(size, static_cast<char>('a' + expected.size() % 26));
    ASSERT_TRUE(give_in_time(text));
    expected += text + ";";
    if (size == 100) {
      for (const std::size_t before : {0U, 1U, 40'000U}) ASSERT_EQ(take().size(), before);
      unsent_.forget_passed();
      expected.erase(0, 40'004);
    }
  }
  EXPECT_EQ(kept(), expected);
  for (const std::size_t size : {7U, 32'768U, 100U, 0U, 20'000U, 20'000U, 3U}) {
    const std::string text = take();
    EXPECT_EQ(text, expected.substr(0, size));
    expected.erase(0, size + 1);
  }
}

TEST_F(Unsent, WakesAWaitingThread) {
  connect();
  const std::string large(10'000, 'x');
  for (int round = 0; round < 500; ++round) {
    ASSERT_TRUE(give_in_time(large));
    std::jthread other([&] { EXPECT_EQ(take(), large); });
    ASSERT_TRUE(round % 2 == 0 ? unsent_.wait_below(10'000, in(10s)) : unsent_.wait_gone(in(10s))) << round;
    other.join();
    unsent_.forget_passed();
  }
}

TEST_F(Unsent, StopsWaitingAtTheDeadline) {
  connect();
  ASSERT_TRUE(give(std::string(10'000, 'x')));
  EXPECT_FALSE(unsent_.wait_below(10'000, in(20ms)));
  EXPECT_FALSE(unsent_.wait_gone(in(20ms)));
  EXPECT_TRUE(unsent_.wait_below(10'001, in(0ms)));
}

TEST_F(Unsent, UnsentMessagesOutliveIt) {
  connect();
  ASSERT_TRUE(give("first"));
  ASSERT_TRUE(give(std::string(10'000, 'x')));
  unsent_ = UnsentMessages();
  ASSERT_TRUE(give("later"));
  EXPECT_EQ(take(), "first");
  EXPECT_EQ(take().size(), 10'000U);
  EXPECT_EQ(kept(), "later;");
  push_.close();  // and after the socket
  UnsentMessages moved = std::move(unsent_);
  EXPECT_EQ(moved.bytes(), 0U);
  EXPECT_EQ(unsent_.bytes(), 0U);  // NOLINT(bugprone-use-after-move): the test needs it
}

}  // namespace
}  // namespace lightq
