/// The interface through which the broker's layers write log lines for an operator. Implemented in
/// broker/logging. Layer: base.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

namespace lightq::broker {

enum class LogLevel { debug, info, warn, error };

/// The shortest time between two log lines about an event that repeats.
inline constexpr auto said_again_after = std::chrono::seconds(10);

/// Takes log lines: one per event, never one per message. A line never contains a secret. Thread: any.
class LogSink {
 public:
  virtual ~LogSink() = default;
  /// Writes a line without waiting for its reader. Callers are threads on which all other work would wait,
  /// too.
  virtual void write(LogLevel level, std::string_view line) = 0;
  /// Returns the number of lines that were lost because they came faster than they could be written.
  [[nodiscard]] virtual std::uint64_t lost() const { return 0; }

  void debug(std::string_view line) { write(LogLevel::debug, line); }
  void info(std::string_view line) { write(LogLevel::info, line); }
  void warn(std::string_view line) { write(LogLevel::warn, line); }
  void error(std::string_view line) { write(LogLevel::error, line); }
};

}  // namespace lightq::broker
