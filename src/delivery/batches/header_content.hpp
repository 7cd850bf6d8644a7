/// The headers of messages that the broker itself reads. Layer: delivery.
#pragma once

#include <cstdint>
#include <optional>

#include <lightq/base/batch.hpp>
#include <lightq/base/types.hpp>

namespace lightq::broker {

/// The headers with a meaning for the broker that occur in a batch.
struct HeaderContent {
  bool has_dead_headers = false;    ///< a name begins with dead_header_prefix
  bool has_ttl = false;             ///< a message has a time to live
  bool has_invalid_ttl = false;     ///< a value that is no time to live, or two of them in a message
  std::int64_t uniform_ttl_ms = 0;  ///< the time to live that all messages have; 0: not all have the same one
};

/// Returns the content of a batch's headers. Takes time for each header; none if the batch has no headers.
/// Requires: the batch was checked, and is not compressed.
[[nodiscard]] HeaderContent header_content(const BatchView& batch);

/// Returns when a message expires by its own time to live, counted from `appended`. Returns nothing if it has
/// none. Dead letters never expire by it: their headers are those of the message that died.
[[nodiscard]] std::optional<Timestamp> expiry_of(const AttributesView& attributes, Timestamp appended);

/// Returns the time that is `ttl_ms` after `appended`; the greatest time if that is beyond it. Requires:
/// 0 <= ttl_ms <= limits::ttl_ms_max.
[[nodiscard]] Timestamp expiry_after(Timestamp appended, std::int64_t ttl_ms);

}  // namespace lightq::broker
