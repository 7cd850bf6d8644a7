/// CRC-32C (Castagnoli). Uses carry-less multiplication of 512 bits if the processor has it (VPCLMULQDQ).
/// Otherwise uses SSE4.2 in three interleaved streams, or else tables. Layer: base. References: RFC 3720,
/// appendix B.4; "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction" (Intel, 2009).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include <lightq/base/bytes.hpp>

#if defined(__x86_64__) && defined(__GNUC__)
#define LIGHTQ_CRC32C_SSE42 1
#endif

namespace lightq::inline v1 {

namespace crc32c_detail {

inline constexpr std::uint32_t polynomial = 0x82F63B78;  // bits reflected

/// Returns the product of two polynomials modulo the CRC's polynomial; bit 31 is x^0.
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

/// Computes the CRC after a fixed number of zero bytes follow. Takes four table look-ups instead of a pass
/// over zeros.
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

/// zero_powers[k]: multiply a CRC by it to append 2^k zero bytes.
inline constexpr std::array<std::uint32_t, 64> zero_powers = [] {
  std::array<std::uint32_t, 64> powers{};
  std::uint32_t square = 0x00800000U;  // x^8: one zero byte
  for (std::uint32_t& power : powers) {
    power = square;
    square = multiply(square, square);
  }
  return powers;
}();

/// Computes the CRC without the usual inversions before and after.
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

// The crc32 instruction takes three cycles and can start every cycle, so three streams keep its unit of the
// processor busy.
__attribute__((target("sse4.2"))) inline std::uint32_t raw_lanes(const std::byte* at, std::size_t lane,
                                                                 const ZeroShift& shift, std::uint32_t crc) {
  std::uint64_t first = crc;
  std::uint64_t second = 0;
  std::uint64_t third = 0;
  for (const std::byte* end = at + lane; at != end; at += 8) {
    first = __builtin_ia32_crc32di(first, load_little_endian<std::uint64_t>(at));
    second = __builtin_ia32_crc32di(second, load_little_endian<std::uint64_t>(at + lane));
    third = __builtin_ia32_crc32di(third, load_little_endian<std::uint64_t>(at + 2 * lane));
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
  for (; size >= 8; at += 8, size -= 8)
    wide = __builtin_ia32_crc32di(wide, load_little_endian<std::uint64_t>(at));
  crc = static_cast<std::uint32_t>(wide);
  for (; size != 0; ++at, --size) crc = __builtin_ia32_crc32qi(crc, std::to_integer<std::uint8_t>(*at));
  return crc;
}

inline bool detect_sse42() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("sse4.2") != 0;
}
inline const bool has_sse42 = detect_sse42();

/// The factors that fold 128 bits forward by `bits` bits: `low` is x^(bits+32), for the lower half; `high` is
/// x^(bits-32), for the upper half. Both are modulo the polynomial, bit-reflected, and shifted left by 1: the
/// product of two bit-reflected numbers lies one bit too low.
struct FoldFactors {
  std::uint64_t low;
  std::uint64_t high;
};
constexpr FoldFactors fold_factors(std::uint32_t bits) {
  const auto power = [](std::uint32_t exponent) {
    std::uint32_t product = 0x80000000U;  // x^0
    std::uint32_t square = 0x40000000U;   // x^1
    for (; exponent != 0; exponent >>= 1) {
      if ((exponent & 1) != 0) product = multiply(product, square);
      square = multiply(square, square);
    }
    return std::uint64_t{product} << 1;
  };
  return {power(bits + 32), power(bits - 32)};
}
inline constexpr std::size_t wide_bytes = 64;
inline constexpr FoldFactors over_4_wide = fold_factors(4 * 512);
inline constexpr FoldFactors over_wide = fold_factors(512);
inline constexpr FoldFactors over_384 = fold_factors(384);
inline constexpr FoldFactors over_256 = fold_factors(256);
inline constexpr FoldFactors over_128 = fold_factors(128);

#define LIGHTQ_WIDE __attribute__((target("avx512f,vpclmulqdq,pclmul,sse4.2")))

// Uses the compiler's own vectors: including its header of all intrinsics would add half a second to every
// compilation.
using Wide = long long __attribute__((vector_size(64)));
using Narrow = long long __attribute__((vector_size(16)));

template <typename Vector>
LIGHTQ_WIDE inline Vector load_vector(const std::byte* from) {
  Vector loaded;
  std::memcpy(&loaded, from, sizeof loaded);
  return loaded;
}

LIGHTQ_WIDE inline Wide fold_wide(Wide moved, Wide factors, Wide onto) {
#ifdef __clang__
  return __builtin_ia32_pclmulqdq512(moved, factors, 0x00) ^
         __builtin_ia32_pclmulqdq512(moved, factors, 0x11) ^ onto;
#else
  return __builtin_ia32_vpclmulqdq_v8di(moved, factors, 0x00) ^
         __builtin_ia32_vpclmulqdq_v8di(moved, factors, 0x11) ^ onto;
#endif
}

LIGHTQ_WIDE inline Narrow fold_narrow(Narrow moved, const FoldFactors& factors, Narrow onto) {
  const Narrow both = {static_cast<long long>(factors.low), static_cast<long long>(factors.high)};
  return __builtin_ia32_pclmulqdq128(moved, both, 0x00) ^ __builtin_ia32_pclmulqdq128(moved, both, 0x11) ^
         onto;
}

LIGHTQ_WIDE inline Wide broadcast(const FoldFactors& factors) {
  const auto low = static_cast<long long>(factors.low);
  const auto high = static_cast<long long>(factors.high);
  return Wide{low, high, low, high, low, high, low, high};
}

inline constexpr std::size_t wide_bytes_min = 4 * wide_bytes;

// Requires: at least wide_bytes_min bytes. Uses four accumulators of four 128-bit lanes each. The fold leaves
// 16 bytes, which then pass through the crc32 instruction.
LIGHTQ_WIDE inline std::uint32_t raw_by_wide(const std::byte* at, std::size_t size, std::uint32_t crc) {
  Wide a = load_vector<Wide>(at) ^ Wide { static_cast<long long>(crc), 0, 0, 0, 0, 0, 0, 0 };
  Wide b = load_vector<Wide>(at + wide_bytes);
  Wide c = load_vector<Wide>(at + 2 * wide_bytes);
  Wide d = load_vector<Wide>(at + 3 * wide_bytes);
  const Wide over_four = broadcast(over_4_wide);
  for (at += 4 * wide_bytes, size -= 4 * wide_bytes; size >= 4 * wide_bytes;
       at += 4 * wide_bytes, size -= 4 * wide_bytes) {
    a = fold_wide(a, over_four, load_vector<Wide>(at));
    b = fold_wide(b, over_four, load_vector<Wide>(at + wide_bytes));
    c = fold_wide(c, over_four, load_vector<Wide>(at + 2 * wide_bytes));
    d = fold_wide(d, over_four, load_vector<Wide>(at + 3 * wide_bytes));
  }
  const Wide over_one = broadcast(over_wide);
  a = fold_wide(fold_wide(fold_wide(a, over_one, b), over_one, c), over_one, d);
  std::array<std::byte, wide_bytes> lanes;
  std::memcpy(lanes.data(), &a, sizeof a);
  Narrow rest = load_vector<Narrow>(lanes.data() + 48);
  rest = fold_narrow(load_vector<Narrow>(lanes.data()), over_384, rest);
  rest = fold_narrow(load_vector<Narrow>(lanes.data() + 16), over_256, rest);
  rest = fold_narrow(load_vector<Narrow>(lanes.data() + 32), over_128, rest);
  const std::uint64_t first = __builtin_ia32_crc32di(0, static_cast<std::uint64_t>(rest[0]));
  crc = static_cast<std::uint32_t>(__builtin_ia32_crc32di(first, static_cast<std::uint64_t>(rest[1])));
  return raw_by_sse42(at, size, crc);
}
#undef LIGHTQ_WIDE

inline const bool has_wide =
    has_sse42 && __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("vpclmulqdq") != 0;
#endif

}  // namespace crc32c_detail

/// Computes crc32c. Always uses tables. For tests, and for processors without the instruction. Thread: any.
inline std::uint32_t crc32c_by_table(std::span<const std::byte> bytes, std::uint32_t before = 0) {
  return ~crc32c_detail::raw_by_table(bytes.data(), bytes.size(), ~before);
}

/// Returns the CRC-32C of `bytes`. Incremental: if `before` is the CRC of preceding bytes, returns the CRC of
/// both together. 0 is the CRC of no bytes. Thread: any.
inline std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0) {
#ifdef LIGHTQ_CRC32C_SSE42
  if (crc32c_detail::has_wide && bytes.size() >= crc32c_detail::wide_bytes_min)
    return ~crc32c_detail::raw_by_wide(bytes.data(), bytes.size(), ~before);
  if (crc32c_detail::has_sse42) return ~crc32c_detail::raw_by_sse42(bytes.data(), bytes.size(), ~before);
#endif
  return crc32c_by_table(bytes, before);
}

