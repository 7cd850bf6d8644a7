/// The audit log: lines in a file that is rotated. Layer: logging.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include <lightq/base/result.hpp>

#include "base/audit_trail.hpp"
#include "broker/logging/log_queue.hpp"

namespace lightq::broker {

struct AuditOptions {
  std::filesystem::path file;
  std::uint64_t file_bytes_max = 10 * 1024 * 1024;
  std::size_t files_kept = 5;
};

/// A file that grows by whole lines. Beyond its maximum it becomes FILE.1, FILE.1 becomes FILE.2 and so on.
/// If another program has moved or removed the file, the next line begins a new one. One thread.
class AuditFile {
 public:
  /// Opens or makes the file, with mode 0600. Errors: io_error; invalid_argument (not a regular file).
  static Result<std::unique_ptr<AuditFile>> open(const AuditOptions& options);
  AuditFile(const AuditFile&) = delete;
  AuditFile& operator=(const AuditFile&) = delete;
  ~AuditFile();

  /// Appends the line and a line end. Returns false if the line could not be written; no part of it is left.
  bool write(std::string_view line);

 private:
  explicit AuditFile(const AuditOptions& options) : options_(options) {}
  Result<void> reopen();
  [[nodiscard]] bool is_at_its_place() const;
  void rotate();
  void close();

  const AuditOptions options_;
  int descriptor_ = -1;
  std::uint64_t bytes_ = 0;
};

/// Writes the audit log. A writer never waits: a thread writes the lines, and at most 1 MiB of lines wait for
/// it. An object with the members `time`, `cmd` (`audit_log`) and `lost` reports how many were lost before
/// it. The destructor writes the waiting lines, for at most a second. Thread: any.
class AuditLog final : public AuditTrail {
 public:
  /// Errors: as AuditFile::open.
  static Result<std::unique_ptr<AuditLog>> open(const AuditOptions& options);
  ~AuditLog() override;

  void put(std::string line) override;
  /// Returns the number of lines that were not written.
  [[nodiscard]] std::uint64_t lost() const { return queue_.lost(); }

 private:
  explicit AuditLog(std::unique_ptr<AuditFile> file);

  LogQueue queue_;
};

}  // namespace lightq::broker
