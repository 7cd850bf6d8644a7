/// Computes a record's sum with all four lanes in one register, on processors with AVX2. Layer: log.
#pragma once

#if defined(__GNUC__) && defined(__x86_64__)
#define LIGHTQ_RECORD_SUM_WIDE 1

#include <immintrin.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace lightq::log::record_sum_detail {

inline bool detect_avx2() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx2") != 0;
}
inline const bool has_wide_sums = detect_avx2();
/// Minimum length of a record: its last bytes are loaded together with the bytes before them.
inline constexpr std::size_t wide_block_bytes = 32;

inline bool may_be_wide(std::size_t bytes) {
  return bytes >= wide_block_bytes && has_wide_sums;
}

/// A table of shuffles. A shuffle loaded from index 16 - n moves the last n bytes to the front, followed by
/// zeros.
alignas(32) inline constexpr auto moved_down = [] {
  std::array<std::uint8_t, 32> moved{};
  for (std::size_t i = 0; i < moved.size(); ++i)
    moved.at(i) = i < 16 ? static_cast<std::uint8_t>(i) : std::uint8_t{0x80};
  return moved;
}();

/// Marks functions that only processors with AVX2 can run.
#define LIGHTQ_AVX2_TARGET [[gnu::target("avx2")]]
/// Marks functions that are also inlined into their callers, which must have the same target.
#define LIGHTQ_AVX2_INLINE [[gnu::target("avx2"), gnu::always_inline]] inline

template <int turn_bits>
LIGHTQ_AVX2_INLINE __m256i mix(__m256i sum, __m256i block) {
  sum = _mm256_add_epi64(sum, block);
  return _mm256_or_si256(_mm256_slli_epi64(sum, turn_bits), _mm256_srli_epi64(sum, 64 - turn_bits));
}
LIGHTQ_AVX2_INLINE __m256i load_block(const std::byte* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}
LIGHTQ_AVX2_INLINE void store_block(std::byte* to, __m256i block) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), block);
}
LIGHTQ_AVX2_INLINE __m128i load_half(const std::byte* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}
/// Loads the first two words separately: if they were written just now, a wide load would wait until the
/// stores have reached the cache.
LIGHTQ_AVX2_INLINE __m256i load_first_block(const std::byte* from) {
  const __m128i low = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
  const __m128i high = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from + 8));
  return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_unpacklo_epi64(low, high)), load_half(from + 16),
                                 1);
}
/// Loads the last `bytes` bytes before `end`, followed by zeros. Requires: `bytes` < 16, and 16 bytes before
/// `end` are readable.
LIGHTQ_AVX2_INLINE __m128i load_end(const std::byte* end, std::size_t bytes) {
  const __m128i shuffle = _mm_loadu_si128(reinterpret_cast<const __m128i*>(moved_down.data() + 16 - bytes));
  return _mm_shuffle_epi8(load_half(end - 16), shuffle);
}
/// Loads the incomplete last block: the `bytes` bytes before `end`, followed by zeros. Requires: `bytes` <
/// 32.
LIGHTQ_AVX2_INLINE __m256i load_last_block(const std::byte* end, std::size_t bytes) {
  if (bytes < 16) return _mm256_zextsi128_si256(load_end(end, bytes));
  return _mm256_inserti128_si256(_mm256_castsi128_si256(load_half(end - bytes)), load_end(end, bytes - 16),
                                 1);
}

/// Adds and copies a record as RecordSum::add_copying does. Requires: it has at least `wide_block_bytes`
/// bytes.
template <int turn_bits>
LIGHTQ_AVX2_INLINE void add_copying_wide(std::uint64_t* lanes, std::byte* to, const std::byte* from,
                                         std::size_t bytes) {
  auto* const kept = reinterpret_cast<__m256i*>(lanes);
  __m256i sum = _mm256_loadu_si256(kept);
  const __m256i length = _mm256_zextsi128_si256(_mm_cvtsi64_si128(static_cast<std::int64_t>(bytes)));
  sum = _mm256_blend_epi32(sum, mix<turn_bits>(sum, length), 0b11);
  const __m256i first = load_first_block(from);
  store_block(to, first);
  sum = mix<turn_bits>(sum, first);
  std::size_t done = wide_block_bytes;
  for (; done + wide_block_bytes <= bytes; done += wide_block_bytes) {
    const __m256i block = load_block(from + done);
    store_block(to + done, block);
    sum = mix<turn_bits>(sum, block);
  }
  if (done != bytes) {
    store_block(to + bytes - wide_block_bytes, load_block(from + bytes - wide_block_bytes));
    sum = mix<turn_bits>(sum, load_last_block(from + bytes, bytes - done));
  }
  _mm256_storeu_si256(kept, sum);
}

}  // namespace lightq::log::record_sum_detail
#endif
