/// A directory that is identified by its inode, not only by its path. Layer: broker.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include <lightq/base/result.hpp>

namespace lightq::broker {

/// Keeps a directory open and checks whether its path still leads to it. The path may come to lead nowhere,
/// or to another directory: one created in its place, or the mount point of a disk that was unmounted. Data
/// written there would not be found again. Thread: any.
class HeldDirectory {
 public:
  /// Errors: io_error.
  static Result<std::unique_ptr<const HeldDirectory>> open(const std::filesystem::path& path);
  HeldDirectory(const HeldDirectory&) = delete;
  HeldDirectory& operator=(const HeldDirectory&) = delete;
  ~HeldDirectory();

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// Returns true if the path leads to the directory, or did at the last tick of the system's clock (a few
  /// milliseconds ago).
  [[nodiscard]] bool is_in_place() const;
  /// Fails with no_space if the directory is not in its place, as on a disk that is full for now.
  [[nodiscard]] Result<void> check() const;
  /// Opens a directory below this one, wherever this one is by now, and returns its descriptor. Errors:
  /// io_error.
  [[nodiscard]] Result<int> open_below(const std::filesystem::path& path) const;
  /// Removes a file directly in the directory, if it exists.
  void remove(const char* name) const;
  /// Returns a path for a Unix socket of this name in the directory. The path fits into a socket address even
  /// if the directory's own path is too long. Lifetime: valid as long as this object lives.
  [[nodiscard]] std::string socket_path(const std::string& name) const;

 private:
  HeldDirectory(std::filesystem::path path, int descriptor, dev_t device, ino_t file)
      : path_(std::move(path)), descriptor_(descriptor), device_(device), file_(file) {}

  const std::filesystem::path path_;
  const int descriptor_;  // while it is open no other directory gets the same inode
  const dev_t device_;
  const ino_t file_;
  mutable std::atomic<std::int64_t> seen_ns_ = 0;  // the last tick at which it was in its place
};

}  // namespace lightq::broker
