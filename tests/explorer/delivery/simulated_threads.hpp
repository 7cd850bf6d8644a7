/// Job threads that run their jobs when a test says so, and a steady clock that a test sets. A program that
/// links simulated_threads.cpp has them instead of the real ones, so that its runs are repeatable.
#pragma once

#include <cstdint>

#include "net/disk_thread.hpp"

namespace lightq::test {

/// The steady clock of the process, in microseconds.
struct SimulatedClock {
  static inline std::int64_t us = 1'000'000'000;
};

/// Runs the first job that waits in one of the threads of `disk`. Returns false if none waits.
bool run_waiting_job(const broker::DiskThread& disk);

}  // namespace lightq::test
