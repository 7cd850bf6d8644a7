/// Formats the broker's log lines as logfmt and writes them with spdlog. Only this file uses spdlog. Layer:
/// logging.
#include "broker/logging/logging.hpp"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/rotating_file_sink.h>
#include <spdlog/spdlog.h>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <system_error>
#include <utility>

#include <lightq/base/shown_text.hpp>

#include "broker/logging/log_descriptor.hpp"
#include "broker/logging/log_queue.hpp"

namespace lightq::broker {

namespace {

constexpr std::size_t like_lines_burst = 20;
constexpr std::chrono::seconds like_lines_period{10};
constexpr std::size_t kind_bytes_max = 96;
constexpr std::size_t log_queue_bytes =
    256 * 1024;  // of lines that wait for standard error, and for the file
constexpr std::chrono::milliseconds last_lines_time{750};

spdlog::level::level_enum level_of(LogLevel level) {
  switch (level) {
    case LogLevel::debug: return spdlog::level::debug;
    case LogLevel::info: return spdlog::level::info;
    case LogLevel::warn: return spdlog::level::warn;
    case LogLevel::error: return spdlog::level::err;
  }
  return spdlog::level::info;
}

/// Returns the part that similar lines have in common.
std::string kind_of(LogLevel level, std::string_view line) {
  if (level >= LogLevel::warn) return std::string(line);
  std::string kind;
  for (const char c : line.substr(0, kind_bytes_max)) {
    if (c < '0' || c > '9') kind += c;
  }
  return kind;
}

/// Returns any text as a logfmt value.
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

std::unique_ptr<spdlog::formatter> line_formatter() {
  return std::make_unique<spdlog::pattern_formatter>("time=%Y-%m-%dT%H:%M:%S.%eZ level=%l msg=%v",
                                                     spdlog::pattern_time_type::utc);
}

spdlog::details::log_msg message_of(const LogQueue::Line& line) {
  return {line.time, {}, "lightq", level_of(line.level), line.text};
}

LogQueue::Write to_descriptor(int descriptor) {
  return [to = LogDescriptor(descriptor), formatter = std::shared_ptr(line_formatter())](
             const LogQueue::Line& line, const std::atomic<bool>& give_up) {
    spdlog::memory_buf_t bytes;
    formatter->format(message_of(line), bytes);
    return to.write({bytes.data(), bytes.size()}, give_up);
  };
}

/// The log file and its predecessors. One thread.
class LogFile {
 public:
  /// Throws spdlog_ex, and filesystem_error if the path cannot be made absolute.
  explicit LogFile(const LoggingOptions& options, std::shared_ptr<std::atomic<bool>> reopen_wanted)
      : reopen_wanted_(std::move(reopen_wanted)),
        path_(std::filesystem::absolute(options.file).string()),
        bytes_max_(options.file_bytes_max),
        kept_(options.files_kept) {
    open();
  }

  /// Returns false if the line is lost: the disk is full, or the next file cannot be opened now. After that
  /// the sink may have no file, which it does not check before writing, so the next line creates a new sink.
  bool write(const LogQueue::Line& line) {
    try {
      if (reopen_wanted_->exchange(false)) sink_.reset();
      if (sink_ == nullptr) open();
      sink_->log(message_of(line));
      sink_->flush();
      return true;
    } catch (const spdlog::spdlog_ex&) {
      sink_.reset();
      return false;
    }
  }

 private:
  void open() {
    end_last_line();
    auto sink = std::make_unique<spdlog::sinks::rotating_file_sink_st>(path_, bytes_max_, kept_);
    sink->set_formatter(line_formatter());
    sink_ = std::move(sink);
  }

  /// Ends a last line that a full disk or a kill has cut off.
  void end_last_line() const {
    std::error_code unknown;
    if (!std::filesystem::is_regular_file(path_, unknown)) return;
    std::ifstream file(path_, std::ios::binary);
    file.seekg(-1, std::ios::end);
    if (const int last = file.get(); file && last != '\n') std::ofstream(path_, std::ios::app) << '\n';
  }

  const std::shared_ptr<std::atomic<bool>> reopen_wanted_;
  const std::string path_;
  const std::uint64_t bytes_max_;
  const std::size_t kept_;
  std::unique_ptr<spdlog::sinks::rotating_file_sink_st> sink_;  // null: the next line creates it
};

/// Throws as LogFile does.
LogQueue::Write to_file(const LoggingOptions& options, std::shared_ptr<std::atomic<bool>> reopen_wanted) {
  return [file = std::make_shared<LogFile>(options, std::move(reopen_wanted))](const LogQueue::Line& line,
                                                                               const std::atomic<bool>&) {
    return file->write(line);  // the queue counts lost lines
  };
}

}  // namespace

/// Forgets kinds of lines, but keeps the counts of their suppressed lines.
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

struct Logging::Places {
  std::atomic<LogLevel> level = LogLevel::info;
  std::shared_ptr<std::atomic<bool>> reopen_wanted = std::make_shared<std::atomic<bool>>(false);
  std::vector<std::unique_ptr<LogQueue>> queues;  // one per destination, so that none waits for another

  void put(LogLevel of_line, const std::string& text) const {
    for (const auto& queue : queues) queue->put({of_line, std::chrono::system_clock::now(), text});
  }
};

Logging::Logging(std::unique_ptr<Places> places)
    : places_(std::move(places)), limiter_(like_lines_burst, like_lines_period) {}

Logging::~Logging() {
  write_left_out(limiter_.take_all());
  const auto deadline = LogQueue::Clock::now() + last_lines_time;
  for (const auto& queue : places_->queues) queue->close();
  for (const auto& queue : places_->queues) queue->finish(deadline);
}

Result<std::unique_ptr<Logging>> Logging::open(const LoggingOptions& options) {
  try {
    auto places = std::make_unique<Places>();
    places->level = options.level;
    const auto add = [&](LogQueue::Write write) {
      places->queues.push_back(std::make_unique<LogQueue>(log_queue_bytes, std::move(write)));
    };
    if (!options.file.empty()) add(to_file(options, places->reopen_wanted));
    if (options.standard_error) add(to_descriptor(STDERR_FILENO));
    return std::unique_ptr<Logging>(new Logging(std::move(places)));
  } catch (const spdlog::spdlog_ex& error) {
    return Error{ErrorCode::io_error, "log file " + options.file.string() + ": " + error.what()};
  } catch (const std::filesystem::filesystem_error& error) {
    return Error{ErrorCode::io_error, "log file " + options.file.string(), error.code().value()};
  } catch (const std::system_error& error) {
    return Error{ErrorCode::io_error,
                 std::string("cannot start the thread that writes the log: ") + error.what()};
  }
}

void Logging::write(LogLevel level, std::string_view line) {
  if (level < places_->level) return;
  const auto now = RepeatLimiter::Clock::now();
  write_left_out(limiter_.take_ended(now));
  if (limiter_.admit(level, line, now)) places_->put(level, logfmt_value(line));
}

void Logging::set_level(LogLevel level) {
  places_->level = level;
}

void Logging::reopen_file() {
  *places_->reopen_wanted = true;
}

std::uint64_t Logging::lost() const {
  std::uint64_t lost = 0;
  for (const auto& queue : places_->queues) lost += queue->lost();
  return lost;
}

void Logging::write_left_out(const std::vector<RepeatLimiter::LeftOut>& all) {
  for (const auto& [level, line, count] : all) {
    places_->put(level,
                 logfmt_value("more lines like this one: " + line) + " left_out=" + std::to_string(count));
  }
}

}  // namespace lightq::broker
