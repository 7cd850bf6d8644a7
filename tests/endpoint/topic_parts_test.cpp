/// Tests of the parts of a topic that need no broker: what they call, and how often.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "endpoint/topic_runtime_harness.hpp"
#include "log/memory/ring_log.hpp"
#include "topic/runtime/state_owners.hpp"
#include "topic/runtime/topic_activity.hpp"
#include "topic/runtime/topic_reads.hpp"
#include "topic/runtime/waiting_producers.hpp"

namespace lightq::broker {
namespace {

using testing::ElementsAre;

/// Endpoints that count the calls for waiting producers. Nothing else is called.
class CountingEndpoints final : public TopicEndpoints {
 public:
  Result<OpenedEndpoint> join(protocol::JoinType, protocol::Transport, protocol::ConnectionType,
                              const TicketHolder&) override {
    return Error{ErrorCode::not_supported, "a test"};
  }
  Result<void> reopen(const EndpointRecord&, std::optional<Offset>) override { return {}; }
  Result<std::uint64_t> leave(const std::string&, const Leaver&) override { return std::uint64_t{0}; }
  bool resume_inlets() override {
    ++resumes;
    return have_room;
  }
  void tend_held(bool all) override { tended.push_back(all); }
  void end_unpermitted() override {}
  void close_all(bool) override {}
  void make_room(const EndpointShares::Place&) override {}
  void stop_accepting() override {}
  [[nodiscard]] bool all_sent() override { return true; }
  void release_idle_memory() override {}
  void add_stats(protocol::TopicStats&) override {}
  [[nodiscard]] std::vector<log::NamedCursor> subscriber_cursors() const override { return {}; }

  bool have_room = true;
  int resumes = 0;
  std::vector<bool> tended;
};

class CountingTicker final : public TopicTicker {
 public:
  void tick_wanted(TopicRuntime&) override { ++wanted; }
  int wanted = 0;
};

class CountingDispatch final : public EventLoop::Source {
 public:
  explicit CountingDispatch(EventLoop& loop) : loop_(loop) {}
  ~CountingDispatch() override { loop_.cancel_soon(*this); }
  void on_ready() override { ++calls; }
  int calls = 0;

 private:
  EventLoop& loop_;
};

/// Has parts of their own, beside those of the fixture's topic, and counts their requests.
class TopicPartsTest : public TopicRuntimeTest {
 protected:
  /// Runs the parts' loop for one turn.
  void run_turn() {
    std::stop_source stop;
    loop.at(EventLoop::Clock::now(), [&] { stop.request_stop(); });
    loop.run(stop.get_token());
  }

  EventLoop loop;
  DiskThread disk;
  PortBook ports{"127.0.0.1", std::nullopt, std::chrono::hours(1)};
  const TicketKey tickets{TicketKey::random_bytes()};
  EndpointSettings settings;
  std::int64_t now_us = 1'000'000;
  const WallClock now = [this] { return Timestamp{now_us}; };
  std::atomic<std::uint64_t> next_id = 1;
  ReactorContext context{loop, disk, ports, sink, tickets, settings, now, next_id, {}, {}, {}};
  CountingTicker ticker;
  CountingDispatch dispatch{loop};
  TopicActivity activity{context, dispatch, *TopicRuntimeTest::topic, ticker};

  log::RingLog ring{log::RingLogOptions{.capacity_bytes = limits::ring_bytes_min}};
  Topic delivery{{TopicId{1}, *TopicName::parse("t"), {}}, ring, Timestamp{1}};
  DurableProducers known{DurableProducers::Kept::in_memory, ProducerTable(100, 1'000'000'000)};
  TopicProducers producers{known, now};
  CountingEndpoints endpoints;
  WaitingProducers held{delivery, producers, endpoints, activity};
};

TEST_F(TopicPartsTest, TicksAreRequestedOnceUntilTheyEnd) {
  for (int i = 0; i < 3; ++i) activity.want_ticks();
  EXPECT_EQ(ticker.wanted, 1);
  EXPECT_TRUE(activity.set_ticking(true)) << "another tick follows";
  activity.want_ticks();
  EXPECT_EQ(ticker.wanted, 1);
  EXPECT_FALSE(activity.set_ticking(false));
  activity.want_ticks();
  EXPECT_EQ(ticker.wanted, 2);
}

TEST_F(TopicPartsTest, ATopicIsInUseForAWhileAfterItsLastUse) {
  activity.used_at(Timestamp{now_us});
  EXPECT_TRUE(activity.was_used_within(500, Timestamp{now_us + 499}));
  EXPECT_FALSE(activity.was_used_within(500, Timestamp{now_us + 501}));
}

TEST_F(TopicPartsTest, NoProducerIsAskedWhileNoneWaits) {
  held.resume();
  held.tend();
  EXPECT_EQ(endpoints.resumes, 0);
  EXPECT_THAT(endpoints.tended, testing::IsEmpty());
  EXPECT_FALSE(held.any());
}

TEST_F(TopicPartsTest, ProducersWaitUntilAllOfThemFoundSpace) {
  held.hold();
  EXPECT_TRUE(held.any());
  EXPECT_EQ(ticker.wanted, 1);
  endpoints.have_room = false;
  held.resume();
  EXPECT_TRUE(held.any());
  endpoints.have_room = true;
  held.resume();
  EXPECT_FALSE(held.any());
  EXPECT_EQ(endpoints.resumes, 2);
  run_turn();
  EXPECT_GE(dispatch.calls, 1) << "what the producers published is dispatched";
}

TEST_F(TopicPartsTest, AResumeThatWaitsForTheNextDispatchCallsNobodyNow) {
  held.hold();
  held.resume_soon();
  EXPECT_EQ(endpoints.resumes, 0);
  EXPECT_TRUE(held.take_soon());
  EXPECT_FALSE(held.take_soon());
  run_turn();
  EXPECT_EQ(dispatch.calls, 1);
}

TEST_F(TopicPartsTest, EachTenthTickTendsAllWaitingConnections) {
  held.hold();
  for (int i = 0; i < 10; ++i) held.tend();
  EXPECT_THAT(endpoints.tended,
              ElementsAre(false, false, false, false, false, false, false, false, false, true));
}

TEST_F(TopicPartsTest, AReadThatWaitsIsWokenOnceAndMayForget) {
  class Waiter final : public ReadWaiter {
   public:
    void readable() override { ++calls; }
    int calls = 0;
  } first, second;
  TopicReads reads{context, delivery, activity};
  reads.await(first);
  reads.await(second);
  reads.forget(second);
  reads.wake();
  reads.wake();
  EXPECT_EQ(first.calls, 1);
  EXPECT_EQ(second.calls, 0);
}

TEST_F(TopicPartsTest, ATopicsOwnUserKeepsItsCursorsWithAnotherPassword) {
  const StateOwners owners{context.access, TopicId{1}};
  context.access.set_owner(TopicId{1}, 7);
  const std::uint64_t owner = owners.owner_for(7);
  EXPECT_NE(owner, 7U);
  EXPECT_EQ(owners.owner_for(8), 8U);
  EXPECT_FALSE(owners.is_gone(owner));
  context.access.set_owner(TopicId{1}, 9);
  EXPECT_EQ(owners.owner_for(9), owner);
  context.access.set_owner(TopicId{1}, 0);
  EXPECT_TRUE(owners.is_gone(owner)) << "the topic has no own user any more";
  EXPECT_FALSE(owners.is_gone(0));
  EXPECT_TRUE(owners.is_gone(8)) << "there is no such user";
}

}  // namespace
}  // namespace lightq::broker
