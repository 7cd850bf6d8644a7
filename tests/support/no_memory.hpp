/// A process that gets no more memory from the system, for tests of that case.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <fstream>

#include <lightq/base/limits.hpp>

namespace lightq::test {

/// While an object exists, an allocation of 64 KiB or more fails, and small ones succeed. One object at a
/// time, for the thread that makes it. Not with sanitizers, which need unlimited address space.
class NoMemory {
 public:
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  static constexpr bool is_possible = false;
#else
  static constexpr bool is_possible = true;
#endif

  NoMemory() {
    void* const small = std::malloc(32 * limits::KiB);
    getrlimit(RLIMIT_AS, &before_);
    rlimit now = before_;
    now.rlim_cur = address_space();
    setrlimit(RLIMIT_AS, &now);
    for (const std::size_t bytes : {limits::MiB, 64 * limits::KiB}) {
      while (count_ < taken_.size() && (taken_[count_] = std::malloc(bytes)) != nullptr) ++count_;
    }
    std::free(small);
  }
  NoMemory(const NoMemory&) = delete;
  NoMemory& operator=(const NoMemory&) = delete;
  ~NoMemory() {
    setrlimit(RLIMIT_AS, &before_);
    while (count_ > 0) std::free(taken_[--count_]);
  }

 private:
  static rlim_t address_space() {
    rlim_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    return pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
  }

  rlimit before_{};
  std::array<void*, 4096> taken_{};
  std::size_t count_ = 0;
};

}  // namespace lightq::test
