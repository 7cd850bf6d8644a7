/// Tests of a client that asks the broker to share memory, and of brokers that share it incorrectly.
#include <gtest/gtest.h>

#include <lightq/detail/session_patience.hpp>
#include <lightq/protocol/session_memory.hpp>

#include "session_fixture.hpp"

namespace lightq::test {
namespace {

class SessionMemoryTest : public SessionProducerTest {
 protected:
  SessionMemoryTest() { options.share_memory = true; }

  /// Accepts the next connection, up to the request for memory.
  TakenFrame asked_for_memory(Producer& producer) {
    greet(producer);
    const TakenFrame frame = next_frame(producer);
    EXPECT_EQ(session::Op::share, frame.header.op);
    return frame;
  }
  /// Returns true if the client ends the connection and counts a violation.
  bool ends(Producer& producer) {
    return until(producer, [&] { return producer.stats().violations == 1; });
  }
};

TEST_F(SessionMemoryTest, IsRequestedBeforeAnythingElseAndAwaited) {
  Producer producer = make();
  const auto asked = asked_for_memory(producer).as<session::Share>();
  EXPECT_EQ(memory_to_send, asked.sizes);
  EXPECT_TRUE(is_quiet(producer)) << "nobody knows yet where to say it";
}

TEST_F(SessionMemoryTest, IsNotUsedIfItIsRefused) {
  Producer producer = make();
  const TakenFrame asked = asked_for_memory(producer);
  peer.say(session::ErrorAnswer{session::Code::limit_reached, "no more"}, 0, asked.header.request);
  const TakenFrame open = next_frame(producer);
  ASSERT_EQ(session::Op::produce_open, open.header.op);
  peer.say(opened, channel, open.header.request);
  EXPECT_TRUE(until(producer, [&] { return producer.state() == SessionState::open; }));
  EXPECT_EQ(0U, producer.stats().violations);
}

TEST_F(SessionMemoryTest, IsAskedForAgainOnTheNextConnection) {
  Producer producer = make();
  asked_for_memory(producer);
  asked_for_memory(producer);
}

TEST_F(SessionMemoryTest, MemoryWithoutItsAnswerEndsTheConnection) {
  Producer producer = make();
  const TakenFrame asked = asked_for_memory(producer);
  peer.say(session::Shared{memory_to_send, true}, 0, asked.header.request);
  EXPECT_TRUE(ends(producer));
}

TEST_F(SessionMemoryTest, AnotherSizeEndsTheConnection) {
  Producer producer = make();
  const TakenFrame asked = asked_for_memory(producer);
  peer.say(session::Shared{memory_to_receive, true}, 0, asked.header.request);
  EXPECT_TRUE(ends(producer));
}

TEST_F(SessionMemoryTest, WakesByDescriptorsOfTheBrokerEndTheConnection) {
  Producer producer = make();
  const TakenFrame asked = asked_for_memory(producer);
  EXPECT_TRUE(asked.as<session::Share>().wakes_by_socket);
  peer.say(session::Shared{memory_to_send, false}, 0, asked.header.request);
  EXPECT_TRUE(ends(producer));
}

TEST_F(SessionMemoryTest, MemoryInAnswerToAnotherRequestEndsTheConnection) {
  Producer producer = make();
  const TakenFrame asked = asked_for_memory(producer);
  peer.say(session::Shared{memory_to_send, true}, 0, asked.header.request + 1);
  EXPECT_TRUE(ends(producer));
}

TEST_F(SessionMemoryTest, MemoryThatWasNotRequestedEndsTheConnection) {
  options.share_memory = false;
  Producer producer = make();
  const TakenFrame open = asked(producer);
  peer.say(session::Shared{memory_to_send, true}, 0, open.header.request);
  EXPECT_TRUE(ends(producer));
}

TEST_F(SessionMemoryTest, AnUnrelatedErrorIsNotAnAnswer) {
  Producer producer = make();
  const TakenFrame asked = asked_for_memory(producer);
  peer.say(session::ErrorAnswer{session::Code::internal, "what"}, 0, asked.header.request + 1);
  asked_for_memory(producer);  // on a new connection
}

}  // namespace
}  // namespace lightq::test
