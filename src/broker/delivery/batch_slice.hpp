/// Part of a batch, or all of it: what can be sent as it lies in the log. Layer: delivery.
#pragma once

#include <cstdint>

#include <lightq/base/batch.hpp>

namespace lightq::broker {

/// Records of one batch that follow each other.
struct BatchSlice {
  BatchView batch;          ///< valid until the next non-const call on the log
  std::uint32_t first = 0;  ///< index in the batch of the first one
  std::uint32_t count = 0;  ///< at least 1
  ByteView records;         ///< exactly these, length fields included
  [[nodiscard]] bool is_whole() const { return count == batch.record_count(); }
  [[nodiscard]] std::uint64_t payload_bytes() const { return records.size() - record_bytes(0) * count; }
  [[nodiscard]] OffsetRange range() const {
    const Offset begin = batch.base_offset() + first;
    return {begin, begin + count};
  }
};

}  // namespace lightq::broker
