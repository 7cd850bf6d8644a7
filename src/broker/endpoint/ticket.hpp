/// What a ticket says, and the text of its id. Layer: endpoint. docs/protocol.md, "Tickets".
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <lightq/base/types.hpp>

#include "broker/delivery/fair_share.hpp"
#include "broker/endpoint/endpoint_record.hpp"

namespace lightq::broker {

/// What a ticket permits: to produce to the topic, to pull from it, or to subscribe to it.
struct Grant {
  TopicId topic;
  EndpointRole role = EndpointRole::produce;
  friend bool operator==(const Grant&, const Grant&) = default;
};

/// Whose a ticket is.
struct TicketHolder {
  std::uint64_t user = 0;        ///< 0: the administrator, or nobody in particular
  std::uint32_t generation = 0;  ///< of that user's password, and the administrator's; 0: nobody's

  /// Whose places it takes of what all share: who is nobody in particular is one of the strangers.
  [[nodiscard]] constexpr std::uint64_t sharer() const {
    return user == 0 && generation == 0 ? FairShare::strangers : user;
  }
  friend bool operator==(const TicketHolder&, const TicketHolder&) = default;
};

/// A ticket's id taken apart.
struct TicketClaims {
  Grant grant;
  std::uint64_t expires_ms = 0;  ///< since 1970
  TicketHolder holder;
  std::uint64_t nonce = 0;  ///< so that no two tickets are the same
  friend bool operator==(const TicketClaims&, const TicketClaims&) = default;
};

/// How far the clock may have been set back before what it gave out is refused.
inline constexpr auto ticket_clock_tolerance = std::chrono::minutes(10);
/// Whether what ends then ends later than what is given out now, for `lifetime_max` at most: the clock was
/// ahead when it was given out, or more was permitted.
bool ends_too_late(std::uint64_t expires_ms, std::chrono::milliseconds lifetime_max, Timestamp now);

/// 76 hexadecimal digits, lower case.
std::string encode_ticket_id(const TicketClaims& claims);
/// Nothing for a text that encode_ticket_id does not write.
std::optional<TicketClaims> decode_ticket_id(std::string_view id);

/// Lower-case hexadecimal digits.
std::string to_hex(ByteView bytes);

}  // namespace lightq::broker
