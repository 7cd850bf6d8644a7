/// Which process opened something: fork() copies it into a child that must not use it. Layer: base.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <string>

#include <lightq/base/result.hpp>

namespace lightq::inline v1 {

/// Remembers the process that made it. A child has no threads of its parent, finds its locks as they were,
/// and shares the offsets of what the parent writes and its connections, so that it must not touch a queue or
/// a client that it did not open.
/// Copies remember the same process. A check costs two loads. Any thread.
class HomeProcess {
 public:
  HomeProcess() : forks_before_(count_forks()) {}
  /// False in a child that was forked later.
  [[nodiscard]] bool is_here() const { return forks_before_ == forks_.load(std::memory_order_relaxed); }

 private:
  /// Returns how many forks lead to this process, as far as anybody has asked.
  static std::uint32_t count_forks() {
    static const int watched =
        pthread_atfork(nullptr, nullptr, [] { forks_.fetch_add(1, std::memory_order_relaxed); });
    static_cast<void>(watched);
    return forks_.load(std::memory_order_relaxed);
  }
  static inline std::atomic<std::uint32_t> forks_ = 0;

  std::uint32_t forks_before_;
};

/// What a forked child is told that uses what its parent has opened. `what`: "the producer", for example.
inline Error opened_before_fork(const char* what) {
  return {ErrorCode::closed,
          std::string(what) + " was opened before this process was forked: a child has to open its own", 0};
}

}  // namespace lightq::inline v1
