/// Child processes with fork, pidfd and PR_SET_PDEATHSIG. Layer: bench support.
#include "support/child_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

namespace lightq::bench {
namespace {

volatile std::sig_atomic_t stop_signal = 0;

void note_signal(int number) {
  stop_signal = number;
}

constexpr int stop_signals[] = {SIGINT, SIGTERM, SIGHUP};

/// Prepares a child: it dies with its parent, even if the parent died before this call.
void settle_in_child(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  for (const int number : stop_signals) std::signal(number, SIG_DFL);
}

int run_role(const std::function<int()>& role) {
  try {
    return role();
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "lightq bench: a role failed: %s\n", problem.what());
    return 1;
  }
}

Result<Descriptor> handle_of(pid_t child) {
  const long fd = ::syscall(SYS_pidfd_open, child, 0);
  if (fd >= 0) return Descriptor(static_cast<int>(fd));
  Error error = system_error("cannot watch child " + std::to_string(child));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  return error;
}

/// Removes the settings of LightQ from the environment, which belong to the caller's shell: a benchmark
/// measures what its command line says.
void unset_settings() {
  std::vector<std::string> names;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    if (text.starts_with("LIGHTQ_")) names.emplace_back(text.substr(0, text.find('=')));
  }
  for (const std::string& name : names) ::unsetenv(name.c_str());
}

[[noreturn]] void replace_by(const std::vector<std::string>& command,
                             const std::vector<std::pair<std::string, std::string>>& environment,
                             const std::string& log_path) {
  const int log = ::open(log_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (log >= 0) {
    ::dup2(log, STDOUT_FILENO);
    ::dup2(log, STDERR_FILENO);
  }
  unset_settings();
  for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> arguments;
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  ::execv(arguments[0], arguments.data());
  std::fprintf(stderr, "cannot run %s: %s\n", arguments[0], std::generic_category().message(errno).c_str());
  ::_exit(127);
}

}  // namespace

std::string ChildEnd::text() const {
  if (signal != 0) return "ended by signal " + std::to_string(signal);
  return "exit status " + std::to_string(exit_status);
}

Result<ChildProcess> ChildProcess::start(const std::function<int()>& role) {
  std::fflush(nullptr);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) return system_error("cannot fork");
  if (child == 0) {
    settle_in_child(parent);
    const int status = run_role(role);
    std::fflush(nullptr);
    ::_exit(status);
  }
  Result<Descriptor> handle = handle_of(child);
  if (!handle) return handle.error();
  return ChildProcess(child, std::move(handle).value());
}

Result<ChildProcess> ChildProcess::execute(
    const std::vector<std::string>& command,
    const std::vector<std::pair<std::string, std::string>>& environment, const std::string& log_path) {
  return start([&]() -> int { replace_by(command, environment, log_path); });
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : id_(std::exchange(other.id_, -1)), handle_(std::move(other.handle_)), end_(other.end_) {}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  std::swap(id_, other.id_);
  std::swap(handle_, other.handle_);
  std::swap(end_, other.end_);
  return *this;
}

ChildProcess::~ChildProcess() {
  kill();
}

std::optional<ChildEnd> ChildProcess::wait_until(Clock::time_point deadline) {
  if (end_ || id_ < 0) return end_;
  pollfd wanted{handle_.get(), POLLIN, 0};
  if (::poll(&wanted, 1, milliseconds_until(deadline)) != 1) return std::nullopt;
  int status = 0;
  if (::waitpid(id_, &status, 0) != id_) return std::nullopt;
  end_ = WIFSIGNALED(status) ? ChildEnd{0, WTERMSIG(status)} : ChildEnd{WEXITSTATUS(status), 0};
  return end_;
}

void ChildProcess::signal(int number) {
  if (id_ >= 0 && !end_) ::kill(id_, number);
}

void ChildProcess::kill() {
  if (id_ < 0 || end_) return;
  ::kill(id_, SIGKILL);
  ::waitpid(id_, nullptr, 0);
  end_ = ChildEnd{0, SIGKILL};
}

Result<void> wait_for_all(std::vector<ChildProcess>& children, const std::vector<std::string>& names,
                          Clock::time_point deadline) {
  std::vector<bool> ended(children.size(), false);
  const auto end_all = [&](std::string why) {
    for (ChildProcess& child : children) child.kill();
    return failure(std::move(why));
  };
  while (std::count(ended.begin(), ended.end(), false) > 0) {
    if (stop_requested()) return end_all("interrupted");
    if (Clock::now() >= deadline) return end_all("timed out");
    for (std::size_t i = 0; i < children.size(); ++i) {
      if (ended[i]) continue;
      // Wait briefly, so that another child's failure is noticed soon. A child that ends wakes us
      // immediately.
      const auto end =
          children[i].wait_until(std::min(deadline, Clock::now() + std::chrono::milliseconds(50)));
      if (!end) continue;
      if (!end->good()) return end_all(names[i] + ": " + end->text());
      ended[i] = true;
    }
  }
  return {};
}

void stop_on_signals() {
  struct sigaction action{};
  action.sa_handler = note_signal;  // no SA_RESTART: a wait must end
  for (const int number : stop_signals) ::sigaction(number, &action, nullptr);
}

bool stop_requested() {
  return stop_signal != 0;
}

}  // namespace lightq::bench
