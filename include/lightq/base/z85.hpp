/// CURVE keys as text: Z85, as in ZeroMQ (RFC 32/Z85). Layer: base.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lightq::inline v1 {

/// The size of a CURVE key, public or secret: 32 bytes, 40 characters.
inline constexpr std::size_t curve_key_bytes = 32;
inline constexpr std::size_t curve_key_characters = 40;
/// A CURVE key's bytes.
using CurvePublicKey = std::array<std::byte, curve_key_bytes>;

namespace detail {
inline constexpr std::string_view z85_digits =
    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";
inline constexpr std::uint32_t z85_base = 85;
inline constexpr std::size_t z85_group_bytes = 4;
inline constexpr std::size_t z85_group_digits = 5;
}  // namespace detail

/// Returns a key's 40 characters.
inline std::string to_z85(const CurvePublicKey& key) {
  std::string text(curve_key_characters, '\0');
  for (std::size_t group = 0; group < key.size() / detail::z85_group_bytes; ++group) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < detail::z85_group_bytes; ++i)
      value = value << 8U | std::to_integer<std::uint32_t>(key.at(group * detail::z85_group_bytes + i));
    for (std::size_t i = detail::z85_group_digits; i-- > 0; value /= detail::z85_base)
      text.at(group * detail::z85_group_digits + i) = detail::z85_digits[value % detail::z85_base];
  }
  return text;
}

/// Returns the key of 40 characters, or nothing for any other text.
inline std::optional<CurvePublicKey> curve_key_of_z85(std::string_view text) {
  if (text.size() != curve_key_characters) return std::nullopt;
  CurvePublicKey key{};
  for (std::size_t group = 0; group < key.size() / detail::z85_group_bytes; ++group) {
    std::uint64_t value = 0;
    for (const char digit : text.substr(group * detail::z85_group_digits, detail::z85_group_digits)) {
      const std::size_t worth = detail::z85_digits.find(digit);
      if (worth == std::string_view::npos) return std::nullopt;
      value = value * detail::z85_base + worth;
    }
    if (value > UINT32_MAX) return std::nullopt;
    for (std::size_t i = detail::z85_group_bytes; i-- > 0; value >>= 8U)
      key.at(group * detail::z85_group_bytes + i) = static_cast<std::byte>(value & 0xFFU);
  }
  return key;
}

}  // namespace lightq::inline v1
