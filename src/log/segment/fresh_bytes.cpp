/// Writes the bytes of a new file in large pieces. Layer: log.
#include "log/segment/fresh_bytes.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>

#include <lightq/base/limits.hpp>

namespace lightq::log {

namespace {

constexpr std::uint64_t piece_bytes_min = 16 * limits::KiB;
constexpr std::uint64_t piece_bytes_max = 128 * limits::KiB;

}  // namespace

void FreshBytes::fill_piece(SegmentBytes& bytes, std::uint64_t begin, std::uint64_t end) {
  static constexpr std::array<std::byte, piece_bytes_max> zeros{};
  const std::uint64_t piece = std::min(std::bit_floor(end), piece_bytes_max);
  const std::uint64_t from = std::max({new_from_, begin, end / piece * piece});
  new_from_ = std::min((end + piece - 1) / piece * piece, bytes.usable_bytes());
  if (piece_bytes_min <= piece && from < end && end < new_from_)
    static_cast<void>(write_all(*bytes.file(), ByteView(zeros).first(new_from_ - from), from));
}

}  // namespace lightq::log
