/// The keys that a broker encrypts its disk with. Layer: rest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <lightq/base/result.hpp>

#include "log/batch_cipher.hpp"
#include "rest/log_cipher.hpp"

namespace lightq::rest {

/// Each log has keys of its own, made of these and its incarnation. Immutable; any thread. Wipes itself.
class StorageKeys final : public log::BatchCiphers {
 public:
  /// A key of 64 hexadecimal digits on each line, the one to encrypt with first; empty lines and what follows
  /// a # are passed over. `name`: where the text is from, for errors, which never tell what is in it. Errors:
  /// invalid_argument, naming the line, or that there is no key; limit_reached.
  static Result<std::unique_ptr<StorageKeys>> parse(std::string_view text, const std::string& name);

  [[nodiscard]] std::unique_ptr<log::BatchCipher> of(std::uint64_t incarnation) const override {
    return std::make_unique<LogCipher>(keys_, incarnation);
  }
  [[nodiscard]] std::size_t size() const { return keys_.size(); }

 private:
  StorageKeys() { keys_.reserve(limits::storage_keys_max); }

  std::vector<Key> keys_;  // never moved: that would leave copies behind
};

}  // namespace lightq::rest
