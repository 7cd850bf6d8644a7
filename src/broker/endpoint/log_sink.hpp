/// Where the broker's layers put what an operator should read; broker/logging writes it out. Layer: endpoint.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

namespace lightq::broker {

enum class LogLevel { debug, info, warn, error };

/// What happens again and again is said once in this time.
inline constexpr auto said_again_after = std::chrono::seconds(10);

/// One line per event, never per message, and never a secret. Any thread.
class LogSink {
 public:
  virtual ~LogSink() = default;
  /// Does not wait for whoever reads the lines: it is called where everything else would wait too.
  virtual void write(LogLevel level, std::string_view line) = 0;
  /// Lines that were lost, because they came faster than they could be written.
  [[nodiscard]] virtual std::uint64_t lost() const { return 0; }

  void debug(std::string_view line) { write(LogLevel::debug, line); }
  void info(std::string_view line) { write(LogLevel::info, line); }
  void warn(std::string_view line) { write(LogLevel::warn, line); }
  void error(std::string_view line) { write(LogLevel::error, line); }
};

}  // namespace lightq::broker
