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

/// How a child ended: its exit status, or the signal that ended it.
struct ChildEnd {
  int exit_status = 0;
  int signal = 0;
  [[nodiscard]] bool good() const { return exit_status == 0 && signal == 0; }
  [[nodiscard]] std::string text() const;
};

/// Killed and reaped by the destructor; killed by the kernel if this process dies first. Start children from
/// a single-threaded process without ZeroMQ contexts: they are forked. Move-only, one thread.
class ChildProcess {
 public:
  /// Forks a child that runs `role` and exits with its result. An exception in `role` is printed, status 1.
  static Result<ChildProcess> start(const std::function<int()>& role);
  /// Runs a program with more environment; its standard output and error go to `log_path`.
  static Result<ChildProcess> execute(const std::vector<std::string>& command,
                                      const std::vector<std::pair<std::string, std::string>>& environment,
                                      const std::string& log_path);

  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ~ChildProcess();

  [[nodiscard]] pid_t id() const { return id_; }
  /// How it ended, or nothing if it still runs at `deadline` (or a signal asked this process to stop).
  std::optional<ChildEnd> wait_until(Clock::time_point deadline);
  /// Sends a signal, if it still runs.
  void signal(int number);
  /// SIGKILL, and waits for the end.
  void kill();

 private:
  ChildProcess(pid_t id, Descriptor handle) : id_(id), handle_(std::move(handle)) {}
  pid_t id_ = -1;
  Descriptor handle_;  // a pidfd: readable when the child has ended
  std::optional<ChildEnd> end_;
};

/// Waits until all have ended well. The first that ends badly, or the deadline, ends them all with an error
/// that names it: `names[i]` is the role of `children[i]`.
Result<void> wait_for_all(std::vector<ChildProcess>& children, const std::vector<std::string>& names,
                          Clock::time_point deadline);

/// From now on SIGINT, SIGTERM and SIGHUP end this process's waits instead of the process, so that
/// destructors run. Children get the default behaviour back.
void stop_on_signals();
/// Whether such a signal has come.
bool stop_requested();

}  // namespace lightq::bench
