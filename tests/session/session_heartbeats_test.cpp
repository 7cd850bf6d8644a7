/// Tests of a session's signs of life: when a client counts as gone or busy, and when a heartbeat is due.
#include "session/session_heartbeats.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "session/session_wire.hpp"

namespace lightq::broker {
namespace {

using std::chrono::milliseconds;
using LoopClock = EventLoop::Clock;

constexpr std::uint32_t short_heartbeat_ms = 50;
constexpr auto silence_allowed = milliseconds(2 * short_heartbeat_ms);  // the silence that ends the session

constexpr std::uint32_t client_heartbeat_ms = 200;
constexpr auto half_interval = milliseconds(client_heartbeat_ms / 2);  // between two checks

/// One session. Its events are planned, and the loop calls them in the order of their times. A slow machine
/// delays them all, and changes nothing about that order.
class HeartbeatsWorld {
 public:
  HeartbeatsWorld() {
    wire.life.open();
    session::Hello hello;
    hello.codecs = CodecSet(session::hello_may_be_busy);
    wire.frames.greet(hello);
  }

  /// Begins as a session does after its greeting.
  void begin(std::uint32_t broker_ms, std::uint32_t client_ms = 0) {
    before = LoopClock::now();
    heartbeats->count_from_now();
    heartbeats->begin(broker_ms, client_ms);
    after = LoopClock::now();
  }
  /// Calls `event` at `when`, behind everything that is due before.
  void plan(LoopClock::time_point when, std::function<void()> event) {
    ++planned_;
    wire.loop.at(when, [this, event = std::move(event)] {
      event();
      if (--planned_ == 0) stop_.request_stop();
    });
  }
  /// Runs the loop until all planned events have happened.
  void run() { wire.loop.run(stop_.get_token()); }

  [[nodiscard]] bool has_ended() const { return wire.session_life.wanted_end().has_value(); }
  void expect_idle() const {
    ASSERT_TRUE(has_ended());
    EXPECT_EQ(wire.session_life.wanted_end()->code, session::Code::idle);
  }
  void hear_frame() {
    heartbeats->note_frame();
    heartbeats->hear(1);
  }

  test::SessionWire wire;
  bool in_flight = false;
  bool leases = false;         // a consumer of the client has them
  std::vector<bool> silences;  // the calls of set_silent
  std::unique_ptr<SessionHeartbeats> heartbeats = std::make_unique<SessionHeartbeats>(
      wire.loop, wire.transport, wire.session_life, wire.frames,
      SessionHeartbeats::Consumers{[this] { return in_flight; }, [this] { return leases; },
                                   [this](bool silent) { silences.push_back(silent); }});
  // The session began between these two times.
  LoopClock::time_point before;
  LoopClock::time_point after;

