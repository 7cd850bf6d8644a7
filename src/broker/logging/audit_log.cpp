/// The audit log: lines in a file that is rotated. Layer: logging.
#include "broker/logging/audit_log.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <system_error>
#include <utility>

namespace lightq::broker {

namespace {

constexpr std::size_t audit_queue_bytes = 1024 * 1024;
constexpr std::chrono::milliseconds last_audit_lines_time{750};
constexpr mode_t owner_only = 0600;

Error audit_error(ErrorCode code, const std::filesystem::path& file, const std::string& why, int number = 0) {
  return {code, "audit log " + file.string() + ": " + why, number};
}

/// Returns the line for the report of the queue about lost lines, `... lost=COUNT`.
std::string lost_audit_line(const LogQueue::Line& line) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(line.time);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 32> time{};
  const std::size_t used = std::strftime(time.data(), time.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  const std::string count = line.text.substr(line.text.rfind('=') + 1);
  return R"({"time":")" + std::string(time.data(), used) + R"(","cmd":"audit_log","lost":)" + count + "}";
}

}  // namespace

Result<std::unique_ptr<AuditFile>> AuditFile::open(const AuditOptions& options) {
  std::error_code fault;
  AuditOptions absolute = options;
  absolute.file = std::filesystem::absolute(options.file, fault);
  if (fault) return audit_error(ErrorCode::io_error, options.file, "cannot find its path", fault.value());
  std::unique_ptr<AuditFile> file(new AuditFile(absolute));
  if (auto opened = file->reopen(); !opened) return opened.error();
  return file;
}

AuditFile::~AuditFile() {
  close();
}

void AuditFile::close() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

Result<void> AuditFile::reopen() {
  close();
  // A pipe must not block the opening.
  constexpr int flags = O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  descriptor_ = ::open(options_.file.c_str(), flags, owner_only);
  struct stat about{};
  if (descriptor_ < 0 || ::fstat(descriptor_, &about) != 0) {
    const int number = errno;
    close();
    return audit_error(ErrorCode::io_error, options_.file, "cannot open it", number);
  }
  if (!S_ISREG(about.st_mode)) {
    close();
    return audit_error(ErrorCode::invalid_argument, options_.file, "it is not a regular file");
  }
  bytes_ = static_cast<std::uint64_t>(about.st_size);
  char last = '\n';
  const bool has_last = bytes_ > 0 && ::pread(descriptor_, &last, 1, about.st_size - 1) == 1;
  // A kill or a full disk has cut off the last line.
  if (has_last && last != '\n' && ::write(descriptor_, "\n", 1) == 1) ++bytes_;
  return {};
}

bool AuditFile::is_at_its_place() const {
  struct stat own{};
  struct stat there{};
  return descriptor_ >= 0 && ::fstat(descriptor_, &own) == 0 && ::stat(options_.file.c_str(), &there) == 0 &&
         own.st_dev == there.st_dev && own.st_ino == there.st_ino;
}

void AuditFile::rotate() {
  const auto old = [&](std::size_t number) { return options_.file.string() + "." + std::to_string(number); };
  std::error_code ignored;  // a file that cannot be renamed grows on
  for (std::size_t number = options_.files_kept; number > 1; --number)
    std::filesystem::rename(old(number - 1), old(number), ignored);
  if (options_.files_kept > 0)
    std::filesystem::rename(options_.file, old(1), ignored);
  else
    std::filesystem::remove(options_.file, ignored);
}

bool AuditFile::write(std::string_view line) {
  if (!is_at_its_place() && !reopen()) return false;
  const std::string text = std::string(line) + "\n";
  if (bytes_ > 0 && bytes_ + text.size() > options_.file_bytes_max) {
    rotate();
    if (!reopen()) return false;
  }
  const ssize_t written = ::write(descriptor_, text.data(), text.size());
  if (written == static_cast<ssize_t>(text.size())) {
    bytes_ += text.size();
    return true;
  }
  if (written > 0) (void)!::ftruncate(descriptor_, static_cast<off_t>(bytes_));  // the disk is full
  return false;
}

AuditLog::AuditLog(std::unique_ptr<AuditFile> file)
    : queue_(audit_queue_bytes, [file = std::shared_ptr<AuditFile>(std::move(file))](
                                    const LogQueue::Line& line, const std::atomic<bool>&) {
        return file->write(line.text.starts_with('{') ? line.text : lost_audit_line(line));
      }) {}

Result<std::unique_ptr<AuditLog>> AuditLog::open(const AuditOptions& options) {
  auto file = AuditFile::open(options);
  if (!file) return file.error();
  try {
    return std::unique_ptr<AuditLog>(new AuditLog(std::move(*file)));
  } catch (const std::system_error& error) {
    return audit_error(ErrorCode::io_error, options.file, "cannot start its thread", error.code().value());
  }
}

AuditLog::~AuditLog() {
  const auto deadline = LogQueue::Clock::now() + last_audit_lines_time;
  queue_.close();
  queue_.finish(deadline);
}

void AuditLog::put(std::string line) {
  queue_.put({LogLevel::info, std::chrono::system_clock::now(), std::move(line)});
}

}  // namespace lightq::broker
