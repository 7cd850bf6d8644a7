/// Counts calls of sched_yield, which it replaces. Include it in one file of a test program.
#pragma once

#include <atomic>

namespace lightq::test {
inline std::atomic<int> yields = 0;
}  // namespace lightq::test

extern "C" int sched_yield() noexcept {
  ++lightq::test::yields;
  return 0;
}
