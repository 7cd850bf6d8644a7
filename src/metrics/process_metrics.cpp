/// The broker's process as the system sees it. Layer: metrics.
#include "metrics/process_metrics.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <system_error>

namespace lightq::broker {

namespace {

/// The fields of /proc/self/stat behind the name, which may contain spaces: `start_field` is the 22nd.
constexpr int fields_before_start = 19;

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

double boot_seconds() {
  std::ifstream file("/proc/stat");
  std::string word;
  double seconds = 0;
  while (file >> word) {
    if (word == "btime" && file >> seconds) return seconds;
  }
  return 0;
}

double read_start_seconds() {
  std::ifstream file("/proc/self/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto end_of_name = text.rfind(')');
  const double boot = boot_seconds();
  if (end_of_name == std::string::npos || boot == 0) return 0;
  std::istringstream fields(text.substr(end_of_name + 1));
  std::string field;
  for (int i = 0; i < fields_before_start; ++i) fields >> field;
  double ticks = 0;
  return fields >> ticks ? boot + ticks / static_cast<double>(sysconf(_SC_CLK_TCK)) : 0;
}

/// It does not change, so it is read once.
double start_seconds() {
  static const double start = read_start_seconds();
  return start;
}

std::uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t size = 0;
  std::uint64_t resident = 0;
  file >> size >> resident;
  return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

/// Returns the machine's memory, or the limit of the control group if that is less. Containers see their own
/// group as the root.
std::uint64_t memory_max_bytes() {
  const auto machine =
      static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  std::ifstream file("/sys/fs/cgroup/memory.max");
  std::uint64_t group = 0;
  return file >> group && group < machine ? group : machine;
}

std::uint64_t open_descriptors() {
  std::error_code failed;
  std::uint64_t count = 0;
  auto each = std::filesystem::directory_iterator("/proc/self/fd", failed);
  for (; !failed && each != std::filesystem::directory_iterator(); each.increment(failed)) ++count;
  return count > 0 ? count - 1 : 0;  // without the one that lists them
}

}  // namespace

ProcessUse process_use() {
  ProcessUse use;
  rusage used{};
  if (getrusage(RUSAGE_SELF, &used) == 0)
    use.cpu_seconds = seconds_of(used.ru_utime) + seconds_of(used.ru_stime);
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) use.descriptors_max = limit.rlim_cur;
  use.resident_bytes = resident_bytes();
  use.memory_max_bytes = memory_max_bytes();
  use.open_descriptors = open_descriptors();
  use.start_seconds = start_seconds();
  return use;
}

void write_process_metrics(const ProcessUse& use, MetricText& text) {
  constexpr auto gauge = MetricType::gauge;
  text.begin({"process_cpu_seconds_total", MetricType::counter, "Processor time of the broker's process."});
  text.sample({}, use.cpu_seconds);
  text.begin({"process_resident_memory_bytes", gauge, "Memory of the process that is in RAM."});
  text.sample({}, use.resident_bytes);
  text.begin({"process_open_fds", gauge, "Open file descriptors."});
  text.sample({}, use.open_descriptors);
  text.begin({"process_max_fds", gauge, "The limit of open file descriptors."});
  text.sample({}, use.descriptors_max);
  text.begin({"process_start_time_seconds", gauge, "When the process started, in seconds since 1970."});
  text.sample({}, use.start_seconds);
}

}  // namespace lightq::broker
