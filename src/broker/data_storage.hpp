/// The file system below the data directory, which is written only while the directory is in its place.
/// Layer: broker.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "broker/held_directory.hpp"
#include "log/storage/storage.hpp"

namespace lightq::broker {

/// Passes calls to another storage. While the data directory is not in its place, writes, new files and new
/// names fail with no_space, so that topics wait as on a full disk. Syncs of earlier writes succeed. Creates
/// a directory only if its parent exists. Thread: any.
class DataStorage final : public log::Storage {
 public:
  /// Lifetime: both must outlive this object and its files. Paths below `directory` must begin with its path.
  DataStorage(log::Storage& storage, const HeldDirectory& directory)
      : storage_(storage), directory_(directory) {}

  Result<std::unique_ptr<log::File>> open(const std::string& path, log::OpenMode mode) override;
  Result<void> make_directory(const std::string& path) override;
  Result<void> rename(const std::string& from, const std::string& to) override;
  Result<void> unlink(const std::string& path) override;
  Result<void> link(const std::string& from, const std::string& to) override;
  Result<std::uint64_t> link_count(const std::string& path) override { return storage_.link_count(path); }
  Result<void> remove_directory(const std::string& path) override;
  Result<void> sync_directory(const std::string& path) override;
  Result<std::unique_ptr<log::Directory>> open_directory(const std::string& path) override;
  Result<std::vector<std::string>> list(const std::string& path) override { return storage_.list(path); }
  Result<std::uint64_t> free_bytes(const std::string& path) override { return storage_.free_bytes(path); }
  std::uint64_t random() override { return storage_.random(); }
  std::uint64_t boot_id() override { return storage_.boot_id(); }

 private:
  log::Storage& storage_;
  const HeldDirectory& directory_;
};

}  // namespace lightq::broker
