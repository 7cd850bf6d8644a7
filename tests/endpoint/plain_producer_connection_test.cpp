/// Tests of a producer's connection, byte by byte.
#include "plain/plain_producer_connection.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "endpoint/connection_harness.hpp"
#include "support/random.hpp"

namespace lightq::broker {
namespace {

using test::command;
using test::FakeOwner;
using test::FakePlainProducerHost;
using test::frame;
using test::opening;
using test::Wire;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class PlainProducerTest : public testing::Test {
 protected:
  void SetUp() override {
    inlet_ = std::make_unique<PlainProducerConnection>(wire_.loop, std::move(wire_.ours), owner_,
                                                       wire_.scratch, host_);
    ASSERT_TRUE(inlet_->start());
  }
  void open() {
    wire_.send(opening("PUSH"));
    ASSERT_TRUE(wire_.run_until([&] { return owner_.opened; }));
  }
  bool closes() {
    return wire_.run_until([&] { return owner_.closed; });
  }

  Wire wire_;
  FakeOwner owner_;
  FakePlainProducerHost host_;
  std::unique_ptr<PlainProducerConnection> inlet_;
};

TEST_F(PlainProducerTest, GreetsAsAPullSocket) {
  open();
  EXPECT_EQ(wire_.received(), opening("PULL"));
}

TEST_F(PlainProducerTest, PublishesEveryMessageOnceInOrderHoweverTheBytesAreCut) {
  test::Random random;
  std::vector<std::string> sent;
  std::string stream = opening("PUSH");
  for (int i = 0; i < 2000; ++i) {
    const std::size_t size = random.one_in(50) ? random.below(300'000) : random.below(300);
    sent.emplace_back(size, static_cast<char>('a' + i % 26));
    stream += frame(sent.back());
    if (random.one_in(100)) stream += command("PING", std::string("\0\0context", 9));
  }
  const std::jthread writer([&] {
    for (std::size_t at = 0; at < stream.size();) {
      const std::size_t step = random.one_in(3) ? random.between(1, 20) : random.between(1, 400'000);
      wire_.send(stream.substr(at, step));
      at += step;
      wire_.received();
    }
  });
  ASSERT_TRUE(wire_.run_until([&] { return host_.messages.size() >= sent.size(); }));
  EXPECT_EQ(host_.messages, sent);
  EXPECT_LE(host_.largest_batch, 300'100U);
  EXPECT_FALSE(owner_.closed);
}

TEST_F(PlainProducerTest, SmallMessagesOfOneReadShareBatchesUpToTheTarget) {
  std::string stream = opening("PUSH");
  for (int i = 0; i < 500; ++i) stream += frame(std::string(200, 'x'));
  wire_.send(stream);
  ASSERT_TRUE(wire_.run_until([&] { return host_.messages.size() == 500; }));
  EXPECT_LE(host_.largest_batch, limits::batch_bytes_target);
  EXPECT_GT(host_.largest_batch, limits::batch_bytes_target / 2);
}

TEST_F(PlainProducerTest, AFullTopicHoldsTheProducerAndNothingIsLostOrDoubled) {
  host_.room = 10;
  open();
  const std::jthread writer([&] {
    for (int i = 0; i < 3000; ++i) wire_.send(frame(std::to_string(i) + std::string(1000, 'x')));
  });
  ASSERT_TRUE(wire_.run_until([&] { return inlet_->held(); }));
  EXPECT_FALSE(inlet_->resume());
  const std::size_t had = host_.messages.size();
  while (host_.messages.size() < 3000) {
    host_.room = host_.messages.size() + 1;
    ASSERT_TRUE(inlet_->resume());
    ASSERT_TRUE(wire_.run_until([&] { return inlet_->held() || host_.messages.size() == 3000; }));
  }
  EXPECT_LT(had, 3000U);
  for (int i = 0; i < 3000; ++i) {
    ASSERT_EQ(host_.messages[static_cast<std::size_t>(i)], std::to_string(i) + std::string(1000, 'x'));
  }
}

TEST_F(PlainProducerTest, ReadsNothingWhileTheTopicDoesNotAccept) {
  host_.is_accepting = false;
  open();
  wire_.send(frame("early"));
  ASSERT_TRUE(wire_.run_until([&] { return inlet_->held(); }));
  EXPECT_FALSE(inlet_->resume());
  EXPECT_THAT(host_.messages, IsEmpty());
  host_.is_accepting = true;
  EXPECT_TRUE(inlet_->resume());
  ASSERT_TRUE(wire_.run_until([&] { return !host_.messages.empty(); }));
  EXPECT_THAT(host_.messages, ElementsAre("early"));
}

TEST_F(PlainProducerTest, AWaitingProducerThatHangsUpIsReadToItsEnd) {
  host_.room = 0;
  open();
  wire_.send(frame("1"));
  ASSERT_TRUE(wire_.run_until([&] { return inlet_->held(); }));
  wire_.send(frame("2"));
  wire_.peer.reset();
  ASSERT_TRUE(wire_.run_until([&] { return inlet_->peer_gone(); }));
  host_.room = 10;
  EXPECT_TRUE(inlet_->resume());
  ASSERT_TRUE(closes());
  EXPECT_THAT(host_.messages, ElementsAre("1", "2"));
}

TEST_F(PlainProducerTest, ReceivedMessagesAreProcessedBeforeTheEnd) {
  host_.room = 0;
  open();
  std::string burst;
  for (int i = 0; i < 500; ++i) burst += frame(std::to_string(i) + std::string(300, 'x'));
  wire_.send(burst);
  ASSERT_TRUE(wire_.run_until([&] { return inlet_->held(); }));
  wire_.peer.reset();
  host_.room = SIZE_MAX;
  // The loop may report the descriptor's end before it calls the connection again.
  ASSERT_TRUE(inlet_->resume());
  inlet_->on_event({.readable = true});
  ASSERT_TRUE(closes());
  EXPECT_EQ(host_.messages.size(), 500U);
}

TEST_F(PlainProducerTest, AProducerThatWaitsAndContinuesWithinOneReadLosesNothing) {
  // The topic gets space while the inlet still handles received bytes, for example because dispatching frees
  // space.
  host_.room = 100;
  host_.on_published = [&] {
    if (!inlet_->held()) return;
    host_.room += 1000;
    inlet_->resume();
  };
  open();
  std::string burst;
  for (int i = 0; i < 500; ++i) burst += frame(std::to_string(i) + std::string(300, 'x'));
  wire_.send(burst);
  wire_.peer.reset();
  ASSERT_TRUE(closes());
  EXPECT_EQ(host_.messages.size(), 500U);
}

TEST_F(PlainProducerTest, AProducerThatWentIsReadToItsEndThoughItsAnswersCannotBeSent) {
  host_.room = 0;
  open();
  wire_.send(command("PING", std::string("\0\0", 2)) + frame("1"));
  ASSERT_TRUE(wire_.run_until([&] { return inlet_->held(); }));
  wire_.send(frame("2") + command("PING", std::string("\0\0", 2)) + command("PING", std::string("\0\0", 2)) +
             frame("3"));
  shutdown(wire_.peer.get(), SHUT_RD);  // sends to the peer fail from now on
  for (int i = 0; i < 3; ++i) inlet_->keep_alive(true);
  wire_.peer.reset();
  ASSERT_TRUE(wire_.run_until([&] { return inlet_->peer_gone(); }));
  EXPECT_FALSE(inlet_->spent());
  host_.room = SIZE_MAX;
  ASSERT_TRUE(inlet_->resume());
  ASSERT_TRUE(closes());
  EXPECT_THAT(host_.messages, ElementsAre("1", "2", "3"));
}

TEST_F(PlainProducerTest, CommandsAreAnsweredWhileTheTopicDoesNotAccept) {
  host_.is_accepting = false;
  open();
  wire_.received();
  wire_.send(command("PING", std::string("\0\0a", 3)));
  ASSERT_TRUE(wire_.run_until([&] { return wire_.received() == command("PONG", "a"); }));
  EXPECT_FALSE(inlet_->held());
}

TEST_F(PlainProducerTest, AWaitingProducerWithoutUnreadBytesIsSpent) {
  host_.is_accepting = false;
  open();
  wire_.send(frame("x"));
  ASSERT_TRUE(wire_.run_until([&] { return inlet_->held(); }));
  wire_.peer.reset();
  ASSERT_TRUE(wire_.run_until([&] { return inlet_->peer_gone(); }));
  EXPECT_FALSE(inlet_->spent()) << "its message is still to be read";
}

TEST_F(PlainProducerTest, ALargeMessageThatCompletesAfterTheLastConsumerLeftIsKept) {
  open();
  const std::string large = frame(std::string(200'000, 'x'));
  wire_.send(large.substr(0, 150'000));
  ASSERT_TRUE(wire_.run_until([&] { return !inlet_->has_unread_input(); }));
  host_.is_accepting = false;
  wire_.send(large.substr(150'000));
  ASSERT_TRUE(wire_.run_until([&] { return inlet_->held(); }));
  EXPECT_THAT(host_.messages, IsEmpty());
  host_.is_accepting = true;
  ASSERT_TRUE(inlet_->resume());
  EXPECT_EQ(host_.messages.size(), 1U);
}

TEST_F(PlainProducerTest, AMessageOfSeveralPartsIsRefusedCompletelyAndCountedOnce) {
  wire_.send(opening("PUSH") + frame("a", true) + frame(std::string(100'000, 'b'), true) + frame("c") +
             frame("whole"));
  ASSERT_TRUE(wire_.run_until([&] { return !host_.messages.empty(); }));
  EXPECT_THAT(host_.messages, ElementsAre("whole"));
  EXPECT_EQ(host_.refused, 1U);
  EXPECT_FALSE(owner_.closed);
}

TEST_F(PlainProducerTest, ATooLargeMessageIsSkippedAndCountedAndTheConnectionStays) {
  host_.bytes_max = 1000;
  open();
  const std::jthread writer([&] { wire_.send(frame(std::string(3'000'000, 'x')) + frame("after")); });
  ASSERT_TRUE(wire_.run_until([&] { return !host_.messages.empty(); }));
  EXPECT_THAT(host_.messages, ElementsAre("after"));
  EXPECT_EQ(host_.refused, 1U);
  EXPECT_FALSE(owner_.closed);
}

TEST_F(PlainProducerTest, AnswersPing) {
  open();
  wire_.received();
  wire_.send(command("PING", std::string("\0\x0ahello", 7)));
  ASSERT_TRUE(wire_.run_until(
      [&] { return recv(wire_.peer.get(), wire_.scratch.data(), 1, MSG_PEEK | MSG_DONTWAIT) > 0; }));
  EXPECT_EQ(wire_.received(), command("PONG", "hello"));
}

TEST_F(PlainProducerTest, AWaitingProducerThatSendsHeartbeatsStillReceivesThem) {
  open();
  wire_.send(command("PING", std::string("\0\x0ahello", 7)));
  const auto answered = [&] {
    char byte = 0;
    return recv(wire_.peer.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
  };
  ASSERT_TRUE(wire_.run_until([&] { return wire_.received().ends_with(command("PONG", "hello")); }));
  inlet_->keep_alive(true);
  EXPECT_FALSE(answered()) << "it is read from, so it is answered when it asks";
  host_.room = 0;
  wire_.send(frame("x"));
  ASSERT_TRUE(wire_.run_until([&] { return inlet_->held(); }));
  inlet_->keep_alive(false);
  EXPECT_EQ(wire_.received(), command("PONG", ""));
}

struct Nonsense {
  const char* name;
  std::string bytes;
  const char* reason;
};

class PlainProducerNonsenseTest : public PlainProducerTest, public testing::WithParamInterface<Nonsense> {};

TEST_P(PlainProducerNonsenseTest, EndsTheConnectionAndPublishesNothing) {
  wire_.send(GetParam().bytes);
  ASSERT_TRUE(closes());
  EXPECT_THAT(owner_.reason, HasSubstr(GetParam().reason));
  EXPECT_THAT(host_.messages, IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(
    PlainProducerConnection, PlainProducerNonsenseTest,
    testing::Values(
        Nonsense{"http", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "not a ZeroMQ peer"},
        Nonsense{"old", opening("PUSH").substr(0, 10) + "\x01", "older than 3.0"},
        Nonsense{"pull", opening("PULL"), "a socket of type PULL"},
        Nonsense{"no_ready", opening("PUSH").substr(0, 64) + command("HELLO", ""), "without READY"},
        Nonsense{"message_first", opening("PUSH").substr(0, 64) + frame("x"), "invalid ZMTP"},
        Nonsense{"bad_flags", opening("PUSH") + "\x09\x01x", "malformed frame"},
        Nonsense{"huge_command", opening("PUSH") + std::string("\x06\0\0\0\0\0\x10\0\0", 9), "a command of"},
        Nonsense{"bad_ping", opening("PUSH") + command("PING", "x"), "malformed PING"}),
    [](const auto& test_case) { return std::string(test_case.param.name); });

TEST_F(PlainProducerTest, ASilentPeerIsCutAfterASecond) {
  ASSERT_TRUE(closes());
  EXPECT_THAT(owner_.reason, HasSubstr("no handshake"));
}

}  // namespace
}  // namespace lightq::broker
