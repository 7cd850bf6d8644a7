/// The code of a run of offsets, in memory and in cursor files. docs/log_format.md, "Codes of runs". Layer:
/// log.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include <lightq/base/types.hpp>

namespace lightq::log {

inline constexpr std::size_t varint_bytes_max = 10;
inline constexpr std::size_t run_code_bytes_max = 20;

// --- Varints: groups of 7 bits, the lowest first; bit 7 is set in all bytes but the last. ---

/// Stores a varint. Returns the position after it. Requires: varint_bytes_max writable bytes.
inline std::byte* store_varint(std::byte* to, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) *to++ = static_cast<std::byte>(value | 0x80);
  *to++ = static_cast<std::byte>(value);
  return to;
}

/// Takes a varint that store_varint has stored. Requires: a whole varint at `at`.
inline std::uint64_t load_varint(const std::byte*& at) {
  std::uint64_t value = 0;
  for (unsigned shift = 0;; shift += 7) {
    const auto byte = std::to_integer<std::uint64_t>(*at++);
    value |= (byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
}

/// Takes a varint from bytes that may be wrong. Returns nothing if they end too early, if the value has more
/// than 64 bits, or if it has leading zeros.
inline std::optional<std::uint64_t> take_varint(ByteView& bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes.size() && i < varint_bytes_max; ++i) {
    const auto byte = std::to_integer<std::uint64_t>(bytes[i]);
    if (i == varint_bytes_max - 1 && byte > 1) return std::nullopt;
    value |= (byte & 0x7F) << (7 * i);
    if (byte >= 0x80) continue;
    if (byte == 0 && i != 0) return std::nullopt;
    bytes = bytes.subspan(i + 1);
    return value;
  }
  return std::nullopt;
}

// --- Runs: bit 0 of the first byte: the run is longer than one offset; bits 1 to 6: the low bits of the gap
// before it; bit 7: a varint follows with the other bits of the gap. Then for longer runs a varint: the
// length minus 2. ---

/// Stores the code of `run`, which follows a run that ends at `before`. Returns the position after it.
/// Requires: run_code_bytes_max writable bytes; before <= run.begin < run.end.
inline std::byte* store_run(std::byte* to, Offset before, OffsetRange run) {
  const std::uint64_t gap = distance(before, run.begin);
  const std::uint64_t length = distance(run.begin, run.end);
  const std::uint64_t high = gap >> 6;
  *to++ = static_cast<std::byte>((gap & 0x3F) << 1 | (length > 1 ? 1U : 0U) | (high != 0 ? 0x80U : 0U));
  if (high != 0) to = store_varint(to, high);
  if (length > 1) to = store_varint(to, length - 2);
  return to;
}

/// Takes a run that store_run has stored. Requires: a whole code at `at`.
inline OffsetRange load_run(const std::byte*& at, Offset before) {
  const auto first = std::to_integer<std::uint64_t>(*at++);
  std::uint64_t gap = first >> 1 & 0x3F;
  if (first >= 0x80) gap |= load_varint(at) << 6;
  const Offset begin = before + gap;
  return {begin, begin + ((first & 1) != 0 ? load_varint(at) + 2 : 1)};
}

/// Takes a run from bytes that may be wrong. Returns nothing unless they begin with the only code of a run in
/// [before, limit). Requires: before <= limit.
inline std::optional<OffsetRange> take_run(ByteView& bytes, Offset before, Offset limit) {
  constexpr std::uint64_t high_limit = std::uint64_t{1} << 58;
  if (bytes.empty()) return std::nullopt;
  const auto first = std::to_integer<std::uint64_t>(bytes.front());
  bytes = bytes.subspan(1);
  std::uint64_t gap = first >> 1 & 0x3F;
  if (first >= 0x80) {
    const auto high = take_varint(bytes);
    if (!high || *high == 0 || *high >= high_limit) return std::nullopt;
    gap |= *high << 6;
  }
  std::uint64_t room = distance(before, limit);
  if (gap >= room) return std::nullopt;
  room -= gap;
  const Offset begin = before + gap;
  if ((first & 1) == 0) return OffsetRange{begin, begin + 1};
  const auto more = take_varint(bytes);
  if (!more || room < 2 || *more > room - 2) return std::nullopt;
  return OffsetRange{begin, begin + (*more + 2)};
}

}  // namespace lightq::log
