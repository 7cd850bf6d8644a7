/// The boxes of CurveZMQ: authenticated encryption between two keys (Curve25519, XSalsa20, Poly1305). Layer:
/// crypto.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>

#include <lightq/base/types.hpp>
#include <lightq/base/wipe.hpp>
#include <lightq/base/z85.hpp>

namespace lightq::broker {

/// The length of the authentication tag at a box's front, by which any change of the box is detected.
inline constexpr std::size_t curve_tag_bytes = 16;
inline constexpr std::size_t curve_nonce_bytes = 24;
/// Identifies one box between two keys. Requires: never used for two boxes of the same keys.
using CurveNonce = std::array<std::byte, curve_nonce_bytes>;

/// Fills `to` with unpredictable random bytes.
void fill_random(std::span<std::byte> to);
/// Returns true if the two are equal. The time that it takes does not depend on where they differ.
bool equal_secrets(ByteView left, ByteView right);

/// A public key and its secret key. The secret key is wiped on destruction. Immutable. Thread: any.
class CurveKeyPair {
 public:
  /// Makes a new random pair.
  CurveKeyPair();
  /// Makes the pair of an existing secret key.
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

/// Seals and opens boxes between the owners of two keys. Immutable. Its key is wiped on destruction.
class CurveBox {
 public:
  /// Returns nothing if `theirs` is not a valid key (a point of low order).
  static std::optional<CurveBox> between(const CurveKeyPair& ours, const CurvePublicKey& theirs);
  CurveBox(const CurveBox& other) = default;
  CurveBox& operator=(const CurveBox& other) = default;
  ~CurveBox() { wipe_bytes(shared_); }

  /// Writes the box, `plain.size() + curve_tag_bytes` long, to `to`, which may be the start of `plain`.
  void seal(const CurveNonce& nonce, ByteView plain, std::byte* to) const;
  /// Writes the contents of `box`, curve_tag_bytes shorter, to `to`, which may be the start of `box`. Returns
  /// false if the box was made with other keys or another nonce, or was changed.
  [[nodiscard]] bool open(const CurveNonce& nonce, ByteView box, std::byte* to) const;

 private:
  CurveBox() = default;
  std::array<std::byte, curve_key_bytes> shared_{};
};

}  // namespace lightq::broker