 private:
  int planned_ = 0;
  std::stop_source stop_;
};

class SessionHeartbeatsTest : public testing::Test, public HeartbeatsWorld {};

std::string heartbeat_frame() {
  return std::string(as_text(session::encode_frame(session::Heartbeat{}, 0, 0)));
}

TEST_F(SessionHeartbeatsTest, ASilentClientCountsAsGoneAfterTwiceTheHeartbeat) {
  begin(short_heartbeat_ms);
  plan(before + silence_allowed - milliseconds(1), [this] { EXPECT_FALSE(has_ended()); });
  plan(after + silence_allowed, [this] { expect_idle(); });
  run();
  EXPECT_EQ(wire.frames.said_bytes(), 0U) << "the client has asked for no heartbeats";
}

TEST_F(SessionHeartbeatsTest, AWholeFrameIsASignOfLife) {
  begin(short_heartbeat_ms);
  plan(before + silence_allowed - milliseconds(1), [this] {
    const auto heard_from = LoopClock::now();
    hear_frame();
    plan(heard_from + silence_allowed - milliseconds(1), [this] { EXPECT_FALSE(has_ended()); });
    plan(LoopClock::now() + silence_allowed, [this] { expect_idle(); });
  });
  run();
}

TEST_F(SessionHeartbeatsTest, FewBytesOfAFrameAreNoSignOfLife) {
  begin(short_heartbeat_ms);
  plan(before + silence_allowed - milliseconds(1),
       [this] { heartbeats->hear(session::heard_bytes_least - 1); });
  plan(after + silence_allowed, [this] { expect_idle(); });
  run();
}

TEST_F(SessionHeartbeatsTest, ManyBytesOfAFrameAreASignOfLife) {
  begin(short_heartbeat_ms);
  plan(before + silence_allowed - milliseconds(2),
       [this] { heartbeats->hear(session::heard_bytes_least - 1); });
  plan(before + silence_allowed - milliseconds(1), [this] {
    const auto heard_from = LoopClock::now();
    heartbeats->hear(1);
    plan(heard_from + silence_allowed - milliseconds(1), [this] { EXPECT_FALSE(has_ended()); });
    plan(LoopClock::now() + silence_allowed, [this] { expect_idle(); });
  });
  run();
}

TEST_F(SessionHeartbeatsTest, WithoutIntervalsNobodyNeedsToGiveSigns) {
  begin(0, 0);
  plan(after + silence_allowed, [this] { EXPECT_FALSE(has_ended()); });
  run();
  EXPECT_EQ(wire.frames.said_bytes(), 0U);
}

TEST_F(SessionHeartbeatsTest, ABusyClientReceivesNothingMoreUntilItIsHeard) {
  in_flight = true;
  begin(short_heartbeat_ms);
  plan(before + silence_allowed - milliseconds(1), [this] { EXPECT_TRUE(wire.frames.has_room()); });
  plan(after + silence_allowed, [this] {
    EXPECT_FALSE(has_ended());
    EXPECT_FALSE(wire.frames.has_room());
    EXPECT_EQ(wire.calls, 0);
    const auto heard_from = LoopClock::now();
    hear_frame();
    EXPECT_TRUE(wire.frames.has_room());
    in_flight = false;
    plan(heard_from + silence_allowed / 2, [this] {
      EXPECT_FALSE(has_ended());
      EXPECT_EQ(wire.calls, 1) << "to deliver the messages that have waited";
    });
    plan(LoopClock::now() + silence_allowed, [this] { expect_idle(); });
  });
  run();
}

TEST_F(SessionHeartbeatsTest, AClientWithLeasesKeepsItsSessionThoughItsMessagesGoToOthers) {
  session::Hello hello;
  hello.codecs = CodecSet(session::hello_may_be_busy | session::hello_knows_leases);
  wire.frames.greet(hello);
  in_flight = true;
  leases = true;
  begin(short_heartbeat_ms);
  plan(after + silence_allowed, [this] {
    EXPECT_THAT(silences, testing::ElementsAre(true));
    in_flight = false;
    plan(LoopClock::now() + 3 * silence_allowed, [this] {
      EXPECT_FALSE(has_ended());
      EXPECT_THAT(silences, testing::ElementsAre(true)) << "told once";
      hear_frame();
      EXPECT_THAT(silences, testing::ElementsAre(true, false));
      plan(LoopClock::now() + silence_allowed, [this] { expect_idle(); });
    });
  });
  run();
}

TEST_F(SessionHeartbeatsTest, AQuietClientWhoseConsumersAreGoneCountsAsGone) {
  in_flight = true;
  leases = true;
  begin(short_heartbeat_ms);
  plan(after + silence_allowed, [this] {
    EXPECT_FALSE(has_ended());
    in_flight = false;
    leases = false;  // for example because the topic was deleted
    plan(LoopClock::now() + silence_allowed, [this] { expect_idle(); });
  });
  run();
}

TEST_F(SessionHeartbeatsTest, AClientWithLeasesIsAlsoSilentWhileTheBrokerDoesNotRead) {
  leases = true;
  in_flight = true;
  wire.transport.set_paused(true);
  begin(short_heartbeat_ms);
  plan(after + 3 * silence_allowed, [this] {
    EXPECT_FALSE(has_ended());
    EXPECT_THAT(silences, testing::ElementsAre(true)) << "others may receive what it has not started";
    wire.transport.set_paused(false);
    heartbeats->count_from_now();
    hear_frame();
    EXPECT_THAT(silences, testing::ElementsAre(true, false));
  });
  run();
}

TEST_F(SessionHeartbeatsTest, ABusyClientCountsAsGoneWhenItsMessagesAreOverdue) {
  in_flight = true;
  begin(short_heartbeat_ms);
  plan(after + silence_allowed, [this] {
    EXPECT_FALSE(has_ended());
    in_flight = false;
    plan(LoopClock::now() + silence_allowed, [this] { expect_idle(); });
  });
  run();
}

TEST(SessionHeartbeats, AClientThatMayNotBeBusyCountsAsGone) {
  const std::function<void(HeartbeatsWorld&)> reasons[] = {
      [](HeartbeatsWorld& world) { world.wire.frames.greet(session::Hello{}); },
      [](HeartbeatsWorld& world) {
        session::Hello hello;
        hello.codecs = CodecSet(session::hello_knows_leases);
        world.wire.frames.greet(hello);
      },
      [](HeartbeatsWorld& world) { world.wire.session_life.leave(); },
      [](HeartbeatsWorld& world) { world.in_flight = false; },
  };
  for (const auto& reason : reasons) {
    HeartbeatsWorld world;
    world.in_flight = true;
    reason(world);
    world.begin(short_heartbeat_ms);
    world.plan(world.after + silence_allowed, [&world] { world.expect_idle(); });
    world.run();
  }
}

TEST_F(SessionHeartbeatsTest, TimeInWhichTheBrokerDoesNotReadDoesNotCount) {
  wire.transport.set_paused(true);
  begin(short_heartbeat_ms);
  plan(after + 3 * silence_allowed, [this] {
    EXPECT_FALSE(has_ended());
    EXPECT_THAT(silences, testing::IsEmpty());
    const auto read_from = LoopClock::now();
    wire.transport.set_paused(false);
    heartbeats->count_from_now();
    plan(read_from + silence_allowed / 2, [this] { EXPECT_FALSE(has_ended()); });
    plan(LoopClock::now() + silence_allowed, [this] { expect_idle(); });
  });
  run();
}

TEST_F(SessionHeartbeatsTest, AClientThatLeavesMustReadItsOutput) {
  wire.session_life.leave();
  wire.transport.set_paused(true);
  begin(short_heartbeat_ms);
  plan(before + silence_allowed - milliseconds(1), [this] {
    wire.frames.append(as_byte_view("reply"));
    wire.frames.flush();
  });
  plan(after + silence_allowed, [this] {
    EXPECT_FALSE(has_ended()) << "output that it accepts is a sign of life";
    plan(LoopClock::now() + silence_allowed, [this] { expect_idle(); });
  });
  run();
}

TEST_F(SessionHeartbeatsTest, APeerThatHasClosedIsSentAHeartbeatWhileTheBrokerDoesNotRead) {
  wire.transport.note_hang_up();
  wire.transport.set_paused(true);
  begin(short_heartbeat_ms);
  EXPECT_EQ(wire.received(), heartbeat_frame());
}

TEST_F(SessionHeartbeatsTest, AHeartbeatIsDueAfterHalfTheIntervalWithoutOtherFrames) {
  begin(0, client_heartbeat_ms);
  plan(before + half_interval - milliseconds(1), [this] { EXPECT_EQ(wire.received(), ""); });
  plan(after + half_interval, [this] {
    EXPECT_EQ(wire.received(), heartbeat_frame());
    wire.frames.append(as_byte_view("reply"));
    wire.frames.flush();
    plan(LoopClock::now() + half_interval, [this] {
      EXPECT_EQ(wire.received(), "reply") << "a frame that was sent meanwhile is enough";
      plan(LoopClock::now() + half_interval, [this] { EXPECT_EQ(wire.received(), heartbeat_frame()); });
    });
  });
  run();
}

TEST_F(SessionHeartbeatsTest, NoHeartbeatIsAddedToUnreadOutput) {
  begin(0, client_heartbeat_ms);
  wire.frames.append(as_byte_view("reply"));  // and no flush
  plan(after + 2 * half_interval + half_interval / 2, [this] {
    EXPECT_EQ(wire.frames.said_bytes(), 5U);
    wire.frames.flush();
    plan(LoopClock::now() + half_interval,
         [this] { EXPECT_EQ(wire.received(), "reply" + heartbeat_frame()); });
  });
  run();
}

TEST_F(SessionHeartbeatsTest, AfterTheGoodbyeNobodyIsWaitedFor) {
  begin(short_heartbeat_ms, short_heartbeat_ms);
  wire.session_life.end();
  plan(after + 2 * silence_allowed, [this] { EXPECT_FALSE(has_ended()); });
  run();
  EXPECT_EQ(wire.received(), "");
}

TEST_F(SessionHeartbeatsTest, ItsEndCancelsItsTimers) {
  begin(short_heartbeat_ms, short_heartbeat_ms);
  heartbeats.reset();
  plan(after + silence_allowed, [this] { EXPECT_FALSE(has_ended()); });
  run();
  EXPECT_EQ(wire.received(), "");
}

}  // namespace
}  // namespace lightq::broker
