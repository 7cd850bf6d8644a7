/// A log's directory as a person names it: whether it is one, and keeping brokers and queues out of it.
/// Layer: cli.
#pragma once

#include <string>

#include <lightq/base/result.hpp>

namespace lightq::cli {

/// The path without what is too much; errors: invalid_argument, saying what is there instead of a log.
Result<std::string> find_log(const std::string& given);

/// invalid_argument where there is something at `path` already, or nothing to put it in.
Result<std::string> find_new_place(const std::string& path);

/// Held as long as it lives: no broker and no queue can open the log. Move-only.
class LogLock {
 public:
  /// Takes the lock file of the queue in `directory`, or of the data directory that it is part of. Where
  /// there is none, nobody has ever opened it. Errors: in_use, naming the process; io_error.
  static Result<LogLock> take(const std::string& directory);
  LogLock(LogLock&& other) noexcept;
  LogLock& operator=(LogLock&&) = delete;
  ~LogLock();

 private:
  LogLock() = default;
  int own_ = -1;   // of the directory itself
  int data_ = -1;  // of the data directory
};

}  // namespace lightq::cli
