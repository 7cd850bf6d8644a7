/// Reads storage keys from a file. Layer: crypto.
#include "crypto/storage_key_file.hpp"

#include <string>

namespace lightq::rest {

Result<std::unique_ptr<StorageKeys>> read_storage_keys(const std::filesystem::path& file,
                                                       const PipeWait& wait) {
  const std::string name = file.string();
  const Result<Secret> text = read_private_file(name, "the storage keys", limits::storage_key_text_bytes_max,
                                                LinkRule::followed, wait);
  if (!text && text.error().code == ErrorCode::io_error)
    return Error{ErrorCode::io_error, "cannot read the storage keys in " + shown_path(name),
                 text.error().system_error};
  if (!text) return text.error();
  return StorageKeys::parse(text->expose(), name);
}

}  // namespace lightq::rest
