/// Encodes and decodes the ids of tickets. docs/protocol.md, "Tickets". Layer: access.
#include "access/ticket.hpp"

#include <array>

#include <lightq/base/bytes.hpp>

namespace lightq::broker {

namespace {

constexpr std::uint8_t version = 1;
// The positions of the fields. Numbers are little-endian; there are no gaps.
constexpr std::size_t version_at = 0;
constexpr std::size_t role_at = 1;
constexpr std::size_t topic_at = 2;
constexpr std::size_t expires_at = 10;
constexpr std::size_t user_at = 18;
constexpr std::size_t generation_at = 26;
constexpr std::size_t nonce_at = 30;
constexpr std::size_t claims_bytes = 38;

constexpr std::string_view digits = "0123456789abcdef";

}  // namespace

std::string to_hex(ByteView bytes) {
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::byte byte : bytes) {
    text += digits[std::to_integer<std::size_t>(byte) >> 4U];
    text += digits[std::to_integer<std::size_t>(byte) & 15U];
  }
  return text;
}

bool ends_too_late(std::uint64_t expires_ms, std::chrono::milliseconds lifetime_max, Timestamp now) {
  const std::int64_t latest =
      now.us / 1000 + (lifetime_max + std::chrono::milliseconds(ticket_clock_tolerance)).count();
  return latest < 0 || expires_ms > static_cast<std::uint64_t>(latest);
}

std::string encode_ticket_id(const TicketClaims& claims) {
  std::array<std::byte, claims_bytes> bytes{};
  bytes[version_at] = std::byte{version};
  bytes[role_at] = static_cast<std::byte>(claims.grant.role);
  store_little_endian(bytes.data() + topic_at, claims.grant.topic.value);
  store_little_endian(bytes.data() + expires_at, claims.expires_ms);
  store_little_endian(bytes.data() + user_at, claims.holder.user);
  store_little_endian(bytes.data() + generation_at, claims.holder.generation);
  store_little_endian(bytes.data() + nonce_at, claims.nonce);
  return to_hex(bytes);
}

std::optional<TicketClaims> decode_ticket_id(std::string_view id) {
  if (id.size() != 2 * claims_bytes) return std::nullopt;
  std::array<std::byte, claims_bytes> bytes{};
  for (std::size_t i = 0; i < id.size(); ++i) {
    const std::size_t digit = digits.find(id[i]);
    if (digit == std::string_view::npos) return std::nullopt;
    bytes[i / 2] = bytes[i / 2] << 4U | static_cast<std::byte>(digit);
  }
  const auto role = std::to_integer<int>(bytes[role_at]);
  if (bytes[version_at] != std::byte{version} || role > static_cast<int>(EndpointRole::sub))
    return std::nullopt;
  TicketClaims claims;
  claims.grant.role = static_cast<EndpointRole>(role);
  claims.grant.topic = {load_little_endian<std::uint64_t>(bytes.data() + topic_at)};
  claims.expires_ms = load_little_endian<std::uint64_t>(bytes.data() + expires_at);
  claims.holder.user = load_little_endian<std::uint64_t>(bytes.data() + user_at);
  claims.holder.generation = load_little_endian<std::uint32_t>(bytes.data() + generation_at);
  claims.nonce = load_little_endian<std::uint64_t>(bytes.data() + nonce_at);
  return claims;
}

}  // namespace lightq::broker
