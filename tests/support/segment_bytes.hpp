/// Builds whole segment files for tests from batches, without a log.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "log/format/segment_format.hpp"
#include "log/format/segment_index_file.hpp"
#include "support/batches.hpp"

namespace lightq::test {

/// A batch and its position in a segment file.
struct PlacedBatch {
  Offset offset;
  std::uint64_t position = 0;
  Timestamp time;
};

/// Builds a segment file.
class SegmentBytes {
 public:
  SegmentBytes(std::uint32_t epoch, std::uint64_t incarnation, Offset first)
      : segment_{epoch, incarnation, first, first, log::segment_header_bytes} {
    bytes_.resize(log::segment_header_bytes);
  }

  void add(const std::vector<std::string>& payloads, Timestamp time) {
    auto batch = make_batch(payloads);
    stamp_batch(batch, segment_.end_offset, time, segment_.epoch);
    batches_.push_back({segment_.end_offset, bytes_.size(), time});
    bytes_.insert(bytes_.end(), batch.begin(), batch.end());
    segment_.end_offset = segment_.end_offset + payloads.size();
    segment_.end_position = bytes_.size();
  }
  /// Returns the file with its header, and zeros up to `file_bytes`. The file is sealed if `newest` is given.
  std::vector<std::byte> finish(std::uint64_t file_bytes, std::optional<Timestamp> newest = std::nullopt) {
    auto file = bytes_;
    file.resize(std::max<std::size_t>(file_bytes, file.size()));
    const log::SegmentHeader header{segment_.epoch, segment_.first_offset, segment_.incarnation, file.size()};
    const auto page = log::encode_segment_header(header);
    std::copy(page.begin(), page.end(), file.begin());
    if (newest) {
      log::SegmentSeal seal;
      seal.end_position = segment_.end_position;
      seal.end_offset = segment_.end_offset;
      seal.newest = *newest;
      const auto sealed = log::encode_segment_seal(seal, header);
      std::copy(sealed.begin(), sealed.end(), file.begin() + log::segment_seal_position);
    }
    return file;
  }
  [[nodiscard]] const log::IndexedSegment& segment() const { return segment_; }
  [[nodiscard]] const std::vector<PlacedBatch>& batches() const { return batches_; }

 private:
  log::IndexedSegment segment_;
  std::vector<std::byte> bytes_;
  std::vector<PlacedBatch> batches_;
};

}  // namespace lightq::test
