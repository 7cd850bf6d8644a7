/// The bytes of a backup: a directory, or one file. Layer: cli.
#include "client/backup/backup_source.hpp"

#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "client/backup/tar_entry.hpp"
#include "client/terminal.hpp"
#include "client/units.hpp"

namespace lightq::cli {
namespace {

constexpr int end_blocks = 2;  // of zeros

/// Reads a manifest of `bytes` bytes at `position` of a file. `name`: for errors.
Result<std::string> manifest_at(log::File& file, std::uint64_t position, std::uint64_t bytes,
                                const std::string& name) {
  if (bytes > BackupManifest::bytes_max) return unusable_backup(name + " is too long");
  std::string text(bytes, '\0');
  const auto got = log::read_all(file, std::as_writable_bytes(std::span(text)), position);
  if (!got) return got.error();
  text.resize(*got);
  return text;
}

class DirectorySource final : public BackupSource {
 public:
  DirectorySource(std::filesystem::path place, log::Storage& storage)
      : place_(std::move(place)), storage_(storage) {}

  Result<std::string> manifest() override {
    const std::string name = (place_ / BackupManifest::file_name).string();
    const auto file = storage_.open(name, log::OpenMode::read_only);
    if (!file && log::is_missing(file.error()))
      return unusable_backup(place_.string() + " is no backup of  lightq backup: it has no " +
                             BackupManifest::file_name);
    if (!file) return file.error();
    const auto size = (*file)->size_bytes();
    if (!size) return size.error();
    return manifest_at(**file, 0, *size, name);
  }
  Result<BackupFile> read(const BackupFile& wanted, log::File* to) override {
    const auto source = storage_.open((place_ / wanted.path).string(), log::OpenMode::read_only);
    if (!source) return source.error();
    return read_backup_file(**source, to);
  }
  Result<void> end() override { return {}; }

 private:
  const std::filesystem::path place_;
  log::Storage& storage_;
};

/// Each file must be the one that the manifest names next, so its name in the tar file decides nothing.
class FileSource final : public BackupSource {
 public:
  FileSource(std::string name, std::unique_ptr<log::File> file)
      : name_(std::move(name)), file_(std::move(file)) {}

  Result<std::string> manifest() override {
    const auto entry = next();
    if (!entry && entry.error().code == ErrorCode::corrupt && position_ == 0)
      return unusable_backup(name_ + " is no backup of  lightq backup: it is no tar file");
    if (!entry) return entry.error();
    if (entry->name != BackupManifest::file_name)
      return unusable_backup(name_ + " is no backup of  lightq backup: it does not begin with " +
                             BackupManifest::file_name);
    auto text = manifest_at(*file_, position_, entry->bytes, name_);
    if (text && text->size() < entry->bytes) return cut();
    position_ += entry->padded_bytes();
    return text;
  }
  Result<BackupFile> read(const BackupFile& wanted, log::File* to) override {
    const auto entry = next();
    if (!entry) return entry.error();
    if (*entry != TarEntry{wanted.path, wanted.bytes})
      return damaged("has '" + entry->name + "' where " + wanted.path + " with " +
                     format_count(wanted.bytes) + " bytes belongs");
    auto read = read_backup_bytes(*file_, {position_, entry->bytes}, to);
    if (read && read->bytes < entry->bytes) return cut();
    position_ += entry->padded_bytes();
    return read;
  }
  Result<void> end() override {
    for (int block = 0; block < end_blocks; ++block) {
      const auto entry = block_at_position();
      if (!entry) return entry.error();
      if (*entry) return damaged("has more than its " + std::string(BackupManifest::file_name) + " lists");
    }
    const auto size = file_->size_bytes();
    if (!size) return size.error();
    return *size == position_ ? Result<void>() : damaged("has bytes behind its end");
  }

