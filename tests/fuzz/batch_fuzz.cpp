/// Fuzz target: checks a batch as a producer may send it, with a correct length and checksum. The result is a
/// fault, or messages with attributes and payloads that lie within the batch. A part of such a batch must be
/// a sound batch again. The headers that the broker reads itself mean the same to each of its readers.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include <lightq/base/batch_cut.hpp>
#include <lightq/base/batch_unpack.hpp>

#include "delivery/batches/header_content.hpp"

namespace lightq {
namespace {

void touch(std::string_view text) {
  volatile char seen = 0;
  for (const char c : text) seen = c;
  static_cast<void>(seen);
}

/// Cuts out the last message, writes a header for it, and checks that the result is a sound batch.
void cut_last(const BatchView& plain, const std::byte* last) {
  const ByteView record(last, static_cast<std::size_t>(plain.bytes().data() + plain.total_bytes() - last));
  std::vector<std::byte> part(batch_layout::header_bytes);
  write_cut_header(BatchHeaderSpace(part.data(), batch_layout::header_bytes), plain, plain.record_count() - 1,
                   1, record);
  part.insert(part.end(), record.begin(), record.end());
  if (BatchView::check(part)) std::abort();
}

/// Checks that a batch without dead headers and invalid times to live expires as it says.
void check_headers(const BatchView& plain) {
  const broker::HeaderContent content = broker::header_content(plain);
  bool any = false;
  for (auto record = plain.records(); !record.done(); record.next()) {
    const auto expiry = broker::expiry_of(record.attributes(), Timestamp{1});
    any |= expiry.has_value();
    if (expiry && expiry->us <= 1) std::abort();
  }
  if (content.has_dead_headers || content.has_invalid_ttl) return;
  if (any != content.has_ttl) std::abort();
}

void take(std::vector<std::byte> batch) {
  store_little_endian(batch.data() + batch_layout::magic, batch_layout::magic_value);
  store_little_endian(batch.data() + batch_layout::version, batch_layout::version_value);
  store_little_endian(batch.data() + batch_layout::total_bytes, static_cast<std::uint32_t>(batch.size()));
  store_little_endian(batch.data() + batch_layout::body_crc, batch_body_crc(batch));
  if (BatchView::check_produced(batch, AttributeKinds(AttributeKinds::known)).fault) return;
  const BatchView view = BatchView::trusted(batch.data());
  BatchUnpacker unpacker;
  const auto plain = unpacker.unpack(view);
  if (!plain) return;
  const std::byte* last = nullptr;
  std::uint64_t bytes = 0;
  for (auto record = plain->records(); !record.done(); record.next()) {
    last = record.message().data() - sizeof(std::uint32_t);
    bytes += record.message().size();
    const AttributesView attributes = record.attributes();
    touch(attributes.key());
    touch(attributes.id());
    if (!view.kinds().has(AttributeKinds::dues) && attributes.due() != 0) std::abort();
    for (const Header header : attributes.headers()) {
      touch(header.name);
      touch(header.value);
    }
    touch(as_text(record.payload()));
  }
  if (bytes != view.message_bytes()) std::abort();
  check_headers(*plain);
  cut_last(*plain, last);
}

}  // namespace
}  // namespace lightq

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < lightq::batch_layout::header_bytes) return 0;
  const auto bytes = std::as_bytes(std::span(data, size));
  lightq::take({bytes.begin(), bytes.end()});
  return 0;
}
