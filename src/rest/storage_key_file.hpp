/// Storage keys in a file. Layer: rest.
#pragma once

#include <filesystem>
#include <memory>

#include <lightq/base/private_file.hpp>

#include "rest/storage_keys.hpp"

namespace lightq::rest {

/// Reads the keys in a file, which may be a link or a pipe. Errors: as read_private_file, and as
/// StorageKeys::parse.
Result<std::unique_ptr<StorageKeys>> read_storage_keys(const std::filesystem::path& file,
                                                       const PipeWait& wait = {});

}  // namespace lightq::rest
