/// The broker's log: lines on standard error and, if asked, in a file that is rotated. Layer: logging.
/// spdlog stays in logging.cpp.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include <lightq/base/result.hpp>

#include "broker/endpoint/log_sink.hpp"

namespace lightq::broker {

/// Lets a line through unless lines like it (the same but for their digits) are coming too fast: up to
/// `burst` each `period`; then one that says how many were left out. Any thread.
class RepeatLimiter {
 public:
  using Clock = std::chrono::steady_clock;

  RepeatLimiter(std::size_t burst, Clock::duration period) : burst_(burst), period_(period) {}

  /// Nothing: leave the line out. Else how many like it were left out before it.
  std::optional<std::uint64_t> admit(std::string_view line, Clock::time_point now);

 private:
  struct Kind {
    Clock::time_point began;
    std::size_t let_through = 0;
    std::uint64_t left_out = 0;
  };

  static constexpr std::size_t kinds_max = 1024;

  const std::size_t burst_;
  const Clock::duration period_;
  std::mutex mutex_;
  std::unordered_map<std::string, Kind> kinds_;  // guarded by mutex_
};

struct LoggingOptions {
  LogLevel level = LogLevel::info;
  std::filesystem::path file;  ///< empty: standard error only
  std::uint64_t file_bytes_max = 10 * 1024 * 1024;
  std::size_t files_kept = 5;
  bool standard_error = true;
};

/// Writes lines of the form `2026-01-31T12:00:00.123Z info text`; control characters within a line are
/// replaced, so that a line is one line. Any thread.
class Logging final : public LogSink {
 public:
  /// Errors: io_error, naming the file.
  static Result<std::unique_ptr<Logging>> open(const LoggingOptions& options);
  ~Logging() override;

  void write(LogLevel level, std::string_view line) override;

 private:
  struct Logger;
  explicit Logging(std::unique_ptr<Logger> logger);

  std::unique_ptr<Logger> logger_;
  RepeatLimiter limiter_;
};

}  // namespace lightq::broker
