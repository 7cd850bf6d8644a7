/// Reads /proc, uname and libzmq's version. Layer: bench support.
#include "support/machine.hpp"

#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

#include <fstream>

namespace lightq::bench {
namespace {

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

std::string memory_size() {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page_bytes = ::sysconf(_SC_PAGESIZE);
  return std::to_string((pages / 1024 * page_bytes + 512 * 1024) / (1024 * 1024)) + " GiB";
}

}  // namespace

std::string machine_description() {
  std::string text =
      processor_name() + ", " + std::to_string(::sysconf(_SC_NPROCESSORS_ONLN)) + " cores, " + memory_size();
  utsname system{};
  if (::uname(&system) == 0) text += std::string(", ") + system.sysname + " " + system.release;
  int major = 0;
  int minor = 0;
  int patch = 0;
  ::zmq_version(&major, &minor, &patch);
  return text + ", libzmq " + std::to_string(major) + "." + std::to_string(minor) + "." +
         std::to_string(patch);
}

std::string today() {
  const time_t now = ::time(nullptr);
  tm parts{};
  ::gmtime_r(&now, &parts);
  char text[16];
  ::strftime(text, sizeof text, "%Y-%m-%d", &parts);
  return text;
}

}  // namespace lightq::bench
