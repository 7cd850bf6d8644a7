/// A thread that closes sockets that may block on close. Layer: net.
#include "net/closing_thread.hpp"

#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <semaphore>
#include <system_error>
#include <thread>
#include <utility>

#include <lightq/base/unsignalled_thread.hpp>

namespace lightq::broker {

namespace {

constexpr std::size_t sockets_waiting_max = 1024;
using Sockets = std::array<int, sockets_waiting_max>;

void close_all(const Sockets& sockets, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) close(sockets[i]);
}

/// Closes the sockets without waiting for SO_LINGER. An ending thread does not wait for connections with
/// SO_LINGER, so a temporary thread performs the last close: it has its own copy of the descriptor table,
/// which the system drops when the thread ends. Where the system refuses such a copy, the close waits here.
void close_by_ending_thread(const Sockets& sockets, std::size_t count) {
  std::binary_semaphore has_table(0);
  std::binary_semaphore closed(0);
  try {
    std::jthread ending([&] {
      (void)unshare(CLONE_FILES);
      has_table.release();
      closed.acquire();
    });
    has_table.acquire();
    close_all(sockets, count);
    closed.release();
  } catch (const std::system_error&) {
    close_all(sockets, count);
  }
}

/// The thread and the sockets that wait for it. Never destroyed, because a close may block for longer than
/// the process lives.
class ClosingThread {
 public:
  static ClosingThread& of_process() {
    static ClosingThread* const one = new ClosingThread;
    return *one;
  }
  /// Queues the socket. If the queue is full, the socket stays open until the process ends, because waiting
  /// would be worse.
  void close(int socket) {
    const std::lock_guard lock(mutex_);
    if (count_ == waiting_.size()) return;
    waiting_[count_++] = socket;
    if (!running_) start();
    wanted_.notify_one();
  }

 private:
  void start() {
    try {
      start_unsignalled([this] { run(); }).detach();
      running_ = true;
    } catch (const std::system_error&) {
      // The next close tries again.
    }
  }
  [[noreturn]] void run() {
    Sockets taken{};
    while (true) {
      std::size_t count = 0;
      {
        std::unique_lock lock(mutex_);
        wanted_.wait(lock, [this] { return count_ > 0; });
        taken = waiting_;
        count = std::exchange(count_, 0);
      }
      close_by_ending_thread(taken, count);
    }
  }

  std::mutex mutex_;  // guards the members below
  std::condition_variable wanted_;
  Sockets waiting_{};
  std::size_t count_ = 0;
  bool running_ = false;
};

}  // namespace

void close_apart(int socket) {
  int unread = 0;
  // After the shutdown nothing more can arrive, so the number of unread bytes stays true.
  const bool is_connection = shutdown(socket, SHUT_RD) == 0;
  if (is_connection && ioctl(socket, FIONREAD, &unread) == 0 && unread == 0) {
    close(socket);
    return;
  }
  ClosingThread::of_process().close(socket);
}

}  // namespace lightq::broker
