/// Part or all of a batch, in a form that can be sent without another copy. Layer: delivery.
#pragma once

#include <cstdint>

#include <lightq/base/batch.hpp>

namespace lightq::broker {

/// A run of consecutive records of one batch. A slice of a compressed batch always covers the whole batch.
/// Example: a batch holds offsets 100 to 109. A slice with `first` 4 and `count` 3 is the range [104, 107).
struct BatchSlice {
  BatchView batch;          ///< valid until the next non-const call on the log
  std::uint32_t first = 0;  ///< index in the batch of the slice's first record
  std::uint32_t count = 0;  ///< at least 1
  ByteView records;  ///< exactly the slice's records, length fields included; empty for a compressed batch
  bool as_stored = true;  ///< as in the log; if false, the batch's checksums are meaningless
  [[nodiscard]] bool is_whole() const { return as_stored && count == batch.record_count(); }
  /// Returns the bytes of payloads and attributes, before compression.
  [[nodiscard]] std::uint64_t message_bytes() const {
    return batch.is_compressed() ? batch.message_bytes() : records.size() - record_bytes(0) * count;
  }
  /// Returns the bytes to send: the whole batch if it is compressed, otherwise the records.
  [[nodiscard]] std::uint64_t stored_bytes() const {
    return batch.is_compressed() ? batch.total_bytes() : records.size();
  }
  [[nodiscard]] OffsetRange range() const {
    const Offset begin = batch.base_offset() + first;
    return {begin, begin + count};
  }
};

}  // namespace lightq::broker
