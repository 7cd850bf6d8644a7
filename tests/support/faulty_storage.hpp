/// A file system in memory that fails when it is told to, and forgets what was not synced.
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

#include "log/storage.hpp"

namespace lightq::test {

/// Files live in memory; directories are any prefix of a path. Every file has what was written and what is on
/// disk; `power_cut` keeps of the rest what the caller decides. Any thread; but nobody may store to a mapping
/// while another thread syncs its file.
class FaultyStorage final : public log::Storage {
 public:
  enum class Call { write, read, allocate, sync, map, open, rename, unlink, sync_directory, link };
  /// What a call is to do instead: fail with this errno; 0: go on. For a write, `short_bytes` above 0 lets so
  /// many bytes through first (alone: a short write).
  struct Fault {
    int error = 0;
    std::size_t short_bytes = 0;
  };
  /// Asked before every call, with its path.
  std::function<Fault(Call, const std::string&)> on_call;
  /// Asked before every read: whether these bytes are on a bad sector.
  std::function<bool(const std::string& path, std::uint64_t position, std::size_t bytes)> on_read;
  /// Told of every write that has come through.
  std::function<void(const std::string& path, std::uint64_t position, std::size_t bytes)> on_write;
  /// What free_bytes answers, less what was allocated; allocate fails beyond it.
  std::uint64_t disk_bytes = ~std::uint64_t{0} >> 1;

  static constexpr std::size_t sector_bytes = 512;
  /// So much a file may grow while it is mapped for writing.
  static constexpr std::size_t grows_mapped_bytes = 64 * limits::KiB;
  /// Ends the process and the machine: of each sector written (or stored to in a writable mapping, if it has
  /// other bytes than the disk) since its file's last sync, and of each change
  /// of names in a directory that was not synced, `survives` decides. Open files must be gone.
  void power_cut(const std::function<bool()>& survives);

  /// What a system may do at any time: of each sector written since its file's last sync, `chosen` decides
  /// whether it is on disk from now on as it is now. Promises nothing, and is no sync.
  void write_back(const std::function<bool()>& chosen);

  /// Files that do without a descriptor, and which may; null: all.
  std::set<std::string> rested;
  std::function<bool(const std::string& path)> may_rest;

  /// A file's bytes, to look at or to damage.
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
  /// What an inode is; a mapping keeps `bytes` where they are, so they only grow while nobody maps them, or
  /// within the room that a writable mapping has reserved.
  struct Node {
    std::vector<std::byte> bytes;
    std::vector<std::byte> on_disk;
    std::set<std::size_t> dirty_sectors;
    int mappings = 0;
    bool stored_to =
        false;  // mapped for writing since the last power cut: dirty sectors are found by looking
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
