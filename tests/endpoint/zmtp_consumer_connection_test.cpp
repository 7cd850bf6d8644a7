/// Tests of a consumer's ZeroMQ connection, byte by byte.
#include "plain/zmtp_consumer_connection.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string_view>
#include <utility>

#include "endpoint/connection_harness.hpp"

namespace lightq::broker {
namespace {

using test::command;
using test::FakeOwner;
using test::FakePlainConsumerHost;
using test::frame;
using test::opening;
using test::Wire;
using testing::HasSubstr;

class PlainConsumerTest : public testing::Test {
 protected:
  template <typename RecordSink, typename... Arguments>
  PlainConsumerConnection& start(Arguments&&... arguments) {
    outlet_ = std::make_unique<RecordSink>(wire_.loop, std::move(wire_.ours), owner_, wire_.scratch, host_,
                                           std::forward<Arguments>(arguments)...);
    EXPECT_TRUE(outlet_->start());
    return *outlet_;
  }
  void open(std::string_view type) {
    wire_.send(opening(type));
    ASSERT_TRUE(wire_.run_until([&] { return owner_.opened; }));
    wire_.received();
  }

  Wire wire_;
  FakeOwner owner_;
  FakePlainConsumerHost host_;
  std::unique_ptr<PlainConsumerConnection> outlet_;
};

TEST_F(PlainConsumerTest, APullerIsReadyOnceItsHandshakeIsComplete) {
  PlainConsumerConnection& outlet = start<PullConsumerConnection>();
  EXPECT_FALSE(outlet.offer(Offset{0}, as_byte_view("x")));
  open("PULL");
  EXPECT_TRUE(host_.ready);
  EXPECT_TRUE(outlet.offer(Offset{0}, as_byte_view("x")));
  EXPECT_TRUE(outlet.offer(Offset{1}, as_byte_view(std::string(300, 'y'))));
  EXPECT_EQ(outlet.first_unsent(), Offset{0});
  outlet.flush();
  EXPECT_EQ(outlet.first_unsent(), std::nullopt);
  EXPECT_EQ(wire_.received(), frame("x") + frame(std::string(300, 'y')));
  EXPECT_EQ(outlet.handed(), 2U);
}

TEST_F(PlainConsumerTest, ASlowConsumerCostsOneBufferAndKnowsItsUnsentMessages) {
  PlainConsumerConnection& outlet = start<PullConsumerConnection>();
  open("PULL");
  const std::string payload(1000, 'x');
  std::uint64_t taken = 0;
  while (outlet.offer(Offset{taken}, as_byte_view(payload)) && taken < 100'000) ++taken;
  ASSERT_LT(taken, 100'000U);
  const auto unsent = outlet.unsent();
  ASSERT_FALSE(unsent.empty());
  EXPECT_EQ(unsent.back(), Offset{taken - 1});
  EXPECT_EQ(outlet.first_unsent(), unsent.front());
  EXPECT_LT(unsent.size() * payload.size(), 128 * limits::KiB);
  // Reading frees space again, and the loop reports it.
  std::size_t bytes = 0;
  ASSERT_TRUE(wire_.run_until([&] {
    bytes += wire_.received().size();
    return host_.writable > 0 && outlet.unsent().empty();
  }));
  ASSERT_TRUE(wire_.run_until([&] {
    bytes += wire_.received().size();
    return bytes == taken * frame(payload).size();
  }));
  EXPECT_TRUE(outlet.offer(Offset{taken}, as_byte_view("more")));
}

TEST_F(PlainConsumerTest, ARetiredConsumerIsSentItsMessagesAndDeliveredNoMore) {
  PlainConsumerConnection& outlet = start<PullConsumerConnection>();
  open("PULL");
  EXPECT_TRUE(outlet.offer(Offset{0}, as_byte_view("x")));
  outlet.retire();
  EXPECT_FALSE(outlet.offer(Offset{1}, as_byte_view("y")));
  outlet.flush();
  EXPECT_EQ(wire_.received(), frame("x"));
}

TEST_F(PlainConsumerTest, ASubscriberIsReadyWhileItSubscribesToAPrefixOfTheTopic) {
  PlainConsumerConnection& outlet = start<SubConsumerConnection>(*TopicName::parse("orders"));
  open("SUB");
  EXPECT_FALSE(host_.ready);
  wire_.send(frame("\x01other"));
  wire_.send(frame("\x01ord"));
  ASSERT_TRUE(wire_.run_until([&] { return host_.ready; }));
  EXPECT_TRUE(outlet.offer(Offset{0}, as_byte_view("x")));
  outlet.flush();
  EXPECT_EQ(wire_.received(), frame("orders", true) + frame("x"));
  wire_.send(command("SUBSCRIBE", ""));
  wire_.send(frame(std::string("\0ord", 4)));
  wire_.send(command("CANCEL", ""));
  ASSERT_TRUE(wire_.run_until([&] { return !host_.ready; }));
}

TEST_F(PlainConsumerTest, EachSubscriptionNeedsItsOwnCancel) {
  PlainConsumerConnection& outlet = start<SubConsumerConnection>(*TopicName::parse("orders"));
  open("SUB");
  const std::string cancels[] = {command("CANCEL", "ord"), frame(std::string("\0ord", 4))};
  for (const std::string& cancel : cancels) {
    wire_.send(command("SUBSCRIBE", "ord") + frame("\x01ord"));
    ASSERT_TRUE(wire_.run_until([&] { return host_.ready; }));
    wire_.send(cancel + command("CANCEL", "or") + command("PING", std::string("\0\0one", 5)));
    ASSERT_TRUE(wire_.run_until([&] { return wire_.received() == command("PONG", "one"); }));
    EXPECT_TRUE(host_.ready) << "one of two is left";
    EXPECT_TRUE(outlet.offer(Offset{0}, as_byte_view("x")));
    outlet.flush();
    EXPECT_EQ(wire_.received(), frame("orders", true) + frame("x"));
    wire_.send(cancel);
    ASSERT_TRUE(wire_.run_until([&] { return !host_.ready; }));
    wire_.send(cancel);  // cancels nothing: the next SUBSCRIBE still counts
  }
  wire_.send(command("SUBSCRIBE", "orders"));
  ASSERT_TRUE(wire_.run_until([&] { return host_.ready; }));
}

/// Returns a PING with this TTL, in tenths of a second.
std::string ping_of(std::uint16_t ttl) {
  const char bytes[] = {static_cast<char>(ttl >> 8), static_cast<char>(ttl & 0xFF), 'p'};
  return command("PING", std::string_view(bytes, sizeof bytes));
}

TEST_F(PlainConsumerTest, APeerThatIsSilentForTheTtlOfItsPingIsClosed) {
  start<PullConsumerConnection>();
  open("PULL");
  wire_.send(ping_of(0));
  ASSERT_TRUE(wire_.run_until([&] { return !wire_.received().empty(); }));
  const auto began = EventLoop::Clock::now();
  wire_.send(ping_of(2) + "\x04");  // with the start of a frame that never becomes complete
  ASSERT_TRUE(wire_.run_until([&] { return owner_.closed; }));
  EXPECT_GE(EventLoop::Clock::now() - began, std::chrono::milliseconds(200));
  EXPECT_THAT(owner_.reason, HasSubstr("200 ms"));
}

TEST_F(PlainConsumerTest, APeerThatContinuesToSendStays) {
  start<PullConsumerConnection>();
  open("PULL");
  wire_.send(ping_of(3));
  const auto began = EventLoop::Clock::now();
  auto next = began;
  ASSERT_TRUE(wire_.run_until([&] {
    if (EventLoop::Clock::now() >= next) {
      wire_.send(command("PONG", ""));  // any input counts
      next += std::chrono::milliseconds(20);
    }
    return EventLoop::Clock::now() - began > std::chrono::seconds(1);
  }));
  EXPECT_FALSE(owner_.closed);
  wire_.send(ping_of(0));  // withdraws the TTL
  ASSERT_TRUE(
      wire_.run_until([&] { return EventLoop::Clock::now() - began > std::chrono::milliseconds(1600); }));
  EXPECT_FALSE(owner_.closed);
}

TEST_F(PlainConsumerTest, ReceivedHeartbeatsCountEvenIfTheLoopWasLate) {
  start<PullConsumerConnection>();
  open("PULL");
  wire_.send(ping_of(1));
  ASSERT_TRUE(wire_.run_until([&] { return !wire_.received().empty(); }));
  const auto late = EventLoop::Clock::now() + std::chrono::milliseconds(300);
  wire_.loop.at(EventLoop::Clock::now(), [&] {
    wire_.send(ping_of(0));
    while (EventLoop::Clock::now() < late) {  // simulates a turn that takes long
    }
  });
  ASSERT_TRUE(wire_.run_until([&] { return wire_.received() == command("PONG", "p") || owner_.closed; }));
  EXPECT_FALSE(owner_.closed);
}

TEST_F(PlainConsumerTest, APullerThatSendsAMessageIsCut) {
  start<PullConsumerConnection>();
  open("PULL");
  wire_.send(frame("x"));
  ASSERT_TRUE(wire_.run_until([&] { return owner_.closed; }));
  EXPECT_THAT(owner_.reason, HasSubstr("only receive"));
}

TEST_F(PlainConsumerTest, APusherOnAPullersEndpointGetsNothing) {
  start<PullConsumerConnection>();
  wire_.send(opening("PUSH"));
  ASSERT_TRUE(wire_.run_until([&] { return owner_.closed; }));
  EXPECT_FALSE(host_.ready);
  EXPECT_THAT(wire_.received(), HasSubstr("Invalid socket type"));
}

TEST_F(PlainConsumerTest, APeerThatPingsWithoutReadingTheAnswersCostsABoundedBuffer) {
  PlainConsumerConnection& outlet = start<PullConsumerConnection>();
  open("PULL");
  const std::string ping = command("PING", std::string("\0\0contextcontext", 16));
  int sent = 0;
  ASSERT_TRUE(wire_.run_until([&] {
    for (int i = 0; i < 1000; ++i) {
      if (send(wire_.peer.get(), ping.data(), ping.size(), MSG_NOSIGNAL | MSG_DONTWAIT) > 0) ++sent;
    }
    return sent > 100'000;
  }));
  EXPECT_FALSE(outlet.all_sent());
  EXPECT_FALSE(owner_.closed);
}

TEST_F(PlainConsumerTest, ManySubscriptionsInOneInputTellTheTopicOnce) {
  start<SubConsumerConnection>(*TopicName::parse("orders"));
  open("SUB");
  std::string all;
  const std::string subscribe = frame(std::string("\x01", 1));
  const std::string cancel = frame(std::string("\x00", 1));
  for (int i = 0; i < 1000; ++i) all += subscribe + cancel;
  wire_.send(all + subscribe);
  ASSERT_TRUE(wire_.run_until([&] { return host_.ready; }));
  EXPECT_EQ(host_.changes, 1);
  wire_.send(all + cancel);
  ASSERT_TRUE(wire_.run_until([&] { return !host_.ready; }));
  EXPECT_EQ(host_.changes, 2);
}

}  // namespace
}  // namespace lightq::broker
