/// The files of a queue's directory, accessible while its path leads to the directory that was locked. Layer:
/// queue.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "log/storage/directory_lock.hpp"
#include "log/storage/storage.hpp"

namespace lightq::queue {

/// A Storage that checks the directory's lock. While the directory is moved, removed or unmounted, nothing is
/// created, renamed or removed at its old path. A file that is missing there counts as unavailable, not as
/// lost: these calls fail with no_space until the directory is back. Files that are open stay usable wherever
/// they are. Thread: any.
class HeldStorage final : public log::Storage {
 public:
  /// Lifetime: `storage` must outlive it.
  HeldStorage(log::Storage& storage, log::DirectoryLock lock) : storage_(storage), lock_(std::move(lock)) {}

  /// Closes the descriptors of the lock. Called in a child of the process that has the lock.
  void abandon() { const log::DirectoryLock closed(std::move(lock_)); }

  Result<std::unique_ptr<log::File>> open(const std::string& path, log::OpenMode mode) override {
    if (auto there = lock_.check(); mode != log::OpenMode::read_only && !there) return there.error();
    auto file = storage_.open(path, mode);
    if (file || !log::is_missing(file.error())) return file;
    if (auto there = lock_.check(); !there) return there.error();
    return file;
  }
  Result<void> make_directory(const std::string& path) override {
    return in_place([&] { return storage_.make_directory(path); });
  }
  Result<void> rename(const std::string& from, const std::string& to) override {
    return in_place([&] { return storage_.rename(from, to); });
  }
  Result<void> unlink(const std::string& path) override {
    return in_place([&] { return storage_.unlink(path); });
  }
  Result<void> link(const std::string& from, const std::string& to) override {
    return in_place([&] { return storage_.link(from, to); });
  }
  Result<std::uint64_t> link_count(const std::string& path) override { return storage_.link_count(path); }
  Result<void> remove_directory(const std::string& path) override {
    return in_place([&] { return storage_.remove_directory(path); });
  }
  Result<void> sync_directory(const std::string& path) override {
    return in_place([&] { return storage_.sync_directory(path); });
  }
  Result<std::unique_ptr<log::Directory>> open_directory(const std::string& path) override {
    if (auto there = lock_.check(); !there) return there.error();
    return storage_.open_directory(path);
  }
  Result<std::vector<std::string>> list(const std::string& path) override {
    if (auto there = lock_.check(); !there) return there.error();
    return storage_.list(path);
  }
  Result<std::uint64_t> free_bytes(const std::string& path) override { return storage_.free_bytes(path); }
  std::uint64_t random() override { return storage_.random(); }
  std::uint64_t boot_id() override { return storage_.boot_id(); }

 private:
  template <typename Call>
  Result<void> in_place(Call&& call) {
    if (auto there = lock_.check(); !there) return there;
    return call();
  }

  log::Storage& storage_;
  log::DirectoryLock lock_;
};

/// A base class that is initialized before the bases and members that use the storage.
class HasHeldStorage {
 protected:
  HasHeldStorage(log::Storage& storage, log::DirectoryLock lock) : held_(storage, std::move(lock)) {}
  HeldStorage held_;
};

}  // namespace lightq::queue
