/// Detects that a forked child uses an object that its parent process opened. The child must not use it.
/// Layer: base.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <string>

#include <lightq/base/result.hpp>

namespace lightq::inline v1 {

/// Remembers the process that made it. A forked child must not touch a queue or client that its parent
/// opened. The child lacks its parent's threads, and its copies of locks keep the state they had at the fork.
/// It shares connections and file offsets with the parent. Copies of this object remember the same process. A
/// check costs two loads. Thread: any.
class HomeProcess {
 public:
  HomeProcess() : forks_before_(count_forks()) {}
  /// Returns false in a child that was forked after this object was made.
  [[nodiscard]] bool is_here() const { return forks_before_ == forks_.load(std::memory_order_relaxed); }

 private:
  /// Returns the generation of this process: 0 in the process that calls this function first, and in each
  /// forked child one more than in its parent.
  static std::uint32_t count_forks() {
    static const int watched =
        pthread_atfork(nullptr, nullptr, [] { forks_.fetch_add(1, std::memory_order_relaxed); });
    static_cast<void>(watched);
    return forks_.load(std::memory_order_relaxed);
  }
  static inline std::atomic<std::uint32_t> forks_ = 0;

  std::uint32_t forks_before_;
};

/// Returns the error for a forked child that uses an object that its parent opened. The text begins with the
/// argument, for example "the producer".
inline Error opened_before_fork(const char* what) {
  return {ErrorCode::closed,
          std::string(what) + " was opened before this process was forked: the child must open its own", 0};
}

}  // namespace lightq::inline v1
