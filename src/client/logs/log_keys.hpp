/// Reads storage keys for the commands on logs. Layer: cli.
#pragma once

#include <memory>
#include <string>

#include "crypto/storage_key_file.hpp"

namespace lightq::cli {

/// Returns the keys in the file; null if no file is given. Errors: those of rest::read_storage_keys.
inline Result<std::unique_ptr<rest::StorageKeys>> read_key_file(const std::string& file) {
  if (file.empty()) return std::unique_ptr<rest::StorageKeys>();
  return rest::read_storage_keys(file);
}

}  // namespace lightq::cli
