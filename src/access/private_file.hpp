/// Writes small files atomically, and reads and writes key files. Layer: access.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <span>
#include <string_view>

#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>

namespace lightq::broker {

/// Writes `text` to a temporary name, syncs it, renames it to `path` and syncs the rename. A reader sees the
/// old file or the new one. Errors: no_space, io_error.
/// `owner_of`: a file or a directory whose owner and group the new file gets; empty: those of this process.
/// Fails with io_error, and leaves the old file as it is, if this process must not set them.
Result<void> write_file_atomically(const std::filesystem::path& path, std::string_view text, mode_t mode,
                                   const std::filesystem::path& owner_of = {});

/// Describes a file that contains one key and nothing else.
struct KeyFile {
  std::filesystem::path path;
  std::string_view name;   ///< kind of key, for errors: "a ticket key"
  std::string_view holds;  ///< contents, for errors: "the key of all tickets"
  std::string_view loss;   ///< effect of a new key, for errors: "tickets that are out end"
};

/// Reads the key, which must fill `to` exactly. Returns false if the file does not exist. Errors: io_error;
/// invalid_argument if users other than its owner may read or write the file; corrupt if it has another
/// length. On these errors `to` is wiped.
Result<bool> read_key_file(const KeyFile& file, std::span<std::byte> to);
/// Writes the key with mode 0600. `owner_of` and errors: as of write_file_atomically.
Result<void> write_key_file(const KeyFile& file, ByteView key, const std::filesystem::path& owner_of = {});

}  // namespace lightq::broker
