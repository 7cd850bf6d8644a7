/// The claims of a ticket, and their encoding in its id. Layer: access. docs/protocol.md, "Tickets".
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <lightq/base/types.hpp>

#include "access/endpoint_role.hpp"
#include "admission/fair_share.hpp"

namespace lightq::broker {

/// The permission that a ticket gives: to produce to a topic, to pull from it, or to subscribe to it.
struct Grant {
  TopicId topic;
  EndpointRole role = EndpointRole::produce;
  friend bool operator==(const Grant&, const Grant&) = default;
};

/// The user that a ticket was issued to. Its generation ties the ticket to the password of that time: a new
/// password makes the ticket invalid.
struct TicketHolder {
  std::uint64_t user = 0;        ///< 0: the administrator, or no user
  std::uint32_t generation = 0;  ///< of the user's or the administrator's password; 0: no user

  /// Returns the number under which the holder counts in shared limits: the user's, or for a holder without
  /// a user the one that all clients without a user share.
  [[nodiscard]] constexpr std::uint64_t sharer() const {
    return user == 0 && generation == 0 ? FairShare::anonymous : user;
  }
  friend bool operator==(const TicketHolder&, const TicketHolder&) = default;
};

/// The fields of a ticket's id.
struct TicketClaims {
  Grant grant;
  std::uint64_t expires_ms = 0;  ///< in milliseconds since 1970
  TicketHolder holder;
  std::uint64_t nonce = 0;  ///< random, so that all tickets differ
  friend bool operator==(const TicketClaims&, const TicketClaims&) = default;
};

/// The longest step back of the clock after which tickets issued before it are still accepted.
inline constexpr auto ticket_clock_tolerance = std::chrono::minutes(10);
/// Returns true if a ticket issued now for `lifetime_max` would end before `expires_ms`, by more than the
/// tolerance. Such a ticket was issued while the clock was ahead or while a longer lifetime was permitted.
bool ends_too_late(std::uint64_t expires_ms, std::chrono::milliseconds lifetime_max, Timestamp now);

/// Returns the ticket's id: 76 lower-case hexadecimal digits.
std::string encode_ticket_id(const TicketClaims& claims);
/// Returns the claims of an id, or nothing for a text that encode_ticket_id does not produce.
std::optional<TicketClaims> decode_ticket_id(std::string_view id);

/// Returns the bytes as lower-case hexadecimal digits.
std::string to_hex(ByteView bytes);

}  // namespace lightq::broker
