/// The real file system. Layer: log.
#pragma once

#include "log/storage/storage.hpp"

namespace lightq::log {

/// Makes all system calls of the durable logs, except mmap (see MappedMemory). Has no state. Thread: any.
class PosixStorage final : public Storage {
 public:
  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) override;
  Result<void> make_directory(const std::string& path) override;
  Result<void> rename(const std::string& from, const std::string& to) override;
  Result<void> unlink(const std::string& path) override;
  Result<void> link(const std::string& from, const std::string& to) override;
  Result<std::uint64_t> link_count(const std::string& path) override;
  Result<void> remove_directory(const std::string& path) override;
  Result<void> sync_directory(const std::string& path) override;
  Result<std::unique_ptr<Directory>> open_directory(const std::string& path) override;
  /// Returns a directory for an open descriptor, which it then owns and closes. `path` is used in error
  /// texts.
  static std::unique_ptr<Directory> directory_of(int descriptor, std::string path);
  Result<std::vector<std::string>> list(const std::string& path) override;
  Result<std::uint64_t> free_bytes(const std::string& path) override;
  std::uint64_t random() override;
  std::uint64_t boot_id() override;
};

}  // namespace lightq::log
