/// Helpers that the tests of the embedded queue share.
#pragma once

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include <lightq/queue.hpp>

#include "support/temp_dir.hpp"

namespace lightq::test {

using namespace std::chrono_literals;

/// A queue in a directory of its own.
class QueueTest : public testing::Test {
 protected:
  [[nodiscard]] Queue open(const QueueOptions& options = {}) {
    return Queue::open(directory, options).value_or_throw();
  }
  /// Runs the function in a child process that then ends without closing anything, as after SIGKILL.
  static void in_killed_process(const std::function<void()>& run) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      try {
        run();
      } catch (const std::exception& error) {
        static_cast<void>(!write(STDERR_FILENO, error.what(), std::string_view(error.what()).size()));
        _exit(1);
      }
      _exit(testing::Test::HasFailure() ? 1 : 0);
    }
    int status = 0;
    ASSERT_EQ(child, waitpid(child, &status, 0));
    ASSERT_EQ(0, status);
  }
  /// Returns the names of the files with this suffix in the directory, or in one below it.
  [[nodiscard]] std::vector<std::string> files(const std::string& suffix,
                                               const std::string& below = "") const {
    std::vector<std::string> found;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(directory + below, none)) {
      if (entry.path().string().ends_with(suffix)) found.push_back(entry.path().string());
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  TempDir temp;
  const std::string directory = temp / "queue";
};

/// Reads all remaining messages. Skips damage and counts it.
inline std::vector<std::string> drain(QueueReader& reader, int* damages = nullptr) {
  std::vector<std::string> all;
  for (;;) {
    const auto message = reader.next();
    if (!message) {
      if (message.error().code != ErrorCode::corrupt || damages == nullptr) {
        ADD_FAILURE() << message.error().text();
        return all;
      }
      ++*damages;
      continue;
    }
    if (!*message) return all;
    all.emplace_back((*message)->text());
  }
}

inline std::vector<std::string> drain(Queue& queue) {
  auto reader = queue.reader().value_or_throw();
  return drain(reader);
}

inline std::vector<std::string> numbers(int first, int last, const std::string& before = "") {
  std::vector<std::string> texts;
  for (int i = first; i < last; ++i) texts.push_back(before + std::to_string(i));
  return texts;
}

/// Returns a text of `bytes` bytes that differs for each number.
inline std::string text_of(std::size_t bytes, std::uint64_t number) {
  std::string text = std::to_string(number) + " ";
  while (text.size() < bytes) text += text;
  text.resize(bytes);
  return text;
}

inline void enqueue_numbers(Queue& queue, int first, int last, const std::string& before = "") {
  for (int i = first; i < last; ++i) queue.enqueue(before + std::to_string(i)).value_or_throw();
}

inline void overwrite(const std::string& path, std::uint64_t position, const std::string& bytes) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(position));
  file << bytes;
  ASSERT_TRUE(file.good()) << path;
}

}  // namespace lightq::test
