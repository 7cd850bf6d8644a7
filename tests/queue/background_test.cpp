/// Tests the queue's background thread, and HandOffMutex: a request for the mutex's duty never waits.
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <csignal>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "queue/coarse_clock.hpp"
#include "queue/disk_thread.hpp"
#include "queue/hand_off_mutex.hpp"

namespace lightq::queue {
namespace {

using namespace std::chrono_literals;
constexpr auto deadline = 20s;

TEST(HandOffMutex, RunsItsDutyImmediatelyWhenItIsFree) {
  int done = 0;
  HandOffMutex mutex([&] { ++done; });
  mutex.request();
  EXPECT_EQ(1, done);
  mutex.lock();
  mutex.unlock();
  EXPECT_EQ(1, done);
}

TEST(HandOffMutex, HasItsDutyDoneByTheHolderWhenItIsTaken) {
  std::thread::id doer;
  HandOffMutex mutex([&] { doer = std::this_thread::get_id(); });
  mutex.lock();
  std::thread([&] { mutex.request(); }).join();  // does not wait
  EXPECT_EQ(std::thread::id(), doer);
  mutex.unlock();
  EXPECT_EQ(std::this_thread::get_id(), doer);
}

TEST(HandOffMutex, ForgetsNoRequestAndAdmitsOnlyOneThread) {
  std::atomic<int> requested = 0;
  int seen = 0;    // the newest request that the duty has seen; guarded by the mutex
  int inside = 0;  // guarded by the mutex
  HandOffMutex mutex([&] {
    EXPECT_EQ(1, ++inside);
    seen = requested.load();
    --inside;
  });
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 20'000; ++round) {
        if (i % 2 == 0) {
          ++requested;
          mutex.request();
        } else {
          const std::lock_guard lock(mutex);
          EXPECT_EQ(1, ++inside);
          --inside;
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  const std::lock_guard lock(mutex);
  EXPECT_EQ(requested, seen);
}

/// A disk job that counts its runs.
class CountedJob final : public log::DiskJob {
 public:
  explicit CountedJob(std::atomic<int>& runs) : runs_(runs) {}
  void run() override { ++runs_; }
  void finish() override {}

 private:
  std::atomic<int>& runs_;
};

/// Counts the calls of the thread's callback, and waits for a count.
class LookUps {
 public:
  void note() {
    const std::lock_guard lock(mutex_);
    ++count_;
    changed_.notify_all();
  }
  bool wait_for(int count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, deadline, [&] { return count <= count_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0;
};

TEST(DiskThread, RunsPostedJobsAndThenPolls) {
  std::atomic<int> runs = 0;
  LookUps look_ups;
  DiskThread thread;
  thread.start([&] { look_ups.note(); });
  for (int i = 1; i <= 100; ++i) {
    thread.post(std::make_unique<CountedJob>(runs));
    ASSERT_TRUE(look_ups.wait_for(i));
    EXPECT_EQ(i, runs);
    EXPECT_NE(nullptr, thread.take_done());
    EXPECT_EQ(nullptr, thread.take_done());
  }
}

TEST(DiskThread, RunsJobsThatWerePostedBeforeItsStop) {
  std::atomic<int> runs = 0;
  std::atomic<int> calls = 0;
  DiskThread thread;
  thread.start([] {});
  thread.post(std::make_unique<CountedJob>(runs));
  thread.call({[&] { ++calls; }, [&] { ++calls; }});
  thread.stop();
  EXPECT_EQ(1, runs);
  EXPECT_EQ(2, calls);
  EXPECT_NE(nullptr, thread.take_done());
}

TEST(DiskThread, WakesForANotificationOrATimerThatWasSetInTheMeantime) {
  LookUps look_ups;
  DiskThread thread;
  thread.start([&] { look_ups.note(); });
  thread.wake();
  ASSERT_TRUE(look_ups.wait_for(1));
  thread.set_timer(1ms);  // the thread sleeps with a timeout of a day now
  EXPECT_TRUE(look_ups.wait_for(3));
}

bool is_blocked(int signal) {
  sigset_t blocked;
  EXPECT_EQ(pthread_sigmask(SIG_BLOCK, nullptr, &blocked), 0);
  return sigismember(&blocked, signal) == 1;
}

/// Checks that the calling thread blocks all signals except those of its own faults.
void expect_signals_blocked(std::promise<void>& looked) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGALRM, SIGUSR1, SIGCHLD})
    EXPECT_TRUE(is_blocked(signal));
  EXPECT_FALSE(is_blocked(SIGSEGV)) << "its own fault";
  looked.set_value();
}

TEST(ThreadsOfAQueue, TakeNoSignalInThePlaceOfTheProgram) {
  ASSERT_FALSE(is_blocked(SIGTERM));
  std::promise<void> on_disk_thread;
  DiskThread disk;
  disk.start([] {});
  disk.call({[&] { expect_signals_blocked(on_disk_thread); }});
  EXPECT_EQ(std::future_status::ready, on_disk_thread.get_future().wait_for(deadline));
  disk.stop();
  std::promise<void> on_pulse;
  CoarseClock pulse;
  std::once_flag once;
  const auto call =
      pulse.call_each_beat([&] { std::call_once(once, [&] { expect_signals_blocked(on_pulse); }); });
  auto looked = on_pulse.get_future();
  const auto until = std::chrono::steady_clock::now() + deadline;
  do {
    pulse.keep_beating();
  } while (looked.wait_for(1ms) != std::future_status::ready && std::chrono::steady_clock::now() < until);
  EXPECT_EQ(std::future_status::ready, looked.wait_for(0ms));
  pulse.stop_calling(call);
  EXPECT_FALSE(is_blocked(SIGTERM)) << "the program's own thread";
}

}  // namespace
}  // namespace lightq::queue
