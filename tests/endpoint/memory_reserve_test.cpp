/// Tests of the reserve for small allocations. They call its new-handler directly.
/// tests/e2e/test_memory_limit.py tests a system that has no memory left.
#include "admission/memory_reserve.hpp"

#include <gtest/gtest.h>

#include <exception>
#include <new>
#include <stdexcept>
#include <thread>

namespace lightq::broker {
namespace {

class MemoryReserveTest : public testing::Test {
 protected:
  MemoryReserveTest() { MemoryReserve::install(); }
  ~MemoryReserveTest() override {
    std::set_new_handler(before_);
    std::set_terminate(terminate_before_);
    static_cast<void>(MemoryReserve::take_used());
  }
  static void find_memory() { std::get_new_handler()(); }

 private:
  const std::new_handler before_ = std::get_new_handler();
  const std::terminate_handler terminate_before_ = std::get_terminate();
};

TEST_F(MemoryReserveTest, ReleasesAPieceAtATimeAndIsRefilled) {
  EXPECT_FALSE(MemoryReserve::take_used());
  for (std::size_t i = 0; i <= MemoryReserve::pieces_max / 2; ++i) find_memory();
  EXPECT_TRUE(MemoryReserve::is_low());
  EXPECT_TRUE(MemoryReserve::take_used());
  EXPECT_FALSE(MemoryReserve::take_used()) << "it was told";
  MemoryReserve::refill();
  EXPECT_FALSE(MemoryReserve::is_low());
}

TEST_F(MemoryReserveTest, NotifiesOnlyTheThreadThatUsedIt) {
  std::jthread([] {
    find_memory();
    EXPECT_TRUE(MemoryReserve::take_used());
  }).join();
  EXPECT_FALSE(MemoryReserve::take_used());
  MemoryReserve::refill();
}

TEST_F(MemoryReserveTest, IsNotUsedByAllocationsThatMayFail) {
  {
    const FallibleAllocations outer;
    {
      const FallibleAllocations inner;
    }
    EXPECT_THROW(find_memory(), std::bad_alloc);
  }
  EXPECT_FALSE(MemoryReserve::take_used());
  EXPECT_NO_THROW(find_memory());
  MemoryReserve::refill();
}

using MemoryReserveDeathTest = MemoryReserveTest;

TEST_F(MemoryReserveDeathTest, AProcessWithoutMemoryReportsItAndEnds) {
  EXPECT_DEATH(
      {
        for (std::size_t i = 0; i <= MemoryReserve::pieces_max; ++i) find_memory();
      },
      "lightq broker: aborting, because the system gives it no more memory");
}

TEST_F(MemoryReserveDeathTest, AnUncaughtExceptionIsReported) {
  EXPECT_DEATH(std::jthread([] { throw std::runtime_error("no such thing"); }),
               "lightq broker: aborting after an unexpected failure: no such thing");
  EXPECT_DEATH(std::jthread([] { throw std::bad_alloc(); }), "gives it no more memory");
}

}  // namespace
}  // namespace lightq::broker