/// Returns crc32c of the 16 bytes of two little-endian words, in a few cycles. Thread: any.
inline std::uint32_t crc32c_of_words(std::uint64_t first, std::uint64_t second, std::uint32_t before = 0) {
#ifdef LIGHTQ_CRC32C_SSE42
  if (crc32c_detail::has_sse42) [[likely]] {
    // The intrinsic needs a function with target sse4.2. That function could not be inlined here.
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

/// Returns the CRC-32C of two consecutive byte strings from the CRC of each. `second_bytes`: the length of
/// the second string. Takes a few hundred nanoseconds for any length. Corresponds to crc32_combine of zlib.
inline std::uint32_t crc32c_join(std::uint32_t first, std::uint32_t second, std::size_t second_bytes) {
  for (std::size_t k = 0; second_bytes != 0; ++k, second_bytes >>= 1) {
    if ((second_bytes & 1) != 0) first = crc32c_detail::multiply(crc32c_detail::zero_powers[k], first);
  }
  return first ^ second;
}

/// Copies `bytes` to `to`, and returns the crc32c of `bytes`, computed while the copied bytes are in the
/// cache. Requires: `to` does not overlap `bytes`.
inline std::uint32_t crc32c_copy(std::byte* to, std::span<const std::byte> bytes, std::uint32_t before = 0) {
  constexpr std::size_t piece_bytes = 4608;  // 6 x 3 x short_lane
  for (; bytes.size() > piece_bytes; bytes = bytes.subspan(piece_bytes), to += piece_bytes) {
    std::memcpy(to, bytes.data(), piece_bytes);
    before = crc32c({to, piece_bytes}, before);
  }
  if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
  return crc32c({to, bytes.size()}, before);
}

}  // namespace lightq::inline v1
