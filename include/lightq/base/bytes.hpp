/// Little-endian loads and stores at any alignment. Layer: base.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace lightq::inline v1 {

/// The little-endian integer at `from`, which must have sizeof(T) readable bytes.
template <typename T>
[[nodiscard]] inline T load_little_endian(const std::byte* from) {
  static_assert(std::is_integral_v<T>);
  static_assert(std::endian::native == std::endian::little, "a big-endian port needs byte swaps here");
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

/// Stores `value` at `to`, which must have sizeof(T) writable bytes.
template <typename T>
inline void store_little_endian(std::byte* to, T value) {
  static_assert(std::is_integral_v<T>);
  static_assert(std::endian::native == std::endian::little, "a big-endian port needs byte swaps here");
  std::memcpy(to, &value, sizeof value);
}

}  // namespace lightq::inline v1
