/// Checks the ids of a batch's messages. docs/session.md, "Delayed messages". Layer: delivery.
#pragma once

#include <lightq/base/batch.hpp>

namespace lightq::broker {

/// Returns true if a message of the batch has a wrong id: an empty one, one that is longer than
/// limits::message_id_bytes_max, or two. Takes time for each header; none if the batch has no headers.
/// Requires: the batch was checked, and is not compressed.
[[nodiscard]] inline bool has_wrong_ids(const BatchView& batch) {
  if (!batch.kinds().has(AttributeKinds::headers)) return false;
  for (auto record = batch.records(); !record.done(); record.next()) {
    bool has_id = false;
    for (const Header header : record.attributes().headers()) {
      if (header.name != id_header_name) continue;
      if (has_id || header.value.empty() || header.value.size() > limits::message_id_bytes_max) return true;
      has_id = true;
    }
  }
  return false;
}

}  // namespace lightq::broker
