/// The bytes of a backup: a directory, or one file. Layer: cli.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include <lightq/base/result.hpp>

#include "client/backup/manifest.hpp"
#include "log/storage/storage.hpp"

namespace lightq::cli {

/// Returns the error for a place that has no usable backup.
Error unusable_backup(const std::string& sentence);

/// Returns true if `lightq backup` makes one file of this name, and no directory.
[[nodiscard]] bool is_backup_file_name(const std::string& place);

/// Reads a backup from its beginning to its end: the text of its manifest, then each file in the manifest's
/// order. It may come from anybody. One thread.
class BackupSource {
 public:
  BackupSource() = default;
  BackupSource(const BackupSource&) = delete;
  BackupSource& operator=(const BackupSource&) = delete;
  virtual ~BackupSource() = default;

  /// Errors: invalid_argument: it is no backup; corrupt (it was cut or changed), io_error.
  virtual Result<std::string> manifest() = 0;
  /// Reads a file, and writes it to `to` unless that is null. Returns its length and checksum, which may be
  /// other ones than `wanted` has. Errors: corrupt (it was cut or changed), io_error, no_space.
  virtual Result<BackupFile> read(const BackupFile& wanted, log::File* to) = 0;
  /// Called after the last file. Errors: corrupt: there is more, or the end is missing.
  virtual Result<void> end() = 0;
};

/// Opens the backup at `place`. Errors: io_error.
Result<std::unique_ptr<BackupSource>> open_backup(const std::filesystem::path& place, log::Storage& storage);

/// Opens a backup in one file that is open already. `name`: for errors.
std::unique_ptr<BackupSource> backup_in_file(std::string name, std::unique_ptr<log::File> file);

/// Writes the backup in the directory `from` to the new file `to`, and syncs it. docs/log_format.md, "A
/// backup in one file", has the format. Errors: io_error, no_space, too_large; closed if a signal arrives.
Result<void> write_backup_file(const std::filesystem::path& from, const BackupManifest& manifest,
                               const std::string& to, log::Storage& storage);

}  // namespace lightq::cli
