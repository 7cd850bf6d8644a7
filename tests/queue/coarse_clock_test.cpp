/// Tests the coarse clock of the queue, which one memory load reads, and the message times that depend on it.
#include "queue/coarse_clock.hpp"

#include <gtest/gtest.h>

#include <atomic>

#include "queue/clock.hpp"
#include "queue_support.hpp"

namespace lightq::test {
namespace {

using queue::CoarseClock;
using Clock = std::chrono::steady_clock;

/// Waits for the condition. Returns false if it is not true after ten seconds.
template <typename Condition>
bool comes_true(Condition&& condition) {
  const auto until = Clock::now() + std::chrono::seconds(10);
  while (!condition()) {
    if (Clock::now() > until) return false;
    std::this_thread::yield();
  }
  return true;
}

std::uint32_t beat_of(const CoarseClock& pulse) {
  return pulse.beat().load(std::memory_order_relaxed);
}

TEST(PulseTest, TicksWhileItIsNeededAndStopsOtherwise) {
  CoarseClock pulse;
  EXPECT_EQ(beat_of(pulse), CoarseClock::still);
  for (int turn = 0; turn < 3; ++turn) {
    std::uint32_t last = beat_of(pulse);
    for (int beats = 0; beats < 4; ++beats) {
      ASSERT_TRUE(comes_true([&] {
        pulse.keep_beating();
        return beat_of(pulse) != last;
      }));
      last = beat_of(pulse);
      ASSERT_EQ(last % 2, 0U);
    }
    ASSERT_TRUE(comes_true([&] { return beat_of(pulse) == CoarseClock::still; })) << "nobody asks any more";
  }
}

TEST(PulseTest, IsOneForAllAndEndsWithTheLastOfThem) {
  auto one = CoarseClock::shared();
  const std::weak_ptr<CoarseClock> seen = one;
  auto other = CoarseClock::shared();
  EXPECT_EQ(one, other);
  one.reset();
  EXPECT_FALSE(seen.expired());
  other.reset();
  EXPECT_TRUE(seen.expired());
}

class MessageTimes : public QueueTest {};

// Not with the thread sanitizer: it ends a child that starts threads, if the parent had threads when it
// forked.
#ifndef __SANITIZE_THREAD__
TEST_F(MessageTimes, AChildProcessHasItsOwnClock) {
  auto of_parent = CoarseClock::shared();
  // The clock's thread must be asleep when the process forks. A thread that is just being started may hold a
  // lock of a sanitizer.
  ASSERT_TRUE(comes_true([&] {
    of_parent->keep_beating();
    return beat_of(*of_parent) != CoarseClock::still;
  }));
  ASSERT_TRUE(comes_true([&] { return beat_of(*of_parent) == CoarseClock::still; }));
  in_killed_process([&] {
    auto own = CoarseClock::shared();
    ASSERT_NE(own, of_parent);
    ASSERT_TRUE(comes_true([&] {
      own->keep_beating();
      return beat_of(*own) != CoarseClock::still;
    }));
    own.reset();
    of_parent.reset();  // must not wait for a thread that exists in the parent only
  });
}
#endif

TEST(PulseTest, RunsItsCallsWithEachTickUntilTheyAreRemoved) {
  std::atomic<int> first = 0;
  std::atomic<int> second = 0;
  CoarseClock pulse;
  const std::uint64_t one = pulse.call_each_beat([&] { ++first; });
  const std::uint64_t other = pulse.call_each_beat([&] { ++second; });
  ASSERT_TRUE(comes_true([&] {
    pulse.keep_beating();
    return first > 2 && second > 2;
  }));
  pulse.stop_calling(one);
  const int seen = first;
  const int before = second;
  ASSERT_TRUE(comes_true([&] {
    pulse.keep_beating();
    return second > before + 2;
  }));
  EXPECT_EQ(seen, first);
  pulse.stop_calling(other);
  pulse.stop_calling(other);
}

// In a burst the writer does not read the system's clock for each message, so the coarse clock must tell it
// about a pause.
TEST_F(MessageTimes, AreCorrectAfterAPauseInABurst) {
  QueueOptions options;
  options.flush = FlushPolicy::none();
  options.background = true;
  Queue queue = open(options);
  const std::string message(100, 'x');
  for (int pause = 0; pause < 5; ++pause) {
    for (int i = 0; i < 5000; ++i) queue.enqueue(message).value_or_throw();
    const Timestamp begun = queue::coarse_now();
    ASSERT_TRUE(comes_true([&] { return queue::coarse_now().us - begun.us > 60'000; }));
    const Timestamp sent = queue::coarse_now();
    const Offset offset = queue.enqueue(message).value_or_throw();
    auto reader = queue.reader(Start::at(offset)).value_or_throw();
    const auto read = reader.next().value_or_throw();
    ASSERT_TRUE(read);
    EXPECT_GE(read->time.us, sent.us - 20'000) << "pause " << pause;
  }
}

}  // namespace
}  // namespace lightq::test
