/// A process without free file descriptors. Tests only.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

namespace lightq::test {

/// While an object exists, the process gets no new descriptor (EMFILE). With `few` it gets only descriptors
/// below the lowest free one plus `few`.
class NoDescriptors {
 public:
  NoDescriptors() { limit(0); }
  explicit NoDescriptors(rlim_t few) {
    const int lowest = open("/dev/null", O_RDONLY | O_CLOEXEC);
    EXPECT_GE(lowest, 0);
    close(lowest);
    limit(static_cast<rlim_t>(lowest) + few);
  }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;
  ~NoDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  void limit(rlim_t most) {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    rlimit lower = before_;
    lower.rlim_cur = most;
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &lower), 0);
  }
  rlimit before_{};
};

}  // namespace lightq::test
