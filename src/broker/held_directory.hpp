/// A directory that is known by what it is, not by its path alone. Layer: broker.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include <lightq/base/result.hpp>

namespace lightq::broker {

/// Holds a directory open and tells whether its path still leads to it. The path may come to lead nowhere, or
/// to another directory: one that was made in its place, or the mount point of a disk that was unmounted.
/// What was written there would not be found again. Any thread.
class HeldDirectory {
 public:
  /// Errors: io_error.
  static Result<std::unique_ptr<const HeldDirectory>> open(const std::filesystem::path& path);
  HeldDirectory(const HeldDirectory&) = delete;
  HeldDirectory& operator=(const HeldDirectory&) = delete;
  ~HeldDirectory();

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// True if the path leads to the directory, or did at the last tick of the system's clock (a few
  /// milliseconds ago).
  [[nodiscard]] bool is_in_place() const;
  /// Errors: no_space if the directory is not in its place, as on a disk that takes nothing for now.
  [[nodiscard]] Result<void> check() const;
  /// Opens a directory below, wherever that lies by now; its descriptor. Errors: io_error.
  [[nodiscard]] Result<int> open_below(const std::filesystem::path& path) const;
  /// Removes a file of the directory itself, if it is there.
  void remove(const char* name) const;
  /// Where a Unix socket of this name lies in the directory: a path that the system takes, also where the
  /// directory's own is too long for a socket's address. Good as long as this object lives.
  [[nodiscard]] std::string socket_path(const std::string& name) const;

 private:
  HeldDirectory(std::filesystem::path path, int descriptor, dev_t device, ino_t file)
      : path_(std::move(path)), descriptor_(descriptor), device_(device), file_(file) {}

  const std::filesystem::path path_;
  const int descriptor_;  // as long as it is open no other directory gets the same number
  const dev_t device_;
  const ino_t file_;
  mutable std::atomic<std::int64_t> seen_ns_ = 0;  // the tick at which it was in its place last
};

}  // namespace lightq::broker
