/// Batches for tests of logs, and what they hold.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <lightq/base/batch.hpp>

namespace lightq::test {

/// An encoded batch of these payloads, not yet stamped.
inline std::vector<std::byte> make_batch(const std::vector<std::string>& payloads) {
  BatchBuilder builder;
  for (const auto& payload : payloads) builder.add(as_byte_view(payload));
  const auto batch = builder.finish();
  return {batch.begin(), batch.end()};
}

/// An encoded batch of one payload whose batch is `total_bytes` long (at least 68).
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
