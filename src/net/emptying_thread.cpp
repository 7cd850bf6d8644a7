/// A thread that empties memory shared with clients. Layer: net.
#include "net/emptying_thread.hpp"

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <system_error>
#include <utility>
#include <vector>

#include <lightq/base/unsignalled_thread.hpp>

namespace lightq::broker {

namespace {

constexpr std::size_t emptied_waiting_max = 16'384;  // at most so many sessions share memory at a time

struct Emptied {
  std::unique_ptr<session::SharedRings> rings;
  bool but_unread = false;
  std::shared_ptr<void> place;
};

/// The thread and the memory that waits for it. Never destroyed, because it may wait for longer than the
/// process lives.
class EmptyingThread {
 public:
  static EmptyingThread& of_process() {
    static EmptyingThread* const one = new EmptyingThread;
    return *one;
  }
  /// Queues the memory. If the queue is full, or there is no thread, the memory is only unmapped.
  void empty(Emptied wanted) {
    const std::lock_guard lock(mutex_);
    if (!running_) start();
    if (!running_ || waiting_.size() == emptied_waiting_max) return;
    waiting_.push_back(std::move(wanted));
    wanted_.notify_one();
  }

 private:
  void start() {
    try {
      start_unsignalled([this] { run(); }).detach();
      running_ = true;
    } catch (const std::system_error&) {
      // The next call tries again.
    }
  }
  [[noreturn]] void run() {
    std::vector<Emptied> taken;
    while (true) {
      {
        std::unique_lock lock(mutex_);
        wanted_.wait(lock, [this] { return !waiting_.empty(); });
        taken.swap(waiting_);
      }
      for (Emptied& each : taken) {
        each.rings->empty(each.but_unread);
        each.place.reset();  // first: a thread that finds the memory unmapped finds its place released
        each.rings.reset();
      }
      taken.clear();
    }
  }

  std::mutex mutex_;  // guards the members below
  std::condition_variable wanted_;
  std::vector<Emptied> waiting_;
  bool running_ = false;
};

}  // namespace

void empty_apart(std::unique_ptr<session::SharedRings> rings, bool but_unread, std::shared_ptr<void> place) {
  EmptyingThread::of_process().empty({std::move(rings), but_unread, std::move(place)});
}

}  // namespace lightq::broker
