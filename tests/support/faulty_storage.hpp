/// A file system in memory that fails when a test asks for it, and loses unsynced changes in a power cut.
#pragma once

#include <cerrno>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "log/storage/storage.hpp"

namespace lightq::test {

/// Keeps files in memory; every prefix of a path is a directory. Each file has its written bytes and its
/// bytes on disk. At a power cut the caller decides which of the other bytes survive. Thread: any; but no
/// thread may store to a mapping while another syncs its file.
class FaultyStorage final : public log::Storage {
 public:
  enum class Call { write, read, allocate, sync, map, open, rename, unlink, sync_directory, link };
  /// The outcome of a call: `error` is an errno to fail with, or 0 to proceed. For a write, `short_bytes`
  /// above 0 is the number of bytes that are written before the error. Without an error it makes a short
  /// write.
  struct Fault {
    int error = 0;
    std::size_t short_bytes = 0;
  };
  /// Called before every call, with its path. Decides the outcome of the call.
  std::function<Fault(Call, const std::string&)> on_call;
  /// Called before every read. Returns true if these bytes are on a bad sector.
  std::function<bool(const std::string& path, std::uint64_t position, std::size_t bytes)> on_read;
  /// Called after every successful write.
  std::function<void(const std::string& path, std::uint64_t position, std::size_t bytes)> on_write;
  /// The result of free_bytes, less the allocated bytes. Allocating more fails.
  std::uint64_t disk_bytes = ~std::uint64_t{0} >> 1;

  static constexpr std::size_t sector_bytes = 512;
  /// The number of bytes that a file may grow while it is mapped for writing.
  static constexpr std::size_t grows_mapped_bytes = 64 * limits::KiB;
  /// Ends the process and loses power. `survives` decides for each sector that was written since its file's
  /// last sync. Sectors with stores through a writable mapping count if they differ from the disk. For the
  /// changes of names that were not synced `survives` decides once: they survive together or not at all. The
  /// journal keeps their order, and for a log a cut between two syncs equals one of these two outcomes.
  /// Requires: no file is open.
  void power_cut(const std::function<bool()>& survives);

  /// Writes some sectors to disk, as an operating system may do at any time. `chosen` decides for each sector
  /// written since its file's last sync whether its present bytes are on disk from now on. It is no sync and
  /// guarantees nothing.
  void write_back(const std::function<bool()>& chosen);

  /// The files that have released their descriptor, and the rule for which may do so; null: all.
  std::set<std::string> released;
  std::function<bool(const std::string& path)> may_release_descriptors;

  /// Returns a file's bytes, to inspect or damage them.
  std::vector<std::byte>& bytes_of(const std::string& path);
  [[nodiscard]] bool exists(const std::string& path);
  [[nodiscard]] std::vector<std::string> paths();

  Result<std::unique_ptr<log::File>> open(const std::string& path, log::OpenMode mode) override;
  Result<void> make_directory(const std::string& path) override;
  Result<void> rename(const std::string& from, const std::string& to) override;
  Result<void> unlink(const std::string& path) override;
  Result<void> link(const std::string& from, const std::string& to) override;
  Result<std::uint64_t> link_count(const std::string& path) override;
  Result<void> remove_directory(const std::string& path) override;
  Result<void> sync_directory(const std::string& path) override;
  Result<std::unique_ptr<log::Directory>> open_directory(const std::string& path) override;
  Result<std::vector<std::string>> list(const std::string& path) override;
  Result<std::uint64_t> free_bytes(const std::string& path) override;
  std::uint64_t random() override;
  std::uint64_t boot_id() override { return boot_; }

 private:
  friend class FaultyFile;
  /// An inode. A mapping needs `bytes` at a fixed address. So `bytes` grows only while no mapping exists, or
  /// within the space that a writable mapping has reserved.
  struct Node {
    std::vector<std::byte> bytes;
    std::vector<std::byte> on_disk;
    std::set<std::size_t> dirty_sectors;
    int mappings = 0;
    bool stored_to =
        false;  // mapped for writing since the last power cut: dirty sectors are found by comparison
  };
  using Names = std::map<std::string, std::shared_ptr<Node>>;
  Result<void> rename_directory(const std::string& from, const std::string& to);
  Fault ask(Call call, const std::string& path);
  [[nodiscard]] std::uint64_t used_bytes() const;
  static void note_stores(Node& node);
  static void sync_range(Node& node, std::size_t begin, std::size_t end);
  static std::vector<std::byte> surviving_bytes(Node& node, const std::function<bool()>& survives);

  std::mutex mutex_;
  Names names_;
  Names names_on_disk_;
  std::set<std::string> made_directories_;
  std::vector<std::pair<std::string, std::string>> renamed_directories_;  ///< not on disk yet
  std::uint64_t random_ = 0x9E3779B97F4A7C15;
  std::uint64_t boot_ = 1;
};

}  // namespace lightq::test
