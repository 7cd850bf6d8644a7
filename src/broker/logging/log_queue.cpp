/// A bounded queue of log lines and the thread that writes them. Layer: logging.
#include "broker/logging/log_queue.hpp"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include <lightq/base/unsignalled_thread.hpp>

namespace lightq::broker {

namespace {

/// The time that a writer may take after `give_up` is set, if it checks the flag.
constexpr std::chrono::milliseconds giving_up_takes{200};

std::size_t bytes_of(const LogQueue::Line& line) {
  return sizeof(line) + line.text.size();
}

LogQueue::Line line_of_lost(std::uint64_t count) {
  return {
      LogLevel::warn, std::chrono::system_clock::now(),
      "\"lines of this log were lost, because they were written faster than they could be output\" lost=" +
          std::to_string(count)};
}

}  // namespace

struct LogQueue::Shared {
  struct Waiting {
    Line line;
    std::uint64_t lost_before = 0;
  };

  Shared(std::size_t most, Write how) : bytes_max(most), write(std::move(how)) {}

  const std::size_t bytes_max;
  const Write write;  // used by the thread
  std::atomic<bool> give_up = false;
  std::thread thread;  // used by the owner

  std::mutex mutex;
  std::condition_variable changed;
  // All guarded by mutex.
  std::deque<Waiting> waiting;
  std::size_t bytes = 0;  // of waiting lines and of the line being written
  std::uint64_t lost = 0;
  std::uint64_t untold = 0;  // the part of `lost` that no written or waiting line reports
  bool closed = false;
  bool ended = false;
};

LogQueue::LogQueue(std::size_t bytes_max, Write write)
    : shared_(std::make_shared<Shared>(bytes_max, std::move(write))) {
  shared_->thread = start_unsignalled([shared = shared_] { run(shared); });
}

LogQueue::~LogQueue() {
  close();
  finish(Clock::now());
}

void LogQueue::put(Line line) {
  const std::lock_guard lock(shared_->mutex);
  const auto bytes = bytes_of(line);
  if (shared_->closed || shared_->bytes + bytes > shared_->bytes_max) {
    ++shared_->lost;
    ++shared_->untold;
    return;
  }
  shared_->bytes += bytes;
  shared_->waiting.push_back({std::move(line), std::exchange(shared_->untold, 0)});
  shared_->changed.notify_all();
}

void LogQueue::close() {
  const std::lock_guard lock(shared_->mutex);
  shared_->closed = true;
  shared_->changed.notify_all();
}

void LogQueue::finish(Clock::time_point deadline) {
  if (!shared_->thread.joinable()) return;
  std::unique_lock lock(shared_->mutex);
  const auto ended = [this] { return shared_->ended; };
  bool over = shared_->changed.wait_until(lock, deadline, ended);
  if (!over) {
    shared_->give_up = true;
    over = shared_->changed.wait_for(lock, giving_up_takes, ended);
  }
  lock.unlock();
  if (over) {
    shared_->thread.join();
  } else {
    shared_->thread.detach();  // it is in a write that cannot be ended
  }
}

std::uint64_t LogQueue::lost() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->lost;
}

void LogQueue::run(const std::shared_ptr<Shared>& shared) {
  std::unique_lock lock(shared->mutex);
  // Reports `count` lost lines. If that fails, they stay unreported.
  const auto tell = [&](std::uint64_t count) {
    if (count == 0) return;
    lock.unlock();
    const bool told = shared->write(line_of_lost(count), shared->give_up);
    lock.lock();
    if (!told) shared->untold += count;
  };
  while (true) {
    shared->changed.wait(lock, [&] { return shared->closed || !shared->waiting.empty(); });
    if (shared->waiting.empty() || shared->give_up) break;
    const auto next = std::move(shared->waiting.front());
    shared->waiting.pop_front();
    tell(next.lost_before);
    lock.unlock();
    const bool written = shared->write(next.line, shared->give_up);
    lock.lock();
    shared->bytes -= bytes_of(next.line);
    if (!written) {
      ++shared->lost;
      ++shared->untold;
    } else if (shared->waiting.empty()) {
      tell(std::exchange(shared->untold, 0));
    }
  }
  shared->lost += shared->waiting.size();
  shared->ended = true;
  shared->changed.notify_all();
}

}  // namespace lightq::broker
