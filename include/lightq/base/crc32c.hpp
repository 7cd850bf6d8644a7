/// CRC-32C (Castagnoli): SSE4.2 in three interleaved streams where the processor has it, tables elsewhere.
/// Layer: base. Reference: RFC 3720, appendix B.4.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include <lightq/base/bytes.hpp>

#if defined(__x86_64__) && defined(__GNUC__)
#define LIGHTQ_CRC32C_SSE42 1
#include <nmmintrin.h>
#endif

namespace lightq::inline v1 {

namespace crc32c_detail {

inline constexpr std::uint32_t polynomial = 0x82F63B78;  // reflected

/// The product of two polynomials modulo the CRC's; bit 31 is x^0.
constexpr std::uint32_t multiply(std::uint32_t a, std::uint32_t b) {
  std::uint32_t product = 0;
  for (int bit = 0; bit < 32; ++bit) {
    product ^= b & (0U - (a >> 31));
    a <<= 1;
    b = (b >> 1) ^ (polynomial & (0U - (b & 1)));
  }
  return product;
}

using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

/// tables[k][b]: the CRC of byte b followed by k zero bytes ("slicing by 8").
constexpr Tables make_tables() {
  Tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? polynomial : 0);
    tables[0][byte] = crc;
  }
  for (std::size_t k = 1; k < 8; ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = tables[k - 1][byte];
      tables[k][byte] = (before >> 8) ^ tables[0][before & 0xFF];
    }
  }
  return tables;
}

/// Moves a CRC over a fixed number of zero bytes: four look-ups instead of a pass over zeros.
class ZeroShift {
 public:
  explicit constexpr ZeroShift(std::size_t zero_bytes) {
    std::uint32_t power = 0x80000000U;   // x^0
    std::uint32_t square = 0x00800000U;  // x^8: one zero byte
    for (; zero_bytes != 0; zero_bytes >>= 1) {
      if ((zero_bytes & 1) != 0) power = multiply(power, square);
      square = multiply(square, square);
    }
    for (std::size_t byte = 0; byte < 4; ++byte) {
      for (std::size_t value = 1; value < 256; ++value) {
        const std::size_t rest = value & (value - 1);
        const auto lowest = static_cast<std::uint32_t>(value ^ rest);
        table_[byte][value] =
            table_[byte][rest] ^ (rest == 0 ? multiply(power, lowest << (8 * byte)) : table_[byte][lowest]);
      }
    }
  }
  [[nodiscard]] std::uint32_t operator()(std::uint32_t crc) const {
    return table_[0][crc & 0xFF] ^ table_[1][(crc >> 8) & 0xFF] ^ table_[2][(crc >> 16) & 0xFF] ^
           table_[3][crc >> 24];
  }

 private:
  std::array<std::array<std::uint32_t, 256>, 4> table_{};
};

inline constexpr Tables tables = make_tables();

/// zero_powers[k]: what a CRC is multiplied with for 2^k zero bytes behind it.
inline constexpr std::array<std::uint32_t, 64> zero_powers = [] {
  std::array<std::uint32_t, 64> powers{};
  std::uint32_t square = 0x00800000U;  // x^8: one zero byte
  for (std::uint32_t& power : powers) {
    power = square;
    square = multiply(square, square);
  }
  return powers;
}();

/// Without the usual inversion before and after.
inline std::uint32_t raw_by_table(const std::byte* at, std::size_t size, std::uint32_t crc) {
  for (; size >= 8; at += 8, size -= 8) {
    const std::uint64_t word = load_little_endian<std::uint64_t>(at) ^ crc;
    crc = 0;
    for (std::size_t i = 0; i < 8; ++i) crc ^= tables[7 - i][(word >> (8 * i)) & 0xFF];
  }
  for (; size != 0; ++at, --size)
    crc = (crc >> 8) ^ tables[0][(crc ^ std::to_integer<std::uint32_t>(*at)) & 0xFF];
  return crc;
}

#ifdef LIGHTQ_CRC32C_SSE42
inline constexpr std::size_t long_lane = 4096;  // bytes of each of the three streams
inline constexpr std::size_t short_lane = 256;
inline constexpr ZeroShift shift_long{long_lane};
inline constexpr ZeroShift shift_short{short_lane};

