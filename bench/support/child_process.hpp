/// A child process that never outlives its owner. Layer: bench support.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/posix.hpp"

namespace lightq::bench {

/// The end of a child: its exit status, or the signal that ended it.
struct ChildEnd {
  int exit_status = 0;
  int signal = 0;
  [[nodiscard]] bool good() const { return exit_status == 0 && signal == 0; }
  [[nodiscard]] std::string text() const;
};

/// The destructor kills and reaps the child; the kernel kills it if this process dies first. Children are
/// forked, so start them from a single-threaded process without ZeroMQ contexts. Move-only, one thread.
class ChildProcess {
 public:
  /// Forks a child that runs `role` and exits with its result. Prints an exception of `role` and exits with
  /// status 1.
  static Result<ChildProcess> start(const std::function<int()>& role);
  /// Runs a program with additional environment variables, and without those of this process that begin with
  /// LIGHTQ_. Its standard output and error go to `log_path`.
  static Result<ChildProcess> execute(const std::vector<std::string>& command,
                                      const std::vector<std::pair<std::string, std::string>>& environment,
                                      const std::string& log_path);

  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ~ChildProcess();

  [[nodiscard]] pid_t id() const { return id_; }
  /// Returns the child's end; nothing if it still runs at `deadline`, or if a signal asked this process to
  /// stop.
  std::optional<ChildEnd> wait_until(Clock::time_point deadline);
  /// Sends a signal if the child still runs.
  void signal(int number);
  /// Sends SIGKILL and waits for the end.
  void kill();

 private:
  ChildProcess(pid_t id, Descriptor handle) : id_(id), handle_(std::move(handle)) {}
  pid_t id_ = -1;
  Descriptor handle_;  // a pidfd: readable when the child has ended
  std::optional<ChildEnd> end_;
};

/// Waits until all children have ended without error. The first that fails, or the deadline, ends them all
/// with an error that names it: `names[i]` is the role of `children[i]`.
Result<void> wait_for_all(std::vector<ChildProcess>& children, const std::vector<std::string>& names,
                          Clock::time_point deadline);

/// From this call on, SIGINT, SIGTERM and SIGHUP end this process's waits instead of the process, so that
/// destructors run. Children have the default behaviour.
void stop_on_signals();
/// Returns true if such a signal has arrived.
bool stop_requested();

}  // namespace lightq::bench
