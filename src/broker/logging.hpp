/// The broker's log: lines on standard error and, if asked, in a file that is rotated. Layer: logging.
/// spdlog stays in logging.cpp.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <lightq/base/result.hpp>

#include "broker/endpoint/log_sink.hpp"

namespace lightq::broker {

/// Lets a line through unless lines like it are coming too fast: up to `burst` each `period`. What is left
/// out is counted, and the counts are to be fetched with take_ended() and take_all(). Alike are, at debug and
/// info, lines that differ in their digits only; warnings and errors must be the same throughout. Any thread.
class RepeatLimiter {
 public:
  using Clock = std::chrono::steady_clock;

  /// Lines that were left out: how many, and the last of them.
  struct LeftOut {
    LogLevel level = LogLevel::info;
    std::string line;
    std::uint64_t count = 0;
  };

  RepeatLimiter(std::size_t burst, Clock::duration period) : burst_(burst), period_(period) {}

  /// Whether to write the line; if not, it was counted.
  bool admit(LogLevel level, std::string_view line, Clock::time_point now);
  /// What was left out in periods that are over. Each count is handed out once.
  std::vector<LeftOut> take_ended(Clock::time_point now);
  /// What was left out and not handed out yet: for the end.
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
  std::optional<Clock::time_point> due_;         // when the first count can be taken; guarded by mutex_
};

struct LoggingOptions {
  LogLevel level = LogLevel::info;
  std::filesystem::path file;  ///< empty: standard error only
  std::uint64_t file_bytes_max = 10 * 1024 * 1024;
  std::size_t files_kept = 5;
  bool standard_error = true;
};

/// Writes logfmt, one event a line: `time=2026-01-31T12:00:00.123Z level=info msg="the text"`. In the text
/// quotes, backslashes, control characters (C1 and those that change the direction of writing too) and bytes
/// that are no UTF-8 are escaped as JSON does. The level is debug, info, warning or
/// error. Lines that RepeatLimiter leaves out are counted by one with a `left_out=COUNT` more.
///
/// Who writes a line never waits: a thread for each place takes the lines there, at most 256 KiB of them
/// wait, and a line with `lost=COUNT` counts those that were lost since then. The destructor writes what
/// waits, for a second at most. Any thread.
class Logging final : public LogSink {
 public:
  /// Errors: io_error, naming the file.
  static Result<std::unique_ptr<Logging>> open(const LoggingOptions& options);
  ~Logging() override;

  void write(LogLevel level, std::string_view line) override;
  [[nodiscard]] std::uint64_t lost() const override;

 private:
  struct Places;
  explicit Logging(std::unique_ptr<Places> places);
  void write_left_out(const std::vector<RepeatLimiter::LeftOut>& all);

  std::unique_ptr<Places> places_;
  RepeatLimiter limiter_;
};

}  // namespace lightq::broker
