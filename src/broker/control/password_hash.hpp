/// Passwords and keys: what the control layer needs of libsodium, and its only home there. Layer: control.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <lightq/base/result.hpp>

namespace lightq::broker {

/// argon2id's cost, about 20 ms a password on the machine it was measured on.
inline constexpr std::size_t argon2_memory_bytes = 19 * 1024 * 1024;
inline constexpr unsigned long long argon2_passes = 2;

/// An argon2id hash of `password` in its standard text form, salt and cost included. Blocks for the whole
/// cost: not for the control thread. Errors: internal (no memory). Any thread.
Result<std::string> hash_password(std::string_view password);

/// Whether `password` is the one `argon2_text` was made of; takes as long either way. Any thread.
bool verify_password(std::string_view argon2_text, std::string_view password);

/// `bytes` random bytes as URL-safe base64 without padding.
std::string random_text(std::size_t bytes);

/// A keyed BLAKE2b hash under a random key that lives as long as the object and is nowhere else, so that
/// its outputs mean nothing outside this process. Immutable; any thread.
class KeyedHash {
 public:
  using Digest = std::array<std::uint8_t, 32>;

  KeyedHash();
  KeyedHash(const KeyedHash&) = delete;
  KeyedHash& operator=(const KeyedHash&) = delete;
  ~KeyedHash();

  /// The digest of the three together; no two different triples are the same input.
  [[nodiscard]] Digest digest(std::uint64_t id, std::string_view user_id, std::string_view password) const;

 private:
  std::array<std::uint8_t, 32> key_{};
};

}  // namespace lightq::broker
