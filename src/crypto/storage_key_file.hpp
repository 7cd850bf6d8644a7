/// Reads storage keys from a file. Layer: crypto.
#pragma once

#include <filesystem>
#include <memory>

#include <lightq/base/private_file.hpp>

#include "crypto/storage_keys.hpp"

namespace lightq::rest {

/// Reads storage keys from `file`, which may be a link or a pipe. Errors: those of read_private_file and
/// StorageKeys::parse.
Result<std::unique_ptr<StorageKeys>> read_storage_keys(const std::filesystem::path& file,
                                                       const PipeWait& wait = {});

}  // namespace lightq::rest
