/// A checksum of records that is updated while they are copied. docs/log_format.md, "Open batch". Layer: log.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <lightq/base/bytes.hpp>
#include <lightq/base/types.hpp>

#include "log/format/record_sum_wide.hpp"

namespace lightq::log {

namespace record_sum_detail {

#if defined(__GNUC__)
/// Two lanes of 64 bits, added and shifted by one instruction each, and loaded and stored as sixteen bytes.
using Pair = std::uint64_t __attribute__((vector_size(16)));

inline Pair rotated(Pair value, int bits) {
  return (value << bits) | (value >> (64 - bits));
}
inline Pair low_only(std::uint64_t value) {
  return Pair{value, 0};
}
/// Returns the lower lane of `low` and the upper lane of `high`.
inline Pair low_of(Pair low, Pair high) {
  return Pair{low[0], high[1]};
}
#else
struct Pair {
  std::uint64_t low, high;
  Pair operator+(const Pair& other) const { return {low + other.low, high + other.high}; }
};
inline Pair rotated(Pair value, int bits) {
  return {std::rotl(value.low, bits), std::rotl(value.high, bits)};
}
inline Pair low_only(std::uint64_t value) {
  return {value, 0};
}
inline Pair low_of(Pair low, Pair high) {
  return {low.low, high.high};
}
#endif

inline Pair load_pair(const std::byte* from) {
  static_assert(std::endian::native == std::endian::little, "a big-endian port needs byte swaps here");
  Pair pair;
  std::memcpy(&pair, from, sizeof pair);
  return pair;
}

inline void store_pair(std::byte* to, Pair pair) {
  std::memcpy(to, &pair, sizeof pair);
}

/// Loads two words separately: if the message was written just now, a wide load would wait until the stores
/// have reached the cache.
inline Pair load_words(const std::byte* from) {
  return Pair{load_little_endian<std::uint64_t>(from), load_little_endian<std::uint64_t>(from + 8)};
}

/// Loads fewer than 8 bytes, followed by zeros.
inline std::uint64_t load_part_of_word(const std::byte* from, std::size_t bytes) {
  const auto byte = [from](std::size_t at) { return std::to_integer<std::uint64_t>(from[at]) << 8 * at; };
  if (bytes >= 4) {
    const std::uint64_t end = load_little_endian<std::uint32_t>(from + bytes - 4);
    return load_little_endian<std::uint32_t>(from) | end << 8 * (bytes - 4);
  }
  return bytes == 0 ? 0 : byte(0) | byte(bytes / 2) | byte(bytes - 1);
}

/// Loads fewer than 16 bytes, followed by zeros. Does not copy them into a buffer, because the load would
/// have to wait for that copy's stores.
inline Pair load_part(const std::byte* from, std::size_t bytes) {
  if (bytes < 8) return low_only(load_part_of_word(from, bytes));
  return Pair{load_little_endian<std::uint64_t>(from), load_part_of_word(from + 8, bytes - 8)};
}

}  // namespace record_sum_detail

/// An order-dependent sum of records. It is fast enough to be updated for each record, and any change of one
/// eight-byte word changes it. It protects memory that survives its process; CRCs protect data that survives
/// a power cut.
class RecordSum {
 public:
  void add(ByteView payload) { add_to(nullptr, payload); }
  /// Adds the record and copies it to `to`, reading its bytes only once.
  void add_copying(std::byte* to, ByteView payload) { add_to(to, payload); }
#ifdef LIGHTQ_RECORD_SUM_WIDE
  /// Returns whether add_copying_wide may be used for a record of `bytes` bytes.
  static bool may_be_wide(std::size_t bytes) { return record_sum_detail::may_be_wide(bytes); }
  /// Adds and copies the record as add_copying does, in less time. Requires: may_be_wide returned true for
  /// its size.
  LIGHTQ_AVX2_INLINE void add_copying_wide(std::byte* to, ByteView payload) {
    record_sum_detail::add_copying_wide<turn_bits>(lanes_.data(), to, payload.data(), payload.size());
  }
#endif
  [[nodiscard]] std::uint64_t value() const {
    return (lanes_[0] ^ std::rotl(lanes_[1], 16)) + std::rotl(lanes_[2] ^ std::rotl(lanes_[3], 16), 32);
  }

 private:
  using Pair = record_sum_detail::Pair;
  static constexpr std::size_t pair_bytes = sizeof(Pair);
  static constexpr std::size_t block_bytes = 2 * pair_bytes;
  static constexpr int turn_bits = 23;

  void add_to(std::byte* to, ByteView payload);

  alignas(2 * pair_bytes) std::array<std::uint64_t, 4> lanes_ = {0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F,
                                                                 0x165667B19E3779F9, 0x27D4EB2F165667C5};
};

// Adds the length to the first lane and rotates that lane. Then adds each eight bytes to one of the four
// lanes, in turn, and rotates the lane by turn_bits.
inline void RecordSum::add_to(std::byte* to, ByteView payload) {
  using namespace record_sum_detail;
  auto* const lanes = reinterpret_cast<std::byte*>(lanes_.data());
  Pair first = load_pair(lanes);
  first = low_of(rotated(first + low_only(payload.size()), turn_bits), first);
  Pair second = load_pair(lanes + pair_bytes);
  const auto mix = [&](Pair a, Pair b) {
    first = rotated(first + a, turn_bits);
    second = rotated(second + b, turn_bits);
  };
  const std::byte* at = payload.data();
  std::size_t left = payload.size();
  for (; left >= block_bytes; at += block_bytes, left -= block_bytes) {
    const Pair a = load_words(at);
    const Pair b = load_pair(at + pair_bytes);
    if (to != nullptr) {
      store_pair(to, a);
      store_pair(to + pair_bytes, b);
      to += block_bytes;
    }
    mix(a, b);
  }
  if (left != 0) {
    if (to != nullptr) std::memcpy(to, at, left);
    if (left < pair_bytes) {
      mix(load_part(at, left), Pair{});
    } else {
      mix(load_words(at), load_part(at + pair_bytes, left - pair_bytes));
    }
  }
  store_pair(lanes, first);
  store_pair(lanes + pair_bytes, second);
}

}  // namespace lightq::log
