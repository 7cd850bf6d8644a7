/// Job threads that run their jobs when a test says so, a steady clock that a test sets, and random numbers
/// that are always the same. A program that links simulated_threads.cpp has them instead of the real ones, so
/// that its runs are repeatable.
#pragma once

#include <cstdint>

#include "explorer/small_random.hpp"
#include "net/disk_thread.hpp"

namespace lightq::test {

/// The steady clock of the process, in microseconds.
struct SimulatedClock {
  static inline std::int64_t us = 1'000'000'000;
};

/// The random numbers that the process gets from the system.
inline SmallRandom simulated_random{1};

/// Runs the first job that waits in one of the threads of `disk`. Returns false if none waits.
bool run_waiting_job(const broker::DiskThread& disk);

}  // namespace lightq::test
