/// Checks the log directory that a command names, and locks it against brokers and queues. Layer: cli.
#pragma once

#include <string>
#include <vector>

#include <lightq/base/result.hpp>

#include "client/invocation.hpp"

namespace lightq::cli {

/// Returns the normalized path of the log that `given` names: a directory, or the topic with this name if
/// there is none. Topics are looked up in the data directory that the options or the context in use name, or
/// the usual one. Errors: invalid_argument, naming the reason.
Result<std::string> find_log(const Common& common, const std::string& given);

/// Returns the path for a new directory. Errors: invalid_argument if something is at `path` already, or its
/// parent directory does not exist.
Result<std::string> find_new_place(const std::string& path);

/// A lock on a log: while it exists, no broker and no queue can open the log. Move-only.
class LogLock {
 public:
  /// Locks `directory` and, if the log is part of a data directory, that directory too. Each is locked
  /// together with its file `lock`, if there is one. Errors: in_use, naming the process if it is known;
  /// io_error.
  static Result<LogLock> take(const std::string& directory);
  LogLock(LogLock&& other) noexcept;
  LogLock& operator=(LogLock&&) = delete;
  ~LogLock();

 private:
  LogLock() = default;
  std::vector<int> descriptors_;  // -1: nothing to lock
};

}  // namespace lightq::cli
