/// Small files that appear whole or not at all. Layer: control.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <span>
#include <string_view>

#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>

namespace lightq::broker {

/// Writes `text` under another name, syncs it, and renames it to `path`; the rename is synced too. A reader
/// sees the old file or the new one. Errors: no_space, io_error.
Result<void> write_file_atomically(const std::filesystem::path& path, std::string_view text, mode_t mode);

/// A file that holds one key and nothing else.
struct KeyFile {
  std::filesystem::path path;
  std::string_view name;   ///< what it is, for errors: "a ticket key"
  std::string_view holds;  ///< what is in it: "the key of all tickets"
  std::string_view loss;   ///< what a new one in its place means: "tickets that are out end"
};

/// Reads the key, which fills `to`. False: there is no such file. Errors: io_error; invalid_argument if
/// others than its owner may read or write the file; corrupt if it has another length; `to` is wiped then.
Result<bool> read_key_file(const KeyFile& file, std::span<std::byte> to);
/// Writes the key, mode 0600. Errors: as write_file_atomically.
Result<void> write_key_file(const KeyFile& file, ByteView key);

}  // namespace lightq::broker
