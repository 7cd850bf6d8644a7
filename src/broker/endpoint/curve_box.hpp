/// The boxes of CurveZMQ: keys, and what only two of them can open (Curve25519, XSalsa20, Poly1305). Layer:
/// endpoint.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>

#include <lightq/base/types.hpp>
#include <lightq/base/z85.hpp>

namespace lightq::broker {

/// Of what is put at a box's front, so that no change of it goes unseen.
inline constexpr std::size_t curve_tag_bytes = 16;
inline constexpr std::size_t curve_nonce_bytes = 24;
/// Says which box between two keys it is: never the same for two.
using CurveNonce = std::array<std::byte, curve_nonce_bytes>;

/// Bytes nobody can guess.
void fill_random(std::span<std::byte> to);
/// Takes as long wherever they differ.
bool equal_secrets(ByteView left, ByteView right);
void wipe_bytes(std::span<std::byte> bytes);

/// A public key and its secret one, which is wiped at the end. Immutable; any thread.
class CurveKeyPair {
 public:
  /// A new one.
  CurveKeyPair();
  /// That of a secret key.
  explicit CurveKeyPair(std::span<const std::byte, curve_key_bytes> secret);
  CurveKeyPair(const CurveKeyPair&) = delete;
  CurveKeyPair& operator=(const CurveKeyPair&) = delete;
  ~CurveKeyPair() { wipe_bytes(secret_); }

  [[nodiscard]] const CurvePublicKey& public_key() const { return public_; }
  [[nodiscard]] const std::array<std::byte, curve_key_bytes>& secret() const { return secret_; }

 private:
  std::array<std::byte, curve_key_bytes> secret_{};
  CurvePublicKey public_{};
};

/// What the owners of two keys can seal for each other. Immutable; wiped at its end.
class CurveBox {
 public:
  /// Nothing: `theirs` is no key that anybody has (a point of low order).
  static std::optional<CurveBox> between(const CurveKeyPair& ours, const CurvePublicKey& theirs);
  CurveBox(const CurveBox& other) = default;
  CurveBox& operator=(const CurveBox& other) = default;
  ~CurveBox() { wipe_bytes(shared_); }

  /// Writes the box, `plain.size() + curve_tag_bytes` long, to `to`, which may be where `plain` begins.
  void seal(const CurveNonce& nonce, ByteView plain, std::byte* to) const;
  /// Writes what is in `box`, curve_tag_bytes shorter, to `to`, which may be where `box` begins. False: it is
  /// not of these two keys and this nonce, or has been changed.
  [[nodiscard]] bool open(const CurveNonce& nonce, ByteView box, std::byte* to) const;

 private:
  CurveBox() = default;
  std::array<std::byte, curve_key_bytes> shared_{};
};

}  // namespace lightq::broker
