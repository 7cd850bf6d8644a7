/// Part of a batch, or all of it: what can be sent as it lies in the log. Layer: delivery.
#pragma once

#include <cstdint>

#include <lightq/base/batch.hpp>

namespace lightq::broker {

/// Records of one batch that follow each other. Of a compressed one: all.
struct BatchSlice {
  BatchView batch;          ///< valid until the next non-const call on the log
  std::uint32_t first = 0;  ///< index in the batch of the first one
  std::uint32_t count = 0;  ///< at least 1
  ByteView records;         ///< exactly these, length fields included; none of a compressed batch
  bool as_stored = true;    ///< the batch lies in the log like this; otherwise its checksums mean nothing
  [[nodiscard]] bool is_whole() const { return as_stored && count == batch.record_count(); }
  /// Payloads and attributes, not compressed.
  [[nodiscard]] std::uint64_t message_bytes() const {
    return batch.is_compressed() ? batch.message_bytes() : records.size() - record_bytes(0) * count;
  }
  /// What there is to be sent.
  [[nodiscard]] std::uint64_t stored_bytes() const {
    return batch.is_compressed() ? batch.total_bytes() : records.size();
  }
  [[nodiscard]] OffsetRange range() const {
    const Offset begin = batch.base_offset() + first;
    return {begin, begin + count};
  }
};

}  // namespace lightq::broker
