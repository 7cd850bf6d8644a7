/// The numbers and the secret that identify a producer. docs/session.md, "Producing". Layer: delivery.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace lightq::broker {

/// A producer's id and epoch. With them a topic recognizes a batch that is sent again, and stores it once.
struct ProducerIdentity {
  std::uint64_t id = 0;  ///< 0: none assigned yet
  std::uint16_t epoch = 0;
  friend bool operator==(const ProducerIdentity&, const ProducerIdentity&) = default;
};

/// The sequence numbers of the broker's own producers, which move messages from topic to topic, begin here.
/// They ascend, and may leave out some. A client's producer never gets so far, because its numbers begin at 0
/// and leave out none. So a start recognizes batches of own producers in the log. docs/adr/0062-*.md.
inline constexpr std::uint64_t own_sequences_begin = std::uint64_t{1} << 63;
/// Those of producers that give letters back begin here. Each belongs to one run (see LetterBook), and is not
/// needed after it. So they leave the table before the others.
inline constexpr std::uint64_t run_sequences_begin = own_sequences_begin + (std::uint64_t{1} << 62);

/// Those of requests with an id begin here. A request stores one message, and its sequence number names the
/// message's offset. docs/adr/0073-*.md.
inline constexpr std::uint64_t request_sequences_begin = std::uint64_t{1} << 62;
/// Returns true if a producer that expects this number has stored the message of a request.
constexpr bool is_of_request(std::uint64_t expected) {
  return request_sequences_begin < expected && expected <= own_sequences_begin;
}

/// Epochs count modulo 2^16. Returns true if `epoch` is later than `other` (ahead by 1 to 32,767).
constexpr bool is_later_epoch(std::uint16_t epoch, std::uint16_t other) {
  return static_cast<std::int16_t>(static_cast<std::uint16_t>(epoch - other)) > 0;
}

/// The secret by which a client without a user proves that a producer id is its own. Random bytes.
using ProducerSecret = std::array<std::byte, 16>;

}  // namespace lightq::broker
