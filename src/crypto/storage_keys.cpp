/// Parses storage keys from text. Layer: crypto.
#include "crypto/storage_keys.hpp"

#include <sodium.h>

#include <algorithm>

namespace lightq::rest {

namespace {

constexpr std::string_view space = " \t\r";

/// Returns the line without its comment, which starts with #, and without spaces at its ends.
std::string_view trimmed(std::string_view line) {
  line = line.substr(0, line.find('#'));
  line.remove_prefix(std::min(line.find_first_not_of(space), line.size()));
  return line.substr(0, line.find_last_not_of(space) + 1);
}

bool read_key(std::string_view digits, Key& key) {
  std::size_t bytes = 0;
  return digits.size() == 2 * key_bytes &&
         sodium_hex2bin(reinterpret_cast<unsigned char*>(key.data()), key_bytes, digits.data(), digits.size(),
                        nullptr, &bytes, nullptr) == 0 &&
         bytes == key_bytes;
}

}  // namespace

Result<std::unique_ptr<StorageKeys>> StorageKeys::parse(std::string_view text, const std::string& name) {
  if (sodium_init() < 0) return Error{ErrorCode::internal, "cannot initialise libsodium"};
  std::unique_ptr<StorageKeys> parsed(new StorageKeys);
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view digits = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (digits.empty()) continue;
    if (parsed->keys_.size() == limits::storage_keys_max) {
      return Error{ErrorCode::limit_reached,
                   name + " contains more than " + std::to_string(limits::storage_keys_max) + " keys"};
    }
    parsed->keys_.emplace_back();
    if (!read_key(digits, parsed->keys_.back())) {
      return Error{ErrorCode::invalid_argument,
                   name + ", line " + std::to_string(number) + ": not a key of 64 hexadecimal digits"};
    }
  }
  if (parsed->keys_.empty()) return Error{ErrorCode::invalid_argument, name + " contains no key"};
  return parsed;
}

}  // namespace lightq::rest
