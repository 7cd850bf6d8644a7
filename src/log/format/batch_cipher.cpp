/// Error and key id texts for logs that are encrypted at rest. Layer: log.
#include "log/format/batch_cipher.hpp"

#include <string_view>

namespace lightq::log {

std::string key_id_text(std::uint64_t key_id) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) text += digits[key_id >> shift & 0xF];
  return text;
}

Error no_key(const std::string& path, std::uint64_t key_id) {
  const std::string which =
      key_id == key_id_unknown
          ? " is encrypted, and none of the given keys decrypts it (its key id was lost before a repair)"
          : " is encrypted with a key that was not given (key id " + key_id_text(key_id) + ")";
  return {ErrorCode::not_supported, path + which + "; nothing was changed", 0};
}

}  // namespace lightq::log
