/// Recomputes the checksums of a batch in a segment file, for tests that change its bytes.
#pragma once

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include <lightq/base/batch_layout.hpp>

#include "log/format/segment_format.hpp"

namespace lightq::test {

/// Returns the checksum mask that the file's header names.
inline std::uint32_t batch_mask_in(const std::vector<std::byte>& file) {
  log::SegmentPage page{};
  std::copy_n(file.begin(), std::min(file.size(), page.size()), page.begin());
  const auto header = log::decode_segment_header(page).header;
  EXPECT_TRUE(header.has_value());
  return header ? header->batch_mask : 0;
}

/// Makes both checksums of the batch at `position` of a segment file valid, for any content.
inline void mend_batch_in(std::vector<std::byte>& file, std::size_t position) {
  std::byte* const batch = file.data() + position;
  const ByteView whole(batch, load_little_endian<std::uint32_t>(batch + batch_layout::total_bytes));
  store_little_endian(batch + batch_layout::body_crc, batch_body_crc(whole));
  stamp_batch_header_crc(batch, batch_mask_in(file));
}

}  // namespace lightq::test
