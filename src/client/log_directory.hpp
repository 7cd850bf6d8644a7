/// A log's directory as a person names it: whether it is one, and keeping brokers and queues out of it.
/// Layer: cli.
#pragma once

#include <string>
#include <vector>

#include <lightq/base/result.hpp>

namespace lightq::cli {

/// The path without what is too much; errors: invalid_argument, saying what is there instead of a log.
Result<std::string> find_log(const std::string& given);

/// invalid_argument where there is something at `path` already, or nothing to put it in.
Result<std::string> find_new_place(const std::string& path);

/// Held as long as it lives: no broker and no queue can open the log. Move-only.
class LogLock {
 public:
  /// Locks `directory` and, where it is part of a data directory, that; each with its file `lock`, if there
  /// is one. Errors: in_use, naming the process if it is known; io_error.
  static Result<LogLock> take(const std::string& directory);
  LogLock(LogLock&& other) noexcept;
  LogLock& operator=(LogLock&&) = delete;
  ~LogLock();

 private:
  LogLock() = default;
  std::vector<int> descriptors_;  // -1: nothing to lock
};

}  // namespace lightq::cli
