/// Tests of mapped_memory: code that is given back is unmapped, and runs when it is called again.
#include "log/storage/mapped_memory.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>

namespace lightq::log {
namespace {

struct Code {
  std::uint64_t size_kib = 0;
  std::uint64_t resident_kib = 0;
};

/// Returns the size of all code of the program and its libraries, and how much of it is mapped at this
/// moment. Source of the format: proc_pid_smaps(5).
Code code_of_this_process() {
  std::ifstream smaps("/proc/self/smaps");
  Code all;
  bool is_code = false;
  for (std::string line; std::getline(smaps, line);) {
    std::istringstream words(line);
    std::string first;
    std::string second;
    words >> first >> second;
    if (!first.ends_with(':')) {  // begin-end permissions offset device inode path
      is_code = second == "r-xp" && line.find(" /") != std::string::npos;
    } else if (is_code && first == "Size:") {
      all.size_kib += std::stoull(second);
    } else if (is_code && first == "Rss:") {
      all.resident_kib += std::stoull(second);
    }
  }
  return all;
}

/// Maps all code of the process, as if each function had run.
void touch_all_code() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find(" r-xp ") == std::string::npos || line.find(" /") == std::string::npos) continue;
    std::istringstream words(line);
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    char dash = 0;
    words >> std::hex >> begin >> dash >> end;
    for (std::uintptr_t at = begin; at < end; at += 4096)
      static_cast<void>(*reinterpret_cast<const volatile char*>(at));
  }
}

TEST(GiveBackCode, UnmapsCodeThatDoesNotRun) {
  touch_all_code();
  const Code before = code_of_this_process();
  ASSERT_EQ(before.resident_kib, before.size_kib);
  give_back_code();
  const Code after = code_of_this_process();
  EXPECT_EQ(after.size_kib, before.size_kib);
  EXPECT_LT(after.resident_kib, before.resident_kib / 2);
  touch_all_code();
  EXPECT_EQ(code_of_this_process().resident_kib, before.resident_kib) << "all code can run again";
}

}  // namespace
}  // namespace lightq::log
