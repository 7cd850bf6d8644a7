/// The list of a backup's files, with their checksums. Layer: cli.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <lightq/base/limits.hpp>
#include <lightq/base/result.hpp>

#include "log/storage/storage.hpp"

namespace lightq::cli {

struct BackupFile {
  std::string path;  ///< relative to the backup, for example topics/1/cursors.0
  std::uint64_t bytes = 0;
  std::uint32_t checksum = 0;  ///< CRC-32C of the bytes

  friend bool operator==(const BackupFile&, const BackupFile&) = default;
};

/// The file `backup.json` of a backup. It is written last, so a directory without it is no backup.
struct BackupManifest {
  static constexpr const char* file_name = "backup.json";
  static constexpr std::size_t bytes_max = 256 * limits::MiB;
  static constexpr std::size_t files_max = 2'000'000;

  std::string version;  ///< of the program that made the backup
  std::uint64_t time_ms = 0;
  std::vector<BackupFile> files;
};

std::string manifest_text(const BackupManifest& manifest);

/// Reads a manifest. It may come from anybody: its paths stay below the backup and name files of a broker.
/// Errors: request_too_large, invalid_json, invalid_request (naming the member).
Result<BackupManifest> parse_manifest(std::string_view text);

/// Reads a file of a backup to its end. `to`: null, or a new file that gets the bytes and is synced. Returns
/// the length and the checksum, without a path. Errors: io_error, no_space.
Result<BackupFile> read_backup_file(log::File& from, log::File* to);

/// Bytes of a file.
struct FilePart {
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;  ///< at most; fewer if the file ends
};
/// Reads a part of a file as read_backup_file does.
Result<BackupFile> read_backup_bytes(log::File& from, FilePart part, log::File* to);

}  // namespace lightq::cli
