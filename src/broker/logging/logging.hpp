/// The broker's log: lines on standard error and, if configured, in a file that is rotated. Layer: logging.
/// Only logging.cpp uses spdlog.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <lightq/base/result.hpp>

#include "base/log_sink.hpp"

namespace lightq::broker {

/// Suppresses repeated lines: passes up to `burst` similar lines in each `period`. Suppressed lines are
/// counted; take_ended() and take_all() return the counts. At debug and info, lines are similar if they
/// differ only in digits; warnings and errors must be equal. Thread: any.
class RepeatLimiter {
 public:
  using Clock = std::chrono::steady_clock;

  /// Similar lines that were suppressed: their number, and the last of them.
  struct LeftOut {
    LogLevel level = LogLevel::info;
    std::string line;
    std::uint64_t count = 0;
  };

  RepeatLimiter(std::size_t burst, Clock::duration period) : burst_(burst), period_(period) {}

  /// Returns true if the line should be written. Otherwise counts it.
  bool admit(LogLevel level, std::string_view line, Clock::time_point now);
  /// Returns the counts of periods that have ended. Each count is returned once.
  std::vector<LeftOut> take_ended(Clock::time_point now);
  /// Returns all counts that were not returned yet. Call it at the end.
  std::vector<LeftOut> take_all();

 private:
  struct Kind {
    Clock::time_point began;
    std::size_t let_through = 0;
    LeftOut left_out;
  };

  static constexpr std::size_t kinds_max = 1024;

  [[nodiscard]] bool over(const Kind& kind, Clock::time_point now) const {
    return now - kind.began >= period_;
  }
  void make_room(Clock::time_point now);
  template <typename Which>
  void forget_if(Which which);

  const std::size_t burst_;
  const Clock::duration period_;
  std::mutex mutex_;
  std::unordered_map<std::string, Kind> kinds_;  // guarded by mutex_
  std::vector<LeftOut> forgotten_;               // of kinds no longer in kinds_; guarded by mutex_
  std::optional<Clock::time_point> due_;         // end of the first period with a count; guarded by mutex_
};

struct LoggingOptions {
  LogLevel level = LogLevel::info;
  std::filesystem::path file;  ///< empty: standard error only
  std::uint64_t file_bytes_max = 10 * 1024 * 1024;
  std::size_t files_kept = 5;
  bool standard_error = true;
};

/// Writes logfmt, one event per line: `time=2026-01-31T12:00:00.123Z level=info msg="the text"`. The level is
/// debug, info, warning or error. In the text, JSON escapes replace quotes, backslashes, control characters
/// (also C1 and those that change the writing direction) and bytes that are not UTF-8. Lines that
/// RepeatLimiter suppresses are counted by one line with an additional `left_out=COUNT`.
///
/// A writer never waits: one thread per destination writes the lines, and at most 256 KiB of lines wait for
/// it. A line with `lost=COUNT` reports how many were lost since the line before. The destructor writes the
/// waiting lines, for at most a second. Thread: any.
class Logging final : public LogSink {
 public:
  /// Errors: io_error, which names the file.
  static Result<std::unique_ptr<Logging>> open(const LoggingOptions& options);
  ~Logging() override;

  void write(LogLevel level, std::string_view line) override;
  [[nodiscard]] std::uint64_t lost() const override;
  /// Sets the least level of lines that are written.
  void set_level(LogLevel level);
  /// Opens the log file again before its next line, so that a file that was moved away is left to its mover.
  void reopen_file();

 private:
  struct Places;
  explicit Logging(std::unique_ptr<Places> places);
  void write_left_out(const std::vector<RepeatLimiter::LeftOut>& all);

  std::unique_ptr<Places> places_;
  RepeatLimiter limiter_;
};

}  // namespace lightq::broker
