/// Layer: logging. The one home of spdlog.
#include "broker/logging.hpp"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/rotating_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <utility>
#include <vector>

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

/// What lines that differ only in their numbers have in common.
std::string kind_of(std::string_view line) {
  std::string kind;
  for (const char c : line.substr(0, kind_bytes_max)) {
    if (c < '0' || c > '9') kind += c;
  }
  return kind;
}

}  // namespace

std::optional<std::uint64_t> RepeatLimiter::admit(std::string_view line, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  if (kinds_.size() >= kinds_max) {
    std::erase_if(kinds_, [&](const auto& kind) { return now - kind.second.began >= period_; });
    if (kinds_.size() >= kinds_max) kinds_.clear();
  }
  auto& kind = kinds_.try_emplace(kind_of(line), Kind{now}).first->second;
  if (now - kind.began >= period_) {
    kind.began = now;
    kind.let_through = 0;
  }
  if (kind.let_through >= burst_) {
    ++kind.left_out;
    return std::nullopt;
  }
  ++kind.let_through;
  return std::exchange(kind.left_out, 0);
}

struct Logging::Logger {
  explicit Logger(std::vector<spdlog::sink_ptr> sinks) : log("lightq", sinks.begin(), sinks.end()) {}
  spdlog::logger log;
};

Logging::Logging(std::unique_ptr<Logger> logger)
    : logger_(std::move(logger)), limiter_(like_lines_burst, like_lines_period) {}

Logging::~Logging() {
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
    logger->log.set_formatter(std::make_unique<spdlog::pattern_formatter>("%Y-%m-%dT%H:%M:%S.%eZ %l %v",
                                                                          spdlog::pattern_time_type::utc));
    logger->log.set_level(level_of(options.level));
    logger->log.flush_on(spdlog::level::info);
    logger->log.set_error_handler([](const std::string&) {});  // a full disk must not end in a flood
    return std::unique_ptr<Logging>(new Logging(std::move(logger)));
  } catch (const spdlog::spdlog_ex& error) {
    return Error{ErrorCode::io_error, "log file " + options.file.string() + ": " + error.what()};
  }
}

void Logging::write(LogLevel level, std::string_view line) {
  const auto spdlog_level = level_of(level);
  if (!logger_->log.should_log(spdlog_level)) return;
  const auto left_out = limiter_.admit(line, RepeatLimiter::Clock::now());
  if (!left_out) return;
  std::string text(line);
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = '?';
  }
  if (*left_out > 0) text += " (and " + std::to_string(*left_out) + " lines like it before)";
  logger_->log.log(spdlog_level, "{}", text);
}

}  // namespace lightq::broker