 private:
  /// Reads the header at the position, and moves behind it.
  Result<std::optional<TarEntry>> block_at_position() {
    TarEntry::Block block{};
    const auto got = log::read_all(*file_, block, position_);
    if (!got) return got.error();
    if (*got < block.size()) return cut();
    auto entry = parse_tar_header(block);
    if (!entry) return damaged("has " + entry.error().message);
    position_ += block.size();
    return entry;
  }
  Result<TarEntry> next() {
    auto entry = block_at_position();
    if (!entry) return entry.error();
    if (!*entry)
      return damaged("ends before all files that its " + std::string(BackupManifest::file_name) + " lists");
    return **std::move(entry);
  }
  [[nodiscard]] Error damaged(const std::string& how) const {
    return {ErrorCode::corrupt, name_ + " is damaged: at byte " + std::to_string(position_) + " it " + how,
            0};
  }
  [[nodiscard]] Error cut() const {
    const auto size = file_->size_bytes();
    return {ErrorCode::corrupt,
            name_ + " was cut: it ends after " + (size ? format_count(*size) : "too few") + " bytes", 0};
  }

  const std::string name_;
  const std::unique_ptr<log::File> file_;
  std::uint64_t position_ = 0;
};

/// Appends files to a tar file.
class FileWriter {
 public:
  FileWriter(log::File& to, std::uint64_t time_s) : to_(to), time_s_(time_s) {}

  Result<void> add(const TarEntry& entry, log::File& from) {
    const auto header = tar_header(entry, time_s_);
    if (!header) return header.error();
    if (auto put = write(*header); !put) return put;
    std::vector<std::byte> buffer(limits::MiB);
    for (std::uint64_t done = 0; done < entry.bytes;) {
      if (interrupted()) return Error{ErrorCode::closed, "interrupted: there is no backup", 0};
      const std::size_t wanted = std::min<std::uint64_t>(buffer.size(), entry.bytes - done);
      const auto got = log::read_all(from, std::span(buffer).first(wanted), done);
      if (!got) return got.error();
      if (*got == 0) return Error{ErrorCode::io_error, entry.name + " became shorter", 0};
      if (auto put = write(std::span(buffer).first(*got)); !put) return put;
      done += *got;
    }
    return write(std::vector<std::byte>(entry.padded_bytes() - entry.bytes));
  }
  Result<void> end() {
    if (auto put = write(std::vector<std::byte>(end_blocks * TarEntry::block_bytes)); !put) return put;
    return to_.sync();
  }

 private:
  Result<void> write(ByteView bytes) {
    auto written = log::write_all(to_, bytes, position_);
    position_ += bytes.size();
    return written;
  }

  log::File& to_;
  const std::uint64_t time_s_;
  std::uint64_t position_ = 0;
};

}  // namespace

Error unusable_backup(const std::string& sentence) {
  return {ErrorCode::invalid_argument, sentence, 0};
}

bool is_backup_file_name(const std::string& place) {
  return place.ends_with(".tar");
}

Result<std::unique_ptr<BackupSource>> open_backup(const std::filesystem::path& place, log::Storage& storage) {
  std::error_code fault;
  if (!std::filesystem::is_regular_file(place, fault))
    return std::unique_ptr<BackupSource>(std::make_unique<DirectorySource>(place, storage));
  auto file = storage.open(place.string(), log::OpenMode::read_only);
  if (!file) return file.error();
  return backup_in_file(place.string(), std::move(*file));
}

std::unique_ptr<BackupSource> backup_in_file(std::string name, std::unique_ptr<log::File> file) {
  return std::make_unique<FileSource>(std::move(name), std::move(file));
}

Result<void> write_backup_file(const std::filesystem::path& from, const BackupManifest& manifest,
                               const std::string& to, log::Storage& storage) {
  const auto target = storage.open(to, log::OpenMode::create);
  if (!target) return target.error();
  FileWriter writer(**target, manifest.time_ms / 1000);
  const auto add = [&](const std::string& name) -> Result<void> {
    const auto file = storage.open((from / name).string(), log::OpenMode::read_only);
    if (!file) return file.error();
    const auto size = (*file)->size_bytes();
    if (!size) return size.error();
    return writer.add({name, *size}, **file);
  };
  if (auto added = add(BackupManifest::file_name); !added) return added;
  for (const BackupFile& file : manifest.files) {
    if (auto added = add(file.path); !added) return added;
  }
  return writer.end();
}

}  // namespace lightq::cli
