/// Corrects the checksums of a segment file, so that fuzzing reaches the code behind the checks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <lightq/base/batch.hpp>

#include "log/format/segment_format.hpp"

namespace lightq::test {

/// Writes a sound first page for `first`, as far as the file is long enough. Then corrects the header of each
/// batch behind it. Ends at the first batch that begins with a multiple of 8.
inline void mend_segment(std::vector<std::byte>& file, Offset first) {
  const auto header = log::encode_segment_header({7, first, 1, file.size()});
  std::copy_n(header.begin(), std::min(header.size(), file.size()), file.begin());
  for (std::size_t at = log::segment_header_bytes; at + batch_layout::header_bytes <= file.size();) {
    const std::size_t left = file.size() - at;
    std::byte* batch = file.data() + at;
    if (std::to_integer<int>(batch[0]) % 8 == 0) return;  // unchanged from here on
    store_little_endian(batch, batch_layout::magic_value);
    std::fill_n(batch + batch_layout::version, 4, std::byte{0});
    store_little_endian(batch + batch_layout::version, batch_layout::version_value);
    const std::uint32_t total = static_cast<std::uint32_t>(
        batch_layout::header_bytes +
        load_little_endian<std::uint16_t>(batch + batch_layout::total_bytes) % (left + 8));
    store_little_endian(batch + batch_layout::total_bytes, total);
    if (total > left) return;
    store_little_endian(batch + batch_layout::body_crc, batch_body_crc({batch, total}));
    store_little_endian(batch + batch_layout::header_crc, batch_header_crc(batch));
    at += total;
  }
}

}  // namespace lightq::test
