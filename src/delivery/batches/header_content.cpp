/// The headers of messages that the broker itself reads. Layer: delivery.
#include "delivery/batches/header_content.hpp"

#include <limits>
#include <string_view>
#include <utility>

#include <lightq/base/ttl.hpp>

namespace lightq::broker {

HeaderContent header_content(const BatchView& batch) {
  HeaderContent content;
  if (!batch.kinds().has(AttributeKinds::headers)) return content;
  std::string_view last;  // value of a time to live: messages of a batch mostly have equal ones
  std::int64_t last_ms = 0;
  bool is_uniform = true;
  for (auto record = batch.records(); !record.done(); record.next()) {
    bool has_ttl = false;
    for (const Header header : record.attributes().headers()) {
      content.has_dead_headers |= header.name.starts_with(dead_header_prefix);
      if (header.name != ttl_header_name) continue;
      content.has_invalid_ttl |= std::exchange(has_ttl, true);
      if (!last.empty() && header.value == last) continue;
      const auto ttl = ttl_in(header.value);
      is_uniform &= last.empty();
      content.has_invalid_ttl |= !ttl;
      last = header.value;
      last_ms = ttl ? ttl->count() : 0;
    }
    content.has_ttl |= has_ttl;
    is_uniform &= has_ttl;
  }
  if (is_uniform && !content.has_invalid_ttl && !content.has_dead_headers) content.uniform_ttl_ms = last_ms;
  return content;
}

std::optional<Timestamp> expiry_of(const AttributesView& attributes, Timestamp appended) {
  std::optional<std::chrono::milliseconds> ttl;
  for (const Header header : attributes.headers()) {
    if (header.name.starts_with(dead_header_prefix)) return std::nullopt;
    if (header.name == ttl_header_name && !ttl) ttl = ttl_in(header.value);
  }
  if (!ttl) return std::nullopt;
  return expiry_after(appended, ttl->count());
}

Timestamp expiry_after(Timestamp appended, std::int64_t ttl_ms) {
  constexpr std::int64_t greatest = std::numeric_limits<std::int64_t>::max();
  const std::int64_t ttl_us = ttl_ms * 1000;
  return {appended.us > greatest - ttl_us ? greatest : appended.us + ttl_us};
}

}  // namespace lightq::broker
