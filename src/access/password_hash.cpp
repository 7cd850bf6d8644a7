/// Hashes and verifies passwords with argon2id, and makes random texts and keyed hashes, with libsodium.
/// Layer: access.
#include "access/password_hash.hpp"

#include <sodium.h>

#include <span>
#include <vector>

#include <lightq/base/wipe.hpp>

namespace lightq::broker {

namespace {

/// Initialises libsodium once. Throws if it cannot be initialised.
void ready() {
  static const int state = sodium_init();
  if (state < 0) throw Exception({ErrorCode::internal, "cannot initialise libsodium"});
}

}  // namespace

Result<std::string> hash_password(std::string_view password) {
  ready();
  std::array<char, crypto_pwhash_STRBYTES> text{};
  if (crypto_pwhash_str_alg(text.data(), password.data(), password.size(), argon2_passes, argon2_memory_bytes,
                            crypto_pwhash_ALG_ARGON2ID13) != 0) {
    return Error{ErrorCode::internal, "not enough memory to hash a password"};
  }
  return std::string(text.data());
}

bool verify_password(std::string_view argon2_text, std::string_view password) {
  ready();
  std::array<char, crypto_pwhash_STRBYTES> text{};
  if (argon2_text.size() >= text.size()) return false;
  argon2_text.copy(text.data(), argon2_text.size());
  return crypto_pwhash_str_verify(text.data(), password.data(), password.size()) == 0;
}

std::string random_text(std::size_t bytes) {
  ready();
  std::vector<std::uint8_t> raw(bytes);
  randombytes_buf(raw.data(), raw.size());
  constexpr int variant = sodium_base64_VARIANT_URLSAFE_NO_PADDING;
  std::string text(sodium_base64_encoded_len(bytes, variant), '\0');
  sodium_bin2base64(text.data(), text.size(), raw.data(), raw.size(), variant);
  wipe_bytes(std::as_writable_bytes(std::span(raw)));
  text.pop_back();  // the terminating NUL
  return text;
}

KeyedHash::KeyedHash() {
  ready();
  randombytes_buf(key_.data(), key_.size());
}

KeyedHash::~KeyedHash() {
  wipe_bytes(std::as_writable_bytes(std::span(key_)));
}

KeyedHash::Digest KeyedHash::digest(std::uint64_t id, std::string_view user_id,
                                    std::string_view password) const {
  const std::array<std::uint64_t, 2> lead = {id, user_id.size()};
  const auto bytes = [](const void* start) { return static_cast<const unsigned char*>(start); };
  crypto_generichash_state state;
  Digest digest{};
  crypto_generichash_init(&state, key_.data(), key_.size(), digest.size());
  crypto_generichash_update(&state, bytes(lead.data()), sizeof lead);
  crypto_generichash_update(&state, bytes(user_id.data()), user_id.size());
  crypto_generichash_update(&state, bytes(password.data()), password.size());
  crypto_generichash_final(&state, digest.data(), digest.size());
  sodium_memzero(&state, sizeof state);
  return digest;
}

}  // namespace lightq::broker
