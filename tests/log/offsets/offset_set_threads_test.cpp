/// Tests that copies of a set of offsets are read, changed and destroyed on another thread while the original
/// changes.
#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "log/offsets/offset_model.hpp"

namespace lightq::log {
namespace {

/// Snapshots with the number of offsets that each has, on their way to the other thread.
class Snapshots {
 public:
  void put(const OffsetSet& set, bool last) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return waiting_.size() < 4; });
    waiting_.push_back({set, set.size(), last});
    changed_.notify_all();
  }
  struct Taken {
    OffsetSet set;
    std::uint64_t size = 0;
    bool last = false;
  };
  Taken take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !waiting_.empty(); });
    Taken taken = std::move(waiting_.front());
    waiting_.pop_front();
    changed_.notify_all();
    return taken;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Taken> waiting_;
};

TEST(OffsetSetThreadsTest, SnapshotsAreUsedOnAnotherThread) {
  Snapshots snapshots;
  std::uint64_t wrong = 0;
  std::thread reader([&] {
    for (bool last = false; !last;) {
      auto taken = snapshots.take();
      std::uint64_t counted = 0;
      taken.set.for_each([&](OffsetRange run) { counted += distance(run.begin, run.end); });
      if (counted != taken.size) ++wrong;
      // A snapshot that changes is a set of its own.
      taken.set.remove({{0}, {20'000}});
      taken.set.add({{0}, {10}});
      if (taken.set.count_in({{0}, {20'000}}) != 10) ++wrong;
      last = taken.last;
    }
  });
  std::mt19937_64 random(3);
  OffsetSet set;
  constexpr int rounds = 300;
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < 100; ++i) {
      const Offset begin{random() % 60'000};
      const OffsetRange range{begin, begin + random() % 8};
      if (random() % 3 == 0) {
        set.remove(range);
      } else {
        set.add(range);
      }
    }
    snapshots.put(set, round == rounds - 1);
  }
  set.clear();
  reader.join();
  EXPECT_EQ(wrong, 0U);
}

}  // namespace
}  // namespace lightq::log
