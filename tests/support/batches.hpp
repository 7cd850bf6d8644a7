/// Makes batches for tests of logs, and reads their payloads.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <lightq/base/batch.hpp>

namespace lightq::test {

/// Returns an encoded batch of these payloads. The batch is not stamped yet.
inline std::vector<std::byte> make_batch(const std::vector<std::string>& payloads) {
  BatchBuilder builder;
  for (const auto& payload : payloads) builder.add(as_byte_view(payload));
  const auto batch = builder.finish();
  return {batch.begin(), batch.end()};
}

/// Returns the batch with the header fields of a producer. The sequence numbers of its messages start at
/// `first_sequence`.
inline std::vector<std::byte> of_producer(std::uint64_t id, std::uint16_t epoch, std::uint64_t first_sequence,
                                          std::vector<std::byte> batch) {
  store_little_endian(batch.data() + batch_layout::producer_id, id);
  store_little_endian(batch.data() + batch_layout::producer_epoch, epoch);
  store_little_endian(batch.data() + batch_layout::first_sequence, first_sequence);
  store_little_endian(batch.data() + batch_layout::body_crc, batch_body_crc(batch));
  return batch;
}

/// Returns an encoded batch of these payloads with the header fields of a producer. The batch is not stamped
/// yet.
inline std::vector<std::byte> make_batch_of_producer(std::uint64_t id, std::uint16_t epoch,
                                                     std::uint64_t first_sequence,
                                                     const std::vector<std::string>& payloads) {
  return of_producer(id, epoch, first_sequence, make_batch(payloads));
}

/// Returns an encoded batch of one payload. The whole batch has `total_bytes` bytes (at least 68).
inline std::vector<std::byte> make_batch_of(std::size_t total_bytes, char fill = 'x') {
  return make_batch({std::string(total_bytes - batch_layout::header_bytes - record_bytes(0), fill)});
}

inline std::vector<std::string> payloads_of(const BatchView& batch) {
  std::vector<std::string> payloads;
  for (auto record = batch.records(); !record.done(); record.next()) {
    payloads.emplace_back(as_text(record.payload()));
  }
  return payloads;
}

}  // namespace lightq::test
