/// Wraps a storage so that it writes only while the data directory is in its place. Layer: broker.
#include "broker/data_storage.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>

#include "log/storage/posix_storage.hpp"

namespace lightq::broker {

namespace {

/// A file below the data directory.
class DataFile final : public log::File {
 public:
  DataFile(std::unique_ptr<log::File> file, const HeldDirectory& directory)
      : file_(std::move(file)), directory_(directory) {}

  Result<std::size_t> write_some(ByteView bytes, std::uint64_t position) override {
    if (auto there = directory_.check(); !there) return there.error();
    return file_->write_some(bytes, position);
  }
  Result<void> write_synced(ByteView bytes, std::uint64_t position) override {
    if (auto there = directory_.check(); !there) return there;
    return file_->write_synced(bytes, position);
  }
  Result<std::size_t> read_some(std::span<std::byte> to, std::uint64_t position) override {
    return file_->read_some(to, position);
  }
  Result<void> allocate(std::uint64_t bytes) override {
    if (auto there = directory_.check(); !there) return there;
    return file_->allocate(bytes);
  }
  Result<void> sync() override { return file_->sync(); }
  bool release_descriptor(const std::string& path) override { return file_->release_descriptor(path); }
  Result<std::uint64_t> size_bytes() override { return file_->size_bytes(); }
  Result<void> lock_shared() override { return file_->lock_shared(); }
  bool lock_exclusive() override { return file_->lock_exclusive(); }
  void unlock() override { file_->unlock(); }
  Result<std::unique_ptr<log::Mapping>> map(std::size_t bytes) override { return file_->map(bytes); }
  Result<std::unique_ptr<log::WritableMapping>> map_writable(std::size_t bytes) override {
    return file_->map_writable(bytes);
  }

 private:
  const std::unique_ptr<log::File> file_;
  const HeldDirectory& directory_;
};

}  // namespace

Result<std::unique_ptr<log::File>> DataStorage::open(const std::string& path, log::OpenMode mode) {
  const bool writes = mode != log::OpenMode::read_only;
  if (auto there = writes ? directory_.check() : Result<void>{}; !there) return there.error();
  auto file = storage_.open(path, mode);
  // If the directory is not in its place, a missing file may still exist in it.
  if (!file && log::is_missing(file.error())) {
    if (auto there = directory_.check(); !there) return there.error();
  }
  if (!file || !writes) return file;
  return std::unique_ptr<log::File>(std::make_unique<DataFile>(std::move(*file), directory_));
}

Result<void> DataStorage::make_directory(const std::string& path) {
  if (auto there = directory_.check(); !there) return there;
  std::error_code fault;
  std::filesystem::create_directory(path, fault);
  if (!fault) return {};
  return Error{ErrorCode::io_error, "cannot create the directory " + path, fault.value()};
}

Result<void> DataStorage::rename(const std::string& from, const std::string& to) {
  if (auto there = directory_.check(); !there) return there;
  return storage_.rename(from, to);
}

Result<void> DataStorage::unlink(const std::string& path) {
  if (auto there = directory_.check(); !there) return there;
  return storage_.unlink(path);
}

Result<void> DataStorage::link(const std::string& from, const std::string& to) {
  if (auto there = directory_.check(); !there) return there;
  return storage_.link(from, to);
}

Result<void> DataStorage::remove_directory(const std::string& path) {
  if (auto there = directory_.check(); !there) return there;
  return storage_.remove_directory(path);
}

Result<void> DataStorage::sync_directory(const std::string& path) {
  const auto directory = open_directory(path);
  return directory ? (*directory)->sync() : Result<void>(directory.error());
}

Result<std::unique_ptr<log::Directory>> DataStorage::open_directory(const std::string& path) {
  const auto descriptor = directory_.open_below(path);
  if (!descriptor) return descriptor.error();
  return log::PosixStorage::directory_of(*descriptor, path);
}

}  // namespace lightq::broker
