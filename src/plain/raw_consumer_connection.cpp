/// Encodes messages for raw consumers. Layer: plain.
#include "plain/raw_consumer_connection.hpp"

#include <cstdint>
#include <cstring>
#include <limits>

#include <lightq/base/bytes.hpp>

namespace lightq::broker {

namespace {
using Length = std::uint32_t;
static_assert(limits::message_bytes_max_max <= std::numeric_limits<Length>::max());
}  // namespace

void RawConsumerConnection::encode(ByteView payload) {
  std::byte* const to = output().extend(sizeof(Length) + payload.size());
  store_little_endian(to, static_cast<Length>(payload.size()));
  if (!payload.empty()) std::memcpy(to + sizeof(Length), payload.data(), payload.size());
}

std::size_t RawConsumerConnection::consume(std::span<std::byte> bytes) {
  if (!bytes.empty()) life().fail("a raw consumer sent bytes, but it may only receive");
  return bytes.size();
}

}  // namespace lightq::broker
