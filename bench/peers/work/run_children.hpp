/// The processes of one run, with a time limit. Layer: bench peers.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "support/child_process.hpp"
#include "support/shared_memory.hpp"

namespace lightq::bench {

/// Owns child processes; the destructor kills those that still run. One thread.
class RunChildren {
 public:
  explicit RunChildren(std::chrono::seconds time_max) : deadline_(Clock::now() + time_max) {}
  /// Forks a process that runs `role`. An exception in it fails the run.
  void start(const std::string& name, const std::function<void()>& role);
  /// Waits until all processes have ended. Throws std::runtime_error if one failed or the time ran out, after
  /// it has killed all.
  void wait();
  /// Waits until `is_done` returns true. Throws as `wait`.
  void wait_until(const std::function<bool()>& is_done);

 private:
  struct Fault {
    char text[512];
  };
  void throw_fault(const std::string& otherwise);
  Clock::time_point deadline_;
  std::vector<ChildProcess> children_;
  std::vector<std::string> names_;
  SharedArray<Fault> fault_{1};  // of the first role that failed
};

/// Runs `work` in a process of its own. Throws std::runtime_error if it throws, or takes longer than 60 s.
void in_child(const std::string& name, const std::function<void()>& work);

/// Sleeps, also for parts of a millisecond.
void sleep_exactly(std::chrono::nanoseconds time);

}  // namespace lightq::bench
