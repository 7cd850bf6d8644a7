/// Small files that appear whole or not at all. Layer: control.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string_view>

#include <lightq/base/result.hpp>

namespace lightq::broker {

/// Writes `text` under another name, syncs it, and renames it to `path`; the rename is synced too. A reader
/// sees the old file or the new one. Errors: no_space, io_error.
Result<void> write_file_atomically(const std::filesystem::path& path, std::string_view text, mode_t mode);

}  // namespace lightq::broker
