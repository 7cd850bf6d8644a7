/// Where the broker's parts report events for its operator; src/broker/logging.cpp writes them. Layer:
/// endpoint.
#pragma once

#include <concepts>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace lightq::broker {

enum class LogLevel { debug, info, warning, error };

/// One `key=value` of a log line. Values are quoted where they need it; no secrets.
struct LogField {
  LogField(std::string_view name, std::string text) : key(name), value(std::move(text)) {}
  LogField(std::string_view name, std::string_view text) : key(name), value(text) {}
  LogField(std::string_view name, const char* text) : key(name), value(text) {}
  LogField(std::string_view name, std::integral auto number) : key(name), value(std::to_string(number)) {}

  std::string_view key;
  std::string value;
};

/// Takes events: a fixed sentence and its fields. Never one per message: what can repeat quickly is thinned
/// out by sentence. Any thread.
class LogSink {
 public:
  using Fields = std::initializer_list<LogField>;

  LogSink() = default;
  LogSink(const LogSink&) = delete;
  LogSink& operator=(const LogSink&) = delete;
  virtual ~LogSink() = default;

  virtual void write(LogLevel level, std::string_view event, std::span<const LogField> fields) = 0;

  void debug(std::string_view event, Fields fields = {}) { log(LogLevel::debug, event, fields); }
  void info(std::string_view event, Fields fields = {}) { log(LogLevel::info, event, fields); }
  void warning(std::string_view event, Fields fields = {}) { log(LogLevel::warning, event, fields); }
  void error(std::string_view event, Fields fields = {}) { log(LogLevel::error, event, fields); }

 private:
  void log(LogLevel level, std::string_view event, Fields fields) {
    write(level, event, std::span<const LogField>(fields.begin(), fields.size()));
  }
};

/// Forgets everything: for tests and embedders that want silence.
class SilentLogSink final : public LogSink {
 public:
  void write(LogLevel, std::string_view, std::span<const LogField>) override {}
};

}  // namespace lightq::broker
