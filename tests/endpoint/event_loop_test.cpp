/// Tests of the guarantees of the event loop.
#include "net/event_loop.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <lightq/base/limits.hpp>

#include "admission/memory_reserve.hpp"
#include "admission/turn_share.hpp"

namespace lightq::broker {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

class CountingSource final : public EventLoop::Source {
 public:
  explicit CountingSource(std::function<void()> call) : call_(std::move(call)) {}
  void on_ready() override { call_(); }

 private:
  std::function<void()> call_;
};

TEST(EventLoop, RunsPostedTasksInTheirOrderFromAnyThread) {
  EventLoop loop;
  std::stop_source stop;
  std::vector<int> order;
  std::jthread poster([&] {
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(loop.post([&order, i] { order.push_back(i); }));
    ASSERT_TRUE(loop.post([&] { stop.request_stop(); }));
  });
  loop.run(stop.get_token());
  ASSERT_EQ(order.size(), 100U);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

/// Finds no memory at each call, or uses the reserve.
class StarvingSource final : public EventLoop::Source {
 public:
  void on_ready() override {
    if (uses_reserve) std::get_new_handler()();
    if (starves) throw std::bad_alloc();
  }
  bool out_of_memory() override { return ++told > 0; }
  bool starves = true;
  bool uses_reserve = false;
  int told = 0;
};

TEST(EventLoop, ASourceWithoutMemoryIsNotifiedAndOthersContinue) {
  EventLoop loop;
  std::stop_source stop;
  StarvingSource starving;
  int calls = 0;
  CountingSource other([&] {
    if (++calls == 3) return stop.request_stop(), void();
    loop.call_soon(other);
    loop.call_soon(starving);
  });
  loop.call_soon(starving);
  loop.call_soon(other);
  loop.run(stop.get_token());
  EXPECT_EQ(calls, 3);
  EXPECT_GE(starving.told, 2);
}

/// Installs the memory reserve for one test.
class EventLoopWithReserve : public testing::Test {
 protected:
  EventLoopWithReserve() { MemoryReserve::install(); }
  ~EventLoopWithReserve() override {
    std::set_new_handler(before_);
    std::set_terminate(terminate_before_);
    static_cast<void>(MemoryReserve::take_used());
  }

 private:
  const std::new_handler before_ = std::get_new_handler();
  const std::terminate_handler terminate_before_ = std::get_terminate();
};

TEST_F(EventLoopWithReserve, EndsTheSourceThatUsedItAndNotTheNextOne) {
  EventLoop loop;
  std::stop_source stop;
  StarvingSource blameless;
  blameless.starves = false;
  StarvingSource hungry;
  hungry.starves = false;
  hungry.uses_reserve = true;
  loop.at(EventLoop::Clock::now(), [&] {  // runs before the sources that are to be called soon
    std::get_new_handler()();
    loop.call_soon(blameless);
    loop.call_soon(hungry);
  });
  loop.at(EventLoop::Clock::now() + 1ms, [&] { stop.request_stop(); });
  loop.run(stop.get_token());
  EXPECT_EQ(blameless.told, 0);
  EXPECT_EQ(hungry.told, 1);
}

TEST(EventLoop, CallsAsManyByTurnsAsATurnAllowsAndTheOthersFirstInTheNext) {
  constexpr std::size_t sources = 10;
  constexpr int rounds = 20;
  EventLoop loop;
  std::stop_source stop;
  std::vector<std::unique_ptr<CountingSource>> all;
  std::vector<int> calls(sources, 0);
  std::map<std::uint64_t, std::uint64_t> work_in_turn;
  for (std::size_t i = 0; i < sources; ++i) {
    all.push_back(std::make_unique<CountingSource>([&, i] {
      const auto [most, least] = std::pair(std::ranges::max(calls), std::ranges::min(calls));
      EXPECT_LE(most - least, 1) << "one after the other";
      TurnWork::add(TurnShare::call_work_max);
      work_in_turn[loop.turn()] += TurnShare::call_work_max;
      if (++calls[i] == rounds) return stop.request_stop(), void();
      loop.call_by_turns(*all[i]);
    }));
    loop.call_by_turns(*all.back());
    loop.call_by_turns(*all.back());  // counts once
  }
  loop.run(stop.get_token());
  for (const auto& [turn, work] : work_in_turn)
    EXPECT_LE(work, TurnShare::turn_work_max + TurnShare::call_work_max) << "in turn " << turn;
}

TEST(EventLoop, ForgetsASourceThatIsRemovedWhileItWaits) {
  EventLoop loop;
  std::stop_source stop;
  int calls = 0;
  CountingSource stays([&] {
    ++calls;
    stop.request_stop();
  });
  auto goes = std::make_unique<CountingSource>([&] { calls += 100; });
  loop.call_by_turns(*goes);
  loop.call_by_turns(stays);
  loop.cancel_soon(*goes);
  goes.reset();
  loop.run(stop.get_token());
  EXPECT_EQ(calls, 1);
}

TEST(EventLoop, LimitsThePostedTasksOfATurnAndRunsTheOthersLater) {
  constexpr int tasks = 100;
  EventLoop loop;
  std::stop_source stop;
  std::vector<int> order;
  std::map<std::uint64_t, int> run_in_turn;
  for (int i = 0; i < tasks; ++i) {
    ASSERT_TRUE(loop.post([&, i] {
      order.push_back(i);
      ++run_in_turn[loop.turn()];
      TurnWork::add(TurnShare::call_work_max / 2);
      if (i == tasks / 2) loop.post_answer([&] { stop.request_stop(); });  // runs after all tasks
    }));
  }
  loop.run(stop.get_token());
  ASSERT_EQ(order.size(), static_cast<std::size_t>(tasks));
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  for (const auto& [turn, run] : run_in_turn) EXPECT_LE(run, 2) << "in turn " << turn;
}

TEST(EventLoop, RefusesTasksBeyondItsBoundButNotAnswers) {
  EventLoop loop;
  for (std::size_t i = 0; i < limits::mailbox_entries_max; ++i) ASSERT_TRUE(loop.post([] {}));
  EXPECT_FALSE(loop.post([] {}));
  std::stop_source stop;
  loop.post_answer([&] { stop.request_stop(); });
  loop.run(stop.get_token());
  EXPECT_TRUE(loop.post([] {}));
}

TEST(EventLoop, RunsTimersInTheOrderOfTheirTimesUnlessCancelled) {
  EventLoop loop;
  std::stop_source stop;
  std::vector<int> order;
  const auto now = EventLoop::Clock::now();
  loop.at(now + 3ms, [&] { stop.request_stop(); });
  loop.at(now + 2ms, [&] { order.push_back(2); });
  const auto cancelled = loop.at(now + 1ms, [&] { order.push_back(99); });
  loop.at(now + 1ms, [&] { order.push_back(1); });
  loop.cancel(cancelled);
  loop.run(stop.get_token());
  EXPECT_THAT(order, ElementsAre(1, 2));
}

class LastSource final : public EventLoop::Source {
 public:
  explicit LastSource(std::function<void()> call) : call_(std::move(call)) {}
  void on_ready() override { ADD_FAILURE() << "nobody has asked for it"; }
  void on_turn_end() override { call_(); }

 private:
  std::function<void()> call_;
};

TEST(EventLoop, TheLastCallRunsOnceAfterAllOthersOfTheTurn) {
  EventLoop loop;
  std::stop_source stop;
  std::vector<std::string> order;
  LastSource last([&] { order.emplace_back("last"); });
  LastSource gone([&] { order.emplace_back("gone"); });
  CountingSource first([&] {
    order.emplace_back("first");
    loop.call_last(last);
    loop.call_last(gone);
  });
  CountingSource second([&] {
    order.emplace_back("second");
    loop.call_last(last);
    loop.cancel_soon(gone);
  });
  loop.call_soon(first);
  loop.call_soon(second);
  loop.post_answer([&] { stop.request_stop(); });
  loop.run(stop.get_token());
  EXPECT_THAT(order, ElementsAre("first", "second", "last"));
}

TEST(EventLoop, ASourceThatAsksAtATurnsEndIsCalledInTheNextWithoutWaiting) {
  EventLoop loop;
  std::stop_source stop;
  int calls = 0;
  LastSource last([&] {
    if (++calls == 10) stop.request_stop();
    loop.call_last(last);
  });
  loop.call_last(last);
  loop.run(stop.get_token());
  EXPECT_EQ(calls, 10);
  loop.cancel_soon(last);
}

TEST(EventLoop, ASourceThatAsksIsCalledAgainAndOthersGetTheirTurn) {
  EventLoop loop;
  std::stop_source stop;
  int first = 0;
  int second = 0;
  CountingSource busy([&] {
    ++first;
    loop.call_soon(busy);
  });
  CountingSource other([&] {
    if (++second == 10) stop.request_stop();
    loop.call_soon(other);
  });
  loop.call_soon(busy);
  loop.call_soon(other);
  loop.run(stop.get_token());
  EXPECT_GE(first, 9);
  loop.cancel_soon(busy);
  loop.cancel_soon(other);
}

TEST(EventLoop, ASourceCancelledByAnEarlierOneOfTheSameTurnIsNotCalled) {
  EventLoop loop;
  std::stop_source stop;
  bool called = false;
  auto doomed = std::make_unique<CountingSource>([&] { called = true; });
  CountingSource killer([&] {
    loop.cancel_soon(*doomed);
    loop.destroy_later(std::move(doomed));
    stop.request_stop();
  });
  loop.call_soon(killer);
  loop.call_soon(*doomed);
  loop.run(stop.get_token());
  EXPECT_FALSE(called);
}

TEST(EventLoop, WatchesADescriptorUntilItIsRemoved) {
  EventLoop loop;
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  int calls = 0;
  std::stop_source stop;
  CountingSource source([&] {
    if (++calls < 3) return;  // level-triggered: called again because nothing was read
    loop.unwatch(ends[0], source);
    loop.at(EventLoop::Clock::now() + 5ms, [&] { stop.request_stop(); });
  });
  ASSERT_TRUE(loop.watch(ends[0], source).ok());
  ASSERT_EQ(write(ends[1], "x", 1), 1);
  loop.run(stop.get_token());
  EXPECT_EQ(calls, 3);
  close(ends[0]);
  close(ends[1]);
}

/// Is told of arrivals at one end of a pipe, and reads nothing. Knows that it is woken if `woken` is set.
class ArrivalSource final : public EventLoop::Source {
 public:
  explicit ArrivalSource(EventLoop& on) : loop(on) {
    EXPECT_EQ(pipe(ends), 0);
    EXPECT_TRUE(loop.watch_arrivals(ends[0], *this).ok());
  }
  ~ArrivalSource() override {
    leave();
    for (const int end : ends) close(end);
  }
  void leave() {
    if (std::exchange(watched, false)) loop.unwatch_arrivals(ends[0]);
  }
  void on_ready() override {
    ++calls;
    if (called) called();
  }
  bool take_woken() override {
    ++asked;
    return std::exchange(woken, false);
  }
  void arrive(bool knows) {
    woken = knows;
    EXPECT_EQ(write(ends[1], "x", 1), 1);
  }

  EventLoop& loop;
  int ends[2] = {-1, -1};
  bool watched = true;
  bool woken = false;
  int calls = 0;
  int asked = 0;
  std::function<void()> called;
};

/// Runs the loop until `done`, for at most 20 s, and then for three more turns, in which nothing may happen.
template <typename Done>
void run_until(EventLoop& loop, Done done) {
  std::stop_source stop;
  int turns_left = 3;
  CountingSource each_turn([&] {
    if (done() && turns_left-- == 0) stop.request_stop();
    loop.call_soon(each_turn);
  });
  const auto give_up = loop.at(EventLoop::Clock::now() + 20s, [&] { stop.request_stop(); });
  loop.call_soon(each_turn);
  loop.run(stop.get_token());
  loop.cancel_soon(each_turn);
  loop.cancel(give_up);
}
/// Runs the loop until all that has happened before was told: for a few turns.
void run_until_quiet(EventLoop& loop) {
  run_until(loop, [] { return true; });
}

TEST(EventLoop, ReportsEachArrivalOnceEvenIfNothingIsRead) {
  for (const bool knows : {true, false}) {
    EventLoop loop;
    ArrivalSource source(loop);
    ArrivalSource other(loop);
    for (int arrivals = 1; arrivals <= 3; ++arrivals) {
      source.arrive(knows);
      run_until_quiet(loop);
      EXPECT_EQ(source.calls, arrivals) << (knows ? "the source knows" : "the system tells");
      EXPECT_EQ(other.calls, 0);
    }
  }
}

// One arrival may stand for several. The sources know it before their bytes arrive.
TEST(EventLoop, CallsEverySourceThatKnowsThatItIsWoken) {
  EventLoop loop;
  ArrivalSource first(loop);
  ArrivalSource second(loop);
  second.woken = true;  // its bytes have not arrived yet
  first.arrive(true);
  run_until_quiet(loop);
  EXPECT_EQ(first.calls, 1);
  EXPECT_EQ(second.calls, 1);
  second.arrive(false);  // now they have: it is called once more, for nothing
  run_until_quiet(loop);
  EXPECT_EQ(second.calls, 2);
}

// An arrival that a source knows leaves the system's list of arrivals unread. Later ones are told
// nevertheless.
TEST(EventLoop, ReportsArrivalsAfterOneThatItsSourceHasRead) {
  EventLoop loop;
  ArrivalSource knowing(loop);
  ArrivalSource other(loop);
  knowing.arrive(true);
  run_until_quiet(loop);
  other.arrive(false);
  run_until_quiet(loop);
  EXPECT_EQ(other.calls, 1);
  knowing.arrive(true);
  run_until_quiet(loop);
  EXPECT_GE(knowing.calls, 2);
}

TEST(EventLoop, ASourceThatClaimsToBeWokenEachTimeHidesNoOther) {
  EventLoop loop;
  ArrivalSource claiming(loop);
  ArrivalSource other(loop);
  other.arrive(false);
  claiming.called = [&] { claiming.arrive(true); };
  claiming.arrive(true);
  run_until(loop, [&] { return other.calls > 0 || claiming.calls > 1000; });
  EXPECT_EQ(other.calls, 1);
}

TEST(EventLoop, AsksTheSystemForArrivalsOfManySources) {
  EventLoop loop;
  std::vector<std::unique_ptr<ArrivalSource>> sources;
  constexpr int count = 200;  // more than one wait returns
  for (int i = 0; i < count; ++i) sources.push_back(std::make_unique<ArrivalSource>(loop));
  for (const auto& source : sources) source->arrive(true);
  run_until(loop, [&] {
    return std::all_of(sources.begin(), sources.end(), [](const auto& source) { return source->calls > 0; });
  });
  for (const auto& source : sources) {
    EXPECT_EQ(source->calls, 1);
    EXPECT_EQ(source->asked, 0) << "the system has told which ones";
  }
}

TEST(EventLoop, DoesNotCallASourceThatAnotherOneRemovedInTheSameTurn) {
  EventLoop loop;
  auto doomed = std::make_unique<ArrivalSource>(loop);
  auto killer = std::make_unique<ArrivalSource>(loop);
  int calls = 0;
  const auto removes = [&](std::unique_ptr<ArrivalSource>& target) {
    ++calls;
    if (target) target->leave();
  };
  killer->called = [&] { removes(doomed); };
  doomed->called = [&] { removes(killer); };
  doomed->woken = true;
  killer->arrive(true);
  run_until_quiet(loop);
  EXPECT_EQ(calls, 1) << "whichever is called first removes the other";
}

}  // namespace
}  // namespace lightq::broker
