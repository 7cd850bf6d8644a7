/// The switch for the bugs of tests/mutants, and what some of them need. Sources with a bug include this.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include <lightq/base/batch.hpp>

#include "mutants/bugs.hpp"

namespace lightq::test {

/// The bug that is switched on.
inline Bug seeded_bug = Bug::none;
/// Returns true if the bug is switched on.
inline bool seeded(Bug bug) {
  return seeded_bug == bug;
}

/// Returns true if only the header's checksum is wrong. `available`: the header; its size may include bytes
/// after it, which are not read.
inline bool is_sound_without_header_checksum(ByteView available) {
  std::array<std::byte, batch_layout::header_bytes> header{};
  if (available.size() < header.size()) return false;
  std::copy_n(available.begin(), header.size(), header.begin());
  store_little_endian(header.data() + batch_layout::header_crc, batch_header_crc(header.data()));
  return !BatchView::check_stored_header({header.data(), available.size()}).has_value();
}

/// Returns true if only the body's checksum is wrong.
inline bool is_sound_without_body_checksum(const BatchView& batch) {
  std::vector<std::byte> copy(batch.bytes().begin(), batch.bytes().end());
  store_little_endian(copy.data() + batch_layout::body_crc, batch_body_crc(copy));
  return !BatchView::trusted(copy.data()).check_body().has_value();
}

}  // namespace lightq::test