// The crc32 instruction takes three cycles and can start every cycle: three streams keep it busy.
__attribute__((target("sse4.2"))) inline std::uint32_t raw_lanes(const std::byte* at, std::size_t lane,
                                                                 const ZeroShift& shift, std::uint32_t crc) {
  std::uint64_t first = crc;
  std::uint64_t second = 0;
  std::uint64_t third = 0;
  for (const std::byte* end = at + lane; at != end; at += 8) {
    first = _mm_crc32_u64(first, load_little_endian<std::uint64_t>(at));
    second = _mm_crc32_u64(second, load_little_endian<std::uint64_t>(at + lane));
    third = _mm_crc32_u64(third, load_little_endian<std::uint64_t>(at + 2 * lane));
  }
  const std::uint32_t two = shift(static_cast<std::uint32_t>(first)) ^ static_cast<std::uint32_t>(second);
  return shift(two) ^ static_cast<std::uint32_t>(third);
}

__attribute__((target("sse4.2"))) inline std::uint32_t raw_by_sse42(const std::byte* at, std::size_t size,
                                                                    std::uint32_t crc) {
  for (; size >= 3 * long_lane; at += 3 * long_lane, size -= 3 * long_lane) {
    crc = raw_lanes(at, long_lane, shift_long, crc);
  }
  for (; size >= 3 * short_lane; at += 3 * short_lane, size -= 3 * short_lane) {
    crc = raw_lanes(at, short_lane, shift_short, crc);
  }
  std::uint64_t wide = crc;
  for (; size >= 8; at += 8, size -= 8) wide = _mm_crc32_u64(wide, load_little_endian<std::uint64_t>(at));
  crc = static_cast<std::uint32_t>(wide);
  for (; size != 0; ++at, --size) crc = _mm_crc32_u8(crc, std::to_integer<std::uint8_t>(*at));
  return crc;
}

inline bool detect_sse42() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("sse4.2") != 0;
}
inline const bool has_sse42 = detect_sse42();
#endif

}  // namespace crc32c_detail

/// As crc32c, always with tables. For tests and for processors without the instruction. Any thread.
inline std::uint32_t crc32c_by_table(std::span<const std::byte> bytes, std::uint32_t before = 0) {
  return ~crc32c_detail::raw_by_table(bytes.data(), bytes.size(), ~before);
}

/// The CRC-32C of `bytes`. Incremental: given the CRC of what lies before as `before`, the result is the CRC
/// of both together; 0 is the CRC of nothing. Any thread.
inline std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0) {
#ifdef LIGHTQ_CRC32C_SSE42
  if (crc32c_detail::has_sse42) return ~crc32c_detail::raw_by_sse42(bytes.data(), bytes.size(), ~before);
#endif
  return crc32c_by_table(bytes, before);
}

/// The CRC-32C of two words as they lie in memory, little-endian: crc32c of the 16 bytes, in a few cycles.
/// Any thread.
inline std::uint32_t crc32c_words(std::uint64_t first, std::uint64_t second, std::uint32_t before = 0) {
#ifdef LIGHTQ_CRC32C_SSE42
  if (crc32c_detail::has_sse42) [[likely]] {
    // The intrinsic may stand only in a function for such processors, which would have to be called.
    std::uint64_t crc = ~before;
    __asm__("crc32q %1, %0" : "+r"(crc) : "rm"(first));
    __asm__("crc32q %1, %0" : "+r"(crc) : "rm"(second));
    return ~static_cast<std::uint32_t>(crc);
  }
#endif
  std::array<std::byte, 2 * sizeof first> bytes;
  store_little_endian(bytes.data(), first);
  store_little_endian(bytes.data() + sizeof first, second);
  return crc32c_by_table(bytes, before);
}

/// The CRC-32C of two stretches of bytes, from that of each: `second` is `second_bytes` long. A few hundred
/// nanoseconds, whatever the length. As crc32_combine of zlib.
inline std::uint32_t crc32c_join(std::uint32_t first, std::uint32_t second, std::size_t second_bytes) {
  for (std::size_t k = 0; second_bytes != 0; ++k, second_bytes >>= 1) {
    if ((second_bytes & 1) != 0) first = crc32c_detail::multiply(crc32c_detail::zero_powers[k], first);
  }
  return first ^ second;
}

/// Copies `bytes` to `to`, which must not overlap, and takes their CRC-32C while they are in the cache. As
/// crc32c otherwise.
inline std::uint32_t crc32c_copy(std::byte* to, std::span<const std::byte> bytes, std::uint32_t before = 0) {
  constexpr std::size_t piece_bytes = 4608;  // six times the three short lanes
  for (; bytes.size() > piece_bytes; bytes = bytes.subspan(piece_bytes), to += piece_bytes) {
    std::memcpy(to, bytes.data(), piece_bytes);
    before = crc32c({to, piece_bytes}, before);
  }
  if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
  return crc32c({to, bytes.size()}, before);
}

}  // namespace lightq::inline v1
