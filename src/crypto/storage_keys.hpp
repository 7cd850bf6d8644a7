/// The keys with which a broker encrypts its disk. Layer: crypto.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <lightq/base/result.hpp>

#include "crypto/log_cipher.hpp"
#include "log/format/batch_cipher.hpp"

namespace lightq::rest {

/// The storage keys. Each log has keys of its own, derived from these and its incarnation. Immutable; wiped
/// from memory when destroyed. Thread: any.
class StorageKeys final : public log::BatchCiphers {
 public:
  /// Parses one key of 64 hexadecimal digits per line; the first key encrypts. Skips empty lines, and ignores
  /// text after a #. `name`: the source of the text, for error texts, which never contain any of it. Errors:
  /// invalid_argument, for a bad line (with its number) or if there is no key; limit_reached for too many
  /// keys; internal if libsodium cannot be used.
  static Result<std::unique_ptr<StorageKeys>> parse(std::string_view text, const std::string& name);

  [[nodiscard]] std::unique_ptr<log::BatchCipher> of(std::uint64_t incarnation) const override {
    return std::make_unique<LogCipher>(keys_, incarnation);
  }
  [[nodiscard]] std::size_t size() const { return keys_.size(); }

 private:
  StorageKeys() { keys_.reserve(limits::storage_keys_max); }

  std::vector<Key> keys_;  // never reallocated, because that would leave copies in memory
};

}  // namespace lightq::rest
