/// Looks for a seeded bug in a child process.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <ctime>
#include <optional>
#include <string>

namespace lightq::test {

/// The result of a hunt. It is small enough to be written to a pipe in one piece.
struct BugHunt {
  bool found = false;
  std::uint64_t tried = 0;  ///< cases or states
  double seconds = 0;       ///< of processor time
  char what[200] = {};      ///< the violation, or why there is no result
};

/// Calls `search(tried)` in a child process, because code with a bug may fail one of its own assertions.
/// `search` counts its cases in `tried`. It returns a std::optional<std::string> with the violation that it
/// has found, or nothing.
template <typename Search>
BugHunt hunt_in_child(Search&& search) {
  int ends[2] = {};
  if (::pipe(ends) != 0) return {};
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(290);
    BugHunt result;
    const std::optional<std::string> violation = search(result.tried);
    timespec time{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    result.seconds = static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
    result.found = violation.has_value();
    std::snprintf(result.what, sizeof result.what, "%s", violation.value_or("").c_str());
    const bool sent = ::write(ends[1], &result, sizeof result) == static_cast<ssize_t>(sizeof result);
    ::_exit(sent ? 0 : 1);
  }
  ::close(ends[1]);
  BugHunt result;
  const bool came = ::read(ends[0], &result, sizeof result) == static_cast<ssize_t>(sizeof result);
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (!came) std::snprintf(result.what, sizeof result.what, "ended with status %d", status);
  return result;
}

}  // namespace lightq::test
