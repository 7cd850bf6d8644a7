/// Reads /proc/PID/stat and /proc/PID/status (proc(5)). Layer: bench support.
#include "support/process_usage.hpp"

#include <fstream>
#include <set>
#include <sstream>

namespace lightq::bench {
namespace {

std::string proc_path(pid_t process, const char* file) {
  return "/proc/" + std::to_string(process) + "/" + file;
}

Error unreadable(const std::string& path) {
  return Error{ErrorCode::io_error, "cannot read " + path, 0};
}

/// Returns the sum of these lines of /proc/PID/status, which are in KiB, in bytes. All must exist.
Result<std::uint64_t> sum_of_lines(pid_t process, const std::set<std::string>& names) {
  const std::string path = proc_path(process, "status");
  std::ifstream file(path);
  std::uint64_t sum = 0;
  std::size_t found = 0;
  std::string word;
  while (file >> word) {
    std::uint64_t kibibytes = 0;
    if (!names.contains(word)) continue;
    if (!(file >> kibibytes)) return unreadable(path);
    sum += kibibytes * 1024;
    ++found;
  }
  if (found != names.size()) return unreadable(path);
  return sum;
}

}  // namespace

Result<double> cpu_seconds_of(pid_t process) {
  const std::string path = proc_path(process, "stat");
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return unreadable(path);
  // The name in parentheses may contain anything, so count fields after it. Field 3 is the first.
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return unreadable(path);
  std::istringstream fields(line.substr(name_end + 1));
  std::string skipped;
  for (int field = 3; field < 14; ++field) fields >> skipped;
  double user_ticks = 0;
  double system_ticks = 0;
  if (!(fields >> user_ticks >> system_ticks)) return unreadable(path);
  return (user_ticks + system_ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

Result<std::uint64_t> own_resident_bytes_of(pid_t process) {
  return sum_of_lines(process, {"RssAnon:", "RssShmem:"});
}

Result<std::uint64_t> resident_bytes_of(pid_t process) {
  return sum_of_lines(process, {"VmRSS:"});
}

Result<std::uint64_t> peak_resident_bytes_of(pid_t process) {
  return sum_of_lines(process, {"VmHWM:"});
}

}  // namespace lightq::bench
