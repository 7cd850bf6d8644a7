/// Little-endian loads and stores at any alignment. Layer: base.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace lightq::inline v1 {

/// Returns the little-endian integer at `from`. Requires: sizeof(T) readable bytes.
template <typename T>
[[nodiscard]] inline T load_little_endian(const std::byte* from) {
  static_assert(std::is_integral_v<T>);
  static_assert(std::endian::native == std::endian::little, "a big-endian port needs byte swaps here");
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

/// Stores `value` at `to`. Requires: sizeof(T) writable bytes.
template <typename T>
inline void store_little_endian(std::byte* to, T value) {
  static_assert(std::is_integral_v<T>);
  static_assert(std::endian::native == std::endian::little, "a big-endian port needs byte swaps here");
  std::memcpy(to, &value, sizeof value);
}

/// Prefetches the cache lines of [at, at + bytes), without waiting for them. The addresses need not be
/// mapped.
inline void fetch_lines(const std::byte* at, std::size_t bytes) {
#if defined(__GNUC__)
  constexpr std::size_t line_bytes = 64;
  for (std::size_t done = 0; done < bytes; done += line_bytes) __builtin_prefetch(at + done);
#else
  static_cast<void>(at);
  static_cast<void>(bytes);
#endif
}

/// Prefetches for a walk over records: the two cache lines 2 KiB after `at`, if records are small. `at`: the
/// next record; `bytes`: the length of the previous one. (The processor's own prefetching ends with each
/// page. For large records it suffices, and this would disturb it.) Has no other effect; the addresses need
/// not be mapped.
inline void read_ahead(const std::byte* at, std::size_t bytes) {
  constexpr std::size_t small_bytes = 512;
  constexpr std::size_t distance_bytes = 2048;
  constexpr std::size_t two_lines = 128;
  if (bytes <= small_bytes) fetch_lines(at + distance_bytes, two_lines);
}

}  // namespace lightq::inline v1
