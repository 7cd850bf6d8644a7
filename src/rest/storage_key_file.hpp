/// Storage keys in a file. Layer: rest.
#pragma once

#include <filesystem>
#include <memory>

#include "rest/storage_keys.hpp"

namespace lightq::rest {

/// Reads the keys in a file (which may be a link). Errors: io_error; invalid_argument where others than its
/// owner may read or write it, it is too long, or as StorageKeys::parse; limit_reached.
Result<std::unique_ptr<StorageKeys>> read_storage_keys(const std::filesystem::path& file);

}  // namespace lightq::rest
