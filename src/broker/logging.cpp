/// Layer: logging. The one home of spdlog.
#include "broker/logging.hpp"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/rotating_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include <lightq/base/shown_text.hpp>

namespace lightq::broker {

namespace {

constexpr std::size_t like_lines_burst = 20;
constexpr std::chrono::seconds like_lines_period{10};
constexpr std::size_t kind_bytes_max = 96;

spdlog::level::level_enum level_of(LogLevel level) {
  switch (level) {
    case LogLevel::debug: return spdlog::level::debug;
    case LogLevel::info: return spdlog::level::info;
    case LogLevel::warn: return spdlog::level::warn;
    case LogLevel::error: return spdlog::level::err;
  }
  return spdlog::level::info;
}

/// What lines that count as alike have in common.
std::string kind_of(LogLevel level, std::string_view line) {
  if (level >= LogLevel::warn) return std::string(line);
  std::string kind;
  for (const char c : line.substr(0, kind_bytes_max)) {
    if (c < '0' || c > '9') kind += c;
  }
  return kind;
}

/// A logfmt value that holds any text.
std::string logfmt_value(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '"': escaped += "\\\""; break;
      case '\\': escaped += "\\\\"; break;
      case '\n': escaped += "\\n"; break;
      case '\r': escaped += "\\r"; break;
      case '\t': escaped += "\\t"; break;
      default: escaped += c;
    }
  }
  std::string value = "\"";
  append_escaping_controls(value, escaped);
  return value + '"';
}

}  // namespace

/// Forgets kinds, but not what was left out of them.
template <typename Which>
void RepeatLimiter::forget_if(Which which) {
  std::erase_if(kinds_, [&](auto& entry) {
    auto& kind = entry.second;
    if (!which(kind)) return false;
    if (kind.left_out.count > 0) forgotten_.push_back(std::move(kind.left_out));
    return true;
  });
}

void RepeatLimiter::make_room(Clock::time_point now) {
  if (kinds_.size() < kinds_max) return;
  forget_if([&](const Kind& kind) { return over(kind, now); });
  if (kinds_.size() >= kinds_max) forget_if([](const Kind&) { return true; });
  if (!forgotten_.empty()) due_ = now;
}

bool RepeatLimiter::admit(LogLevel level, std::string_view line, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  const std::string name = kind_of(level, line);
  if (!kinds_.contains(name)) make_room(now);
  auto& kind = kinds_.try_emplace(name, Kind{now, 0, {}}).first->second;
  if (over(kind, now)) {
    if (kind.left_out.count > 0) forgotten_.push_back(std::move(kind.left_out));
    kind = Kind{now, 0, {}};
  }
  if (kind.let_through < burst_) {
    ++kind.let_through;
    return true;
  }
  kind.left_out = {level, std::string(line), kind.left_out.count + 1};
  due_ = std::min(due_.value_or(Clock::time_point::max()), kind.began + period_);
  return false;
}

std::vector<RepeatLimiter::LeftOut> RepeatLimiter::take_ended(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  if (!due_ || now < *due_) return {};
  forget_if([&](const Kind& kind) { return over(kind, now); });
  due_.reset();
  for (const auto& [text, kind] : kinds_) {
    if (kind.left_out.count > 0)
      due_ = std::min(due_.value_or(Clock::time_point::max()), kind.began + period_);
  }
  return std::exchange(forgotten_, {});
}

std::vector<RepeatLimiter::LeftOut> RepeatLimiter::take_all() {
  const std::lock_guard lock(mutex_);
  forget_if([](const Kind&) { return true; });
  due_.reset();
  return std::exchange(forgotten_, {});
}

struct Logging::Logger {
  explicit Logger(std::vector<spdlog::sink_ptr> sinks) : log("lightq", sinks.begin(), sinks.end()) {}
  spdlog::logger log;
};

Logging::Logging(std::unique_ptr<Logger> logger)
    : logger_(std::move(logger)), limiter_(like_lines_burst, like_lines_period) {}

Logging::~Logging() {
  write_left_out(limiter_.take_all());
  logger_->log.flush();
}

Result<std::unique_ptr<Logging>> Logging::open(const LoggingOptions& options) {
  try {
    std::vector<spdlog::sink_ptr> sinks;
    if (options.standard_error) sinks.push_back(std::make_shared<spdlog::sinks::stderr_sink_mt>());
    if (!options.file.empty()) {
      sinks.push_back(std::make_shared<spdlog::sinks::rotating_file_sink_mt>(
          options.file.string(), options.file_bytes_max, options.files_kept));
    }
    auto logger = std::make_unique<Logger>(std::move(sinks));
    logger->log.set_formatter(std::make_unique<spdlog::pattern_formatter>(
        "time=%Y-%m-%dT%H:%M:%S.%eZ level=%l msg=%v", spdlog::pattern_time_type::utc));
    logger->log.set_level(level_of(options.level));
    logger->log.flush_on(spdlog::level::info);
    logger->log.set_error_handler([](const std::string&) {});  // a full disk must not end in a flood
    return std::unique_ptr<Logging>(new Logging(std::move(logger)));
  } catch (const spdlog::spdlog_ex& error) {
    return Error{ErrorCode::io_error, "log file " + options.file.string() + ": " + error.what()};
  }
}

void Logging::write(LogLevel level, std::string_view line) {
  if (!logger_->log.should_log(level_of(level))) return;
  const auto now = RepeatLimiter::Clock::now();
  write_left_out(limiter_.take_ended(now));
  if (limiter_.admit(level, line, now)) logger_->log.log(level_of(level), "{}", logfmt_value(line));
}

void Logging::write_left_out(const std::vector<RepeatLimiter::LeftOut>& all) {
  for (const auto& [level, line, count] : all) {
    logger_->log.log(level_of(level), "{} left_out={}", logfmt_value("more lines like this one: " + line),
                     count);
  }
}

}  // namespace lightq::broker
