/// Hashes of passwords and keys. The only file of the control layer that uses libsodium. Layer: access.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <lightq/base/result.hpp>

namespace lightq::broker {

/// The cost of argon2id: about 20 ms per password on the machine on which it was measured.
inline constexpr std::size_t argon2_memory_bytes = 19 * 1024 * 1024;
inline constexpr unsigned long long argon2_passes = 2;

/// Returns an argon2id hash of `password` in its standard text form, with salt and cost. Thread: any, but not
/// the control thread, because it blocks for the whole cost. Errors: internal (no memory).
Result<std::string> hash_password(std::string_view password);

/// Returns true if `argon2_text` was made from `password`. Takes equal time for both results. Thread: any.
bool verify_password(std::string_view argon2_text, std::string_view password);

/// Returns `bytes` random bytes as URL-safe base64 without padding.
std::string random_text(std::size_t bytes);

/// A BLAKE2b hash with a random key that exists only in this object. Its outputs therefore mean nothing
/// outside this process. Immutable. Thread: any.
class KeyedHash {
 public:
  using Digest = std::array<std::uint8_t, 32>;

  KeyedHash();
  KeyedHash(const KeyedHash&) = delete;
  KeyedHash& operator=(const KeyedHash&) = delete;
  ~KeyedHash();

  /// Returns the digest of the three values. Different triples never form the same hash input.
  [[nodiscard]] Digest digest(std::uint64_t id, std::string_view user_id, std::string_view password) const;

 private:
  std::array<std::uint8_t, 32> key_{};
};

}  // namespace lightq::broker
